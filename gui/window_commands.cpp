// SPDX-License-Identifier: Apache-2.0
// Menus, keys, and the palette that finds a command by some of its letters.
#include <QAction>
#include <QApplication>
#include <QBoxLayout>
#include <QClipboard>
#include <QDialog>
#include <QDockWidget>
#include <QFileDialog>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QPainter>
#include <QSettings>
#include <QStackedWidget>

#include "core/file.hpp"
#include "gui/picture_view.hpp"
#include "gui/window.hpp"

namespace rehearse::gui {

namespace {

// Whether the letters come in this order.
bool fuzzy(const QString& text, const QString& letters) {
    qsizetype at = 0;
    for (const QChar c : letters) {
        if (c.isSpace()) continue;
        at = text.indexOf(c, at, Qt::CaseInsensitive);
        if (at < 0) return false;
        ++at;
    }
    return true;
}

constexpr const char* keys_text =
    "<h3>Timeline</h3><table cellspacing=6>"
    "<tr><td><b>W / S</b></td><td>zoom in and out at the pointer (with Shift: the height of rows)</td></tr>"
    "<tr><td><b>A / D</b></td><td>move to the left and right; arrows too</td></tr>"
    "<tr><td><b>Ctrl + wheel</b></td><td>zoom at the pointer; Shift + wheel or Shift + drag moves</td></tr>"
    "<tr><td><b>F</b></td><td>focus: the selection or the area, then all again</td></tr>"
    "<tr><td><b>, and .</b></td><td>the event before and after on the lane</td></tr>"
    "<tr><td><b>drag</b></td><td>statistics of an area; R: of the selection's time on all ranks</td></tr>"
    "<tr><td><b>click on a rank</b></td><td>opens its lanes; double click on the heat map also zooms</td></tr>"
    "<tr><td><b>O</b></td><td>opens and closes the rank of the selection</td></tr>"
    "<tr><td><b>P</b></td><td>pins the rank of the selection to the top</td></tr>"
    "<tr><td><b>C</b></td><td>the critical path</td></tr>"
    "<tr><td><b>Esc</b></td><td>nothing selected</td></tr></table>"
    "<h3>Everywhere</h3><table cellspacing=6>"
    "<tr><td><b>/</b></td><td>search</td></tr>"
    "<tr><td><b>Ctrl+Shift+P</b></td><td>all commands</td></tr>"
    "<tr><td><b>Alt+1 … Alt+0</b></td><td>screens</td></tr>"
    "<tr><td><b>Ctrl+O</b></td><td>open; files can be dropped, too</td></tr>"
    "<tr><td><b>?</b></td><td>these keys</td></tr></table>";

}  // namespace

QAction* Window::command(QMenu* menu, const QString& text, const QString& keys, std::function<void()> action) {
    auto* made = new QAction(text, this);
    if (!keys.isEmpty()) made->setShortcut(QKeySequence(keys));
    connect(made, &QAction::triggered, this, [action = std::move(action)] { action(); });
    menu->addAction(made);
    addAction(made);
    return made;
}

void Window::make_menus() {
    QMenu* file = menuBar()->addMenu("&File");
    command(file, "Open…", "Ctrl+O", [this] { ask(); });
    recent_ = file->addMenu("Open recent");
    list_recent();
    command(file, "Close file", "Ctrl+W",
            [this] { close_document(files_->currentRow() >= 0 ? files_->currentRow() : files_->count() - 1); });
    file->addSeparator();
    command(file, "Save experiment as…", {}, [this] { save_experiment(); });
    command(file, "Copy picture", "Ctrl+Shift+C", [this] { copy_picture(); });
    command(file, "Save picture as…", "Ctrl+S",
            [this] { ask_and_save(this, screens_[static_cast<std::size_t>(names_->currentRow())].second->picture()); });
    file->addSeparator();
    command(file, "Quit", "Ctrl+Q", [this] { close(); });
    QMenu* view = menuBar()->addMenu("&View");
    for (int i = 0; i < static_cast<int>(screens_.size()); ++i) {
        command(view, names_->item(i)->text(), QString("Alt+%1").arg((i + 1) % 10),
                [this, i] { names_->setCurrentRow(i); });
    }
    QMenu* beside = view->addMenu("Beside this screen");
    for (const auto& [name, screen] : screens_)
        command(beside, "Beside: " + screen->windowTitle(), {}, [this, name = name] { put_beside(name); });
    view->addSeparator();
    command(view, "Light", {}, [this] { set_theme(picture::Theme::light); });
    command(view, "Dark", {}, [this] { set_theme(picture::Theme::dark); });
    command(view, "Larger", "Ctrl++", [this] { set_scale(scale_ * 1.1); });
    command(view, "Smaller", "Ctrl+-", [this] { set_scale(scale_ / 1.1); });
    command(view, "Normal size", "Ctrl+0", [this] { set_scale(1); });
    view->addSeparator();
    for (auto* dock : findChildren<QDockWidget*>()) view->addAction(dock->toggleViewAction());
    QMenu* help = menuBar()->addMenu("&Help");
    command(help, "Commands…", "Ctrl+Shift+P", [this] { show_palette(); });
    command(help, "Keys", "F1", [this] { show_keys(); });
}

void Window::ask() {
    const QStringList paths =
        QFileDialog::getOpenFileNames(this, "Open", {},
                                      "Timelines, predictions, benchmarks, experiments, machines, networks "
                                      "(*.pftrace *.perfetto-trace *.json *.toml "
                                      "*.onnx);;All files (*)");
    for (const QString& path : paths) open(path);
}

QList<QAction*> Window::commands() const {
    QList<QAction*> found;
    for (QAction* action : actions()) {
        if (!action->text().isEmpty() && action->isEnabled()) found << action;
    }
    return found;
}

void Window::list_recent() {
    if (recent_ == nullptr) return;
    recent_->clear();
    for (const QString& path : QSettings().value("recent").toStringList()) {
        recent_->addAction(path, this, [this, path] { open(path); });
    }
    recent_->setEnabled(!recent_->isEmpty());
}

void Window::show_palette() {
    auto* dialog = new QDialog(this, Qt::Popup);
    dialog->setObjectName("palette");
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->resize(460, 360);
    auto* input = new QLineEdit;
    input->setObjectName("palette_input");
    input->setPlaceholderText("Command");
    input->setAccessibleName("Command");
    auto* list = new QListWidget;
    auto* column = new QVBoxLayout(dialog);
    column->addWidget(input);
    column->addWidget(list);
    const auto fill = [this, list](const QString& letters) {
        list->clear();
        for (QAction* action : commands()) {
            if (!fuzzy(action->text(), letters)) continue;
            const QString keys = action->shortcut().toString();
            auto* item = new QListWidgetItem(action->text() + (keys.isEmpty() ? "" : "    " + keys), list);
            item->setData(Qt::UserRole, QVariant::fromValue(static_cast<QObject*>(action)));
        }
        list->setCurrentRow(0);
    };
    const auto run = [dialog, list] {
        QListWidgetItem* item = list->currentItem();
        auto* action = item != nullptr ? qobject_cast<QAction*>(item->data(Qt::UserRole).value<QObject*>()) : nullptr;
        dialog->close();
        if (action != nullptr) action->trigger();
    };
    connect(input, &QLineEdit::textChanged, dialog, fill);
    connect(input, &QLineEdit::returnPressed, dialog, run);
    connect(list, &QListWidget::itemActivated, dialog, run);
    fill({});
    dialog->move(mapToGlobal(QPoint(width() / 2 - 230, 60)));
    dialog->show();
    input->setFocus();
}

void Window::show_keys() {
    auto* dialog = new QDialog(this);
    dialog->setObjectName("keys");
    dialog->setWindowTitle("Keys");
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    auto* column = new QVBoxLayout(dialog);
    column->addWidget(new QLabel(keys_text));
    dialog->show();
}

void Window::save_experiment() {
    QString path = QFileDialog::getSaveFileName(this, "Save experiment", "experiment.toml", "TOML (*.toml)");
    if (path.isEmpty()) return;
    if (!path.endsWith(".toml")) path += ".toml";
    try {
        replace_file(path.toStdString(), to_toml(session_.experiment));
    } catch (const std::exception& error) {
        warn(error.what());
    }
}

void Window::copy_picture() {
    const picture::Picture picture = screens_[static_cast<std::size_t>(names_->currentRow())].second->picture();
    if (picture.marks.empty()) {  // no picture of its own: what is seen
        QApplication::clipboard()->setPixmap(stack_->currentWidget()->grab());
        return;
    }
    QImage image(static_cast<int>(2 * picture.width), static_cast<int>(2 * picture.height), QImage::Format_RGB32);
    QPainter painter(&image);
    painter.scale(2, 2);
    replay(painter, picture);
    painter.end();
    QApplication::clipboard()->setImage(image);
}

void Window::keyPressEvent(QKeyEvent* event) {
    if (event->text() == "?") return show_keys();
    if (event->text() == "/") return screens_[static_cast<std::size_t>(names_->currentRow())].second->search();
    QMainWindow::keyPressEvent(event);
}

}  // namespace rehearse::gui
