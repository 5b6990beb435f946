// SPDX-License-Identifier: Apache-2.0
#include "gui/window.hpp"

#include <QApplication>
#include <QBoxLayout>
#include <QCloseEvent>
#include <QDockWidget>
#include <QFileInfo>
#include <QLabel>
#include <QListWidget>
#include <QMimeData>
#include <QProgressBar>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <QThreadPool>
#include <QToolButton>

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
    session_.warn = [this](const QString& text) { warn(text); };
    session_.refresh = [this] { refresh(); };
    if (remembers_) {
        const QSettings settings;
        session_.experiment.model = settings.value("experiment/model", "resnet50").toString().toStdString();
        session_.experiment.machine = settings.value("experiment/machine", "summit").toString().toStdString();
        session_.experiment.plan = settings.value("experiment/plan", "data").toString().toStdString();
        session_.experiment.devices =
            settings.value("experiment/devices", QString::fromStdString(session_.experiment.devices))
                .toString()
                .toStdString();
    }
    make_screens();
    make_docks();
    make_menus();
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
    delete takeCentralWidget();  // screens look at the session to their end
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
        stack_->addWidget(screen);
        screens_.emplace_back(page.name, screen);
    }
    setCentralWidget(middle);
}

void Window::make_docks() {
    const auto dock = [this](const char* name, const QString& title, QListWidget*& list) {
        auto* widget = new QDockWidget(title, this);
        widget->setObjectName(name);
        list = new QListWidget;
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
    for (const Page& page : pages) names_->addItem(page.title);
    connect(names_, &QListWidget::currentRowChanged, this, [this](int row) {
        if (row >= 0) stack_->setCurrentIndex(row), screens_[static_cast<std::size_t>(row)].second->refresh();
    });
    connect(files_, &QListWidget::itemClicked, this, [this](QListWidgetItem* item) {
        const int i = files_->row(item);
        const Document& document = *session_.at(i);
        if (document.lanes != nullptr) session_.timeline = i;
        if (document.prediction != nullptr) session_.prediction = i, session_.point = -1;
        if (document.benchmarks != nullptr) session_.benchmarks = i;
        refresh();
    });
    files_->setContextMenuPolicy(Qt::ActionsContextMenu);
    auto* close = new QAction("Close file", files_);
    connect(close, &QAction::triggered, this, [this] { close_document(files_->currentRow()); });
    files_->addAction(close);
}

void Window::open(const QString& path) {
    ++loading_;
    progress_->setValue(0);
    progress_->show();
    statusBar()->showMessage("reading " + QFileInfo(path).fileName());
    QThreadPool::globalInstance()->start([this, path, stop = stop_] {
        std::vector<Document> found;
        QString problem;
        try {
            found = load(path.toStdString(), [this, stop](double share) {
                QMetaObject::invokeMethod(this, [this, share] { progress_->setValue(static_cast<int>(1000 * share)); });
                return !stop->load();
            });
        } catch (const std::bad_alloc&) {
            problem = path + ": not enough memory for it";
        } catch (const std::exception& error) {
            problem = error.what();
        }
        if (stop->load()) return;
        QMetaObject::invokeMethod(this, [this, path, found = std::move(found), problem]() mutable {
            if (--loading_ == 0) progress_->hide();
            statusBar()->clearMessage();
            if (!problem.isEmpty()) return warn(problem);
            for (Document& document : found) add(std::move(document));
            QSettings settings;
            QStringList recent = settings.value("recent").toStringList();
            recent.removeAll(path);
            recent.prepend(path);
            if (remembers_) settings.setValue("recent", QStringList(recent.mid(0, 12)));
            list_recent();
        });
    });
}

void Window::add(Document document) {
    if (!document.warning.empty()) warn(QString::fromStdString(document.warning));
    session_.documents.push_back(std::move(document));
    const int last = static_cast<int>(session_.documents.size()) - 1;
    const Document& added = session_.documents.back();
    if (added.lanes != nullptr) session_.timeline = last;
    if (added.prediction != nullptr) session_.prediction = last, session_.point = -1;
    if (added.benchmarks != nullptr) session_.benchmarks = last;
    if (screen() == "overview") {
        if (added.lanes != nullptr && session_.prediction < 0 && added.timeline == nullptr) go("timeline");
        if (added.benchmarks != nullptr) go("kernels");
    }
    refresh();
}

void Window::close_document(int row) {
    if (session_.at(row) == nullptr) return;
    session_.documents.erase(session_.documents.begin() + row);
    const auto last_with = [this](bool (*has)(const Document&)) {
        const auto with = session_.with(has);
        return with.empty() ? -1 : with.back();
    };
    session_.timeline = last_with([](const Document& d) { return d.lanes != nullptr; });
    session_.prediction = last_with([](const Document& d) { return d.prediction != nullptr; });
    session_.benchmarks = last_with([](const Document& d) { return d.benchmarks != nullptr; });
    session_.point = -1;
    refresh();
}

void Window::refresh() {
    files_->clear();
    for (const Document& document : session_.documents) {
        const char* kind = document.prediction != nullptr ? "∿ " : document.benchmarks != nullptr ? "▪ " : "☰ ";
        auto* item = new QListWidgetItem(QString::fromUtf8(kind) + QString::fromStdString(document.label), files_);
        item->setToolTip(QString::fromStdString(document.path));
    }
    for (const auto& [name, screen] : screens_) screen->refresh();
}

void Window::go(const std::string& screen) {
    for (std::size_t i = 0; i < screens_.size(); ++i) {
        if (screens_[i].first == screen) names_->setCurrentRow(static_cast<int>(i));
    }
}

std::string Window::screen() const { return screens_[static_cast<std::size_t>(stack_->currentIndex())].first; }

Screen* Window::screen(const std::string& name) const {
    for (const auto& [each, screen] : screens_) {
        if (each == name) return screen;
    }
    return nullptr;
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
    return loading_ > 0 || running;
}

QString Window::message() const { return bar_->isHidden() ? QString() : bar_text_->text(); }

void Window::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

// Machines are for the experiment, everything else is opened.
void Window::dropEvent(QDropEvent* event) {
    for (const QUrl& url : event->mimeData()->urls()) {
        const QString path = url.toLocalFile();
        if (path.endsWith(".toml") || path.endsWith(".onnx")) {
            (path.endsWith(".toml") ? session_.experiment.machine : session_.experiment.model) = path.toStdString();
            screen("editor")->refresh();
            go("editor");
        } else if (!path.isEmpty()) {
            open(path);
        }
    }
    event->acceptProposedAction();
}

void Window::closeEvent(QCloseEvent* event) {
    if (remembers_) keep();
    QMainWindow::closeEvent(event);
}

void Window::keep() {
    QSettings settings;
    settings.setValue("geometry", saveGeometry());
    settings.setValue("state", saveState());
    settings.setValue("screen", QString::fromStdString(screen()));
    settings.setValue("theme", theme_ == picture::Theme::dark ? "dark" : "light");
    settings.setValue("scale", scale_);
    QStringList open;
    for (const Document& document : session_.documents) {
        const QString path = QString::fromStdString(document.path);
        if (!path.isEmpty() && !path.contains("/rehearse-run-") && !open.contains(path)) open << path;
    }
    settings.setValue("open", open);
    settings.setValue("experiment/model", QString::fromStdString(session_.experiment.model));
    settings.setValue("experiment/machine", QString::fromStdString(session_.experiment.machine));
    settings.setValue("experiment/plan", QString::fromStdString(session_.experiment.plan));
    settings.setValue("experiment/devices", QString::fromStdString(session_.experiment.devices));
}

void Window::restore() {
    const QSettings settings;
    restoreGeometry(settings.value("geometry").toByteArray());
    restoreState(settings.value("state").toByteArray());
    set_theme(settings.value("theme").toString() == "dark" ? picture::Theme::dark : picture::Theme::light);
    if (const double scale = settings.value("scale", 1).toDouble(); scale != 1) set_scale(scale);
    for (const QString& path : settings.value("open").toStringList()) {
        if (QFileInfo::exists(path)) open(path);
    }
    if (settings.contains("screen")) go(settings.value("screen").toString().toStdString());
}

}  // namespace rehearse::gui
