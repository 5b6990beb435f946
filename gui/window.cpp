// SPDX-License-Identifier: Apache-2.0
#include "gui/window.hpp"

#include <QApplication>
#include <QBoxLayout>
#include <QCloseEvent>
#include <QDockWidget>
#include <QLabel>
#include <QListWidget>
#include <QMimeData>
#include <QProgressBar>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <QThreadPool>
#include <QToolButton>

#include "gui/names.hpp"
#include "gui/theme.hpp"

namespace rehearse::gui {

namespace {

struct Page {
    const char *name, *title;
    std::unique_ptr<Screen> (*make)(Session&);
};
constexpr Page pages[] = {{"overview", "Overview", make_overview},
                          {"timeline", "Timeline", make_timeline},
                          {"editor", "Experiment", make_editor},
                          {"scaling", "Scaling study", make_scaling},
                          {"pipeline", "Pipeline schedule", make_pipeline},
                          {"compare", "Compare", make_compare},
                          {"topology", "Topology", make_topology},
                          {"memory", "Memory", make_memory},
                          {"kernels", "Kernels", make_kernels},
                          {"runs", "Runs", make_runs}};

}  // namespace

Window::Window(bool remembers, const QString& program) : runner_(program), remembers_(remembers) {
    setWindowTitle("Rehearse");
    resize(1440, 900);
    setAcceptDrops(true);
    base_points_ = QApplication::font().pointSizeF();
    session_.runner = &runner_;
    session_.go = [this](const std::string& name) { go(name); };
    session_.add = [this](Document document) { add(std::move(document)); };
    session_.open = [this](const QString& path) { open(path); };
    session_.ask = [this] { ask(); };
    session_.warn = [this](const QString& text) { warn(text); };
    session_.refresh = [this] { refresh(); };
    if (remembers_) session_.experiment = kept_experiment();
    make_screens();
    make_docks();
    make_menus();
    name_controls(*this);
    progress_ = new QProgressBar;
    progress_->setMaximumWidth(220);
    progress_->setRange(0, 1000);
    progress_->hide();
    statusBar()->addPermanentWidget(progress_);
    set_theme(picture::Theme::light);
    go("overview");
    if (remembers_) restore();
}

Window::~Window() {
    *stop_ = true;
    for (const auto& [name, dock] : beside_) delete dock;  // screens look at the session to their end
    delete takeCentralWidget();
    QThreadPool::globalInstance()->waitForDone();
}

void Window::make_message_bar(QWidget* parent) {
    bar_ = new QWidget(parent);
    bar_->setObjectName("message_bar");
    bar_->setStyleSheet(
        "#message_bar { background: #d55e00; } QLabel { color: white; padding: 5px; } QToolButton { color: white; "
        "border: none; font-weight: bold; padding: 4px; }");
    auto* row = new QHBoxLayout(bar_);
    row->setContentsMargins(8, 0, 4, 0);
    bar_text_ = new QLabel;
    bar_text_->setObjectName("message");
    bar_text_->setWordWrap(true);
    bar_text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    row->addWidget(bar_text_, 1);
    auto* close = new QToolButton;
    close->setText(QString::fromUtf8("✕"));
    close->setAccessibleName("Close the message");
    connect(close, &QToolButton::clicked, bar_, &QWidget::hide);
    row->addWidget(close);
    bar_->hide();
}

void Window::make_screens() {
    auto* middle = new QWidget;
    auto* column = new QVBoxLayout(middle);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    make_message_bar(middle);
    stack_ = new QStackedWidget;
    column->addWidget(bar_);
    column->addWidget(stack_);
    for (const Page& page : pages) {
        Screen* screen = page.make(session_).release();
        screen->setObjectName(page.name);
        screen->setWindowTitle(page.title);
        stack_->addWidget(screen);
        screens_.emplace_back(page.name, screen);
    }
    setCentralWidget(middle);
}

void Window::go(const std::string& screen) {
    if (const int place = place_of(screen); place >= 0) names_->setCurrentRow(place);
}

std::string Window::screen() const { return screens_[static_cast<std::size_t>(stack_->currentIndex())].first; }

Screen* Window::screen(const std::string& name) const {
    const int place = place_of(name);
    return place < 0 ? nullptr : screens_[static_cast<std::size_t>(place)].second;
}

void Window::set_theme(picture::Theme theme) {
    theme_ = theme;
    apply(theme, *qApp);
    for (const auto& [name, screen] : screens_) screen->set_theme(theme);
}

void Window::set_scale(double scale) {
    scale_ = std::clamp(scale, 0.6, 2.5);
    QFont font = QApplication::font();
    font.setPointSizeF(base_points_ * scale_);
    QApplication::setFont(font);
    set_theme(theme_);
}

void Window::warn(const QString& message) {
    bar_text_->setText(message.size() > 1200 ? message.left(1200) + QString::fromUtf8(" …") : message);
    bar_->show();
}

bool Window::is_busy() const {
    bool running = false;
    for (const auto& job : runner_.jobs()) running = running || job->process != nullptr;
    return loading_ > 0 || running || QThreadPool::globalInstance()->activeThreadCount() > 0;
}

QString Window::message() const { return bar_->isHidden() ? QString() : bar_text_->text(); }

void Window::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void Window::dropEvent(QDropEvent* event) {
    for (const QUrl& url : event->mimeData()->urls()) {
        if (const QString path = url.toLocalFile(); !path.isEmpty()) open(path);
    }
    event->acceptProposedAction();
}

void Window::closeEvent(QCloseEvent* event) {
    if (remembers_) keep();
    QMainWindow::closeEvent(event);
}

}  // namespace rehearse::gui
