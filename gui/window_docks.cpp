// SPDX-License-Identifier: Apache-2.0
// What stands around the screens: their names, what is open, and screens that are seen beside the one in the middle.
#include <fmt/format.h>

#include <QAction>
#include <QCloseEvent>
#include <QDockWidget>
#include <QFileInfo>
#include <QLabel>
#include <QListWidget>
#include <QStackedWidget>

#include "gui/window.hpp"

namespace rehearse::gui {

namespace {

// Below its name.
std::string kind_of(const Document& document) {
    if (document.benchmarks != nullptr) return fmt::format("▪ {} benchmarks", document.benchmarks->rows.size());
    if (document.prediction != nullptr) {
        const std::size_t points = document.prediction->points.size();
        return fmt::format("∿ {} point{}", points, points == 1 ? "" : "s");
    }
    return document.lanes->measured ? "☰ measured" : "☰ predicted";
}

class ClosableDock : public QDockWidget {
public:
    using QDockWidget::QDockWidget;
    std::function<void()> closed;

protected:
    void closeEvent(QCloseEvent* event) override {
        QDockWidget::closeEvent(event);
        if (closed) closed();
    }
};

}  // namespace

void Window::make_docks() {
    const auto dock = [this](const char* name, const QString& title, QListWidget*& list) {
        auto* widget = new QDockWidget(title, this);
        widget->setObjectName(name);
        list = new QListWidget;
        list->setAccessibleName(title);
        list->setMinimumWidth(150);
        list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        list->setTextElideMode(Qt::ElideMiddle);
        widget->setWidget(list);
        addDockWidget(Qt::LeftDockWidgetArea, widget);
        return widget;
    };
    auto* first = dock("screens_dock", "Screens", names_);
    auto* second = dock("files_dock", "Open", files_);
    resizeDocks({first, second}, {390, 200}, Qt::Vertical);
    resizeDocks({first}, {178}, Qt::Horizontal);
    for (const auto& [name, screen] : screens_) names_->addItem(screen->windowTitle());
    connect(names_, &QListWidget::currentRowChanged, this, [this](int row) {
        if (row >= 0) stack_->setCurrentIndex(row), screens_[static_cast<std::size_t>(row)].second->refresh();
    });
    const auto take = [this](QListWidgetItem* item) {
        const int i = files_->row(item);
        const Document& document = *session_.at(i);
        if (document.lanes != nullptr) session_.timeline = i;
        if (document.prediction != nullptr) session_.prediction = i, session_.point = -1;
        if (document.benchmarks != nullptr) session_.benchmarks = i;
        refresh();
    };
    connect(files_, &QListWidget::itemClicked, this, take);
    connect(files_, &QListWidget::itemActivated, this, take);  // by Enter
    files_->setContextMenuPolicy(Qt::ActionsContextMenu);
    auto* close = new QAction("Close file", files_);
    connect(close, &QAction::triggered, this, [this] { close_document(files_->currentRow()); });
    files_->addAction(close);
}

void Window::refresh() {
    const QListWidgetItem* current = files_->currentItem();
    const int chosen = current != nullptr ? current->data(Qt::UserRole).toInt() : 0;
    files_->clear();
    for (const Document& document : session_.documents) {
        const QString path = QString::fromStdString(document.path), label = QString::fromStdString(document.label);
        auto* item = new QListWidgetItem(
            (path.isEmpty() ? label : QFileInfo(path).fileName()) + "\n" + QString::fromStdString(kind_of(document)),
            files_);
        item->setToolTip(path.isEmpty() ? label : path);
        item->setData(Qt::UserRole, document.id);
        if (document.id == chosen) files_->setCurrentItem(item);
    }
    for (const auto& [name, screen] : screens_) screen->refresh();
}

int Window::place_of(const std::string& name) const {
    for (std::size_t i = 0; i < screens_.size(); ++i) {
        if (screens_[i].first == name) return static_cast<int>(i);
    }
    return -1;
}

// In the middle a few words take its place, so that each screen keeps its number.
void Window::put_beside(const std::string& name) {
    const int place = place_of(name);
    if (place < 0 || beside_.contains(name)) return;
    Screen* screen = screens_[static_cast<std::size_t>(place)].second;
    auto* words = new QLabel(screen->windowTitle() + " is shown beside. Close it there to have it here again.");
    words->setAlignment(Qt::AlignCenter);
    words->setEnabled(false);
    exchange(place, words);
    auto* dock = new ClosableDock(screen->windowTitle(), this);
    dock->setObjectName("beside_" + QString::fromStdString(name));
    dock->setWidget(screen);
    dock->closed = [this, name] { take_back(name); };
    beside_[name] = dock;
    const int least =
        names_->minimumSizeHint().width() + stack_->minimumSizeHint().width() + dock->minimumSizeHint().width();
    const bool is_narrow = width() < least;  // side by side, both would make the window wider
    addDockWidget(is_narrow ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea, dock);
    if (is_narrow) {
        resizeDocks({dock}, {height() / 2}, Qt::Vertical);
    } else {
        resizeDocks({dock}, {width() / 2 - 120}, Qt::Horizontal);
    }
    dock->show(), screen->show();
    screen->refresh();
}

void Window::take_back(const std::string& name) {
    const auto found = beside_.find(name);
    if (found == beside_.end()) return;
    QDockWidget* dock = found->second;
    beside_.erase(found);
    delete exchange(place_of(name), screens_[static_cast<std::size_t>(place_of(name))].second);
    dock->deleteLater();
}

// What stood at this place of the middle.
QWidget* Window::exchange(int place, QWidget* widget) {
    const int shown = stack_->currentIndex();
    QWidget* before = stack_->widget(place);
    stack_->removeWidget(before);
    stack_->insertWidget(place, widget);
    stack_->setCurrentIndex(shown);
    return before;
}

}  // namespace rehearse::gui
