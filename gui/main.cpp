// SPDX-License-Identifier: Apache-2.0
// rehearse-gui [--open FILE...] [--view NAME] [--screenshot OUT.png] [--exit]
// Exit codes as those of rehearse: 0 good, 2 wrong input, 3 no display.
#include <QApplication>
#include <QCommandLineParser>
#include <QElapsedTimer>
#include <QFontDatabase>
#include <QKeyEvent>
#include <QPainter>
#include <QTabWidget>
#include <QTimer>
#include <cstdio>
#include <optional>
#include <set>

#include "gui/timeline_view.hpp"
#include "gui/window.hpp"

namespace {

using rehearse::gui::Window;

// Without a font Qt draws nothing and says nothing.
bool draws_text() {
    QImage image(80, 20, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    painter.drawText(2, 15, "Rehearse");
    painter.end();
    std::set<QRgb> colors;
    for (int x = 0; x < image.width(); ++x) colors.insert(image.pixel(x, 10));
    return colors.size() > 1;
}

int complain(const QString& text, int code) {
    std::fprintf(stderr, "rehearse-gui: %s\n", qPrintable(text));
    return code;
}

struct Startup {
    QString screenshot, find, keys, tab, beside;
    QStringList views;  // the first at once, the others when all is read
    bool exit = false;
};

// The tab of the screen that is seen whose name begins so; false when there is none.
bool show_tab(const Window& window, const QString& name) {
    for (auto* tabs : window.screen(window.screen())->findChildren<QTabWidget*>()) {
        for (int i = 0; i < tabs->count(); ++i) {
            if (tabs->tabText(i).startsWith(name, Qt::CaseInsensitive)) return tabs->setCurrentIndex(i), true;
        }
    }
    return false;
}

// When all is read and simulated.
int finish(Window& window, const Startup& startup) {
    for (const QString& view : startup.views) window.go(view.toStdString());
    if (!startup.beside.isEmpty()) window.put_beside(startup.beside.toStdString());
    if (!startup.tab.isEmpty() && !show_tab(window, startup.tab)) {
        return complain("--tab " + startup.tab + ": this screen has no such tab", 2);
    }
    auto* timeline = window.findChild<QWidget*>("timeline_view");
    if (!startup.find.isEmpty() && timeline != nullptr) {
        static_cast<rehearse::gui::TimelineView*>(timeline)->find_next(startup.find.toStdString());
    }
    for (const QChar key : startup.keys.toUpper()) {
        QKeyEvent press(QEvent::KeyPress, key.unicode(), Qt::NoModifier);
        QCoreApplication::sendEvent(timeline, &press);
    }
    for (int i = 0; i < 3; ++i) QCoreApplication::processEvents();
    if (!startup.screenshot.isEmpty() && !window.grab().save(startup.screenshot)) {
        return complain("--screenshot " + startup.screenshot + ": cannot be written", 2);
    }
    if (!startup.exit || window.message().isEmpty()) return 0;
    return complain(window.message(), 2);
}

QList<QCommandLineOption> options() {
    return {{"open", "open this file (again and again)", "FILE"},
            {"view",
             "overview (at first), timeline, editor, scaling, pipeline, compare, topology, memory, kernels or runs; of "
             "several, the first while files are read",
             "NAME"},
            {"screenshot", "write a picture of the window when all is read", "OUT.png"},
            {"find", "select the first step with this text in its name", "TEXT"},
            {"keys", "then press these keys in the timeline, as \"CFSS\"", "TEXT"},
            {"tab", "show the tab of the screen whose name begins so", "NAME"},
            {"beside", "show this screen beside the other", "NAME"},
            {"theme", "light (at first) or dark", "NAME"},
            {"size", "of the window in pixels, 800x600 or more; at first 1440x900", "WxH"},
            {"exit", "end when all is read; exit code 2 when something went wrong"},
            {"manual", "print the manual page, and nothing else"}};
}

void add_options(QCommandLineParser& parser) {
    parser.setApplicationDescription("Timelines, predictions and machines on screen");
    parser.addHelpOption();
    parser.addVersionOption();
    parser.addPositionalArgument("FILE", "what to open", "[FILE...]");
    parser.addOptions(options());
}

// In roff (man 7), of the options of --help.
QString manual() {
    QString text = ".TH REHEARSE-GUI 1 \"\" \"rehearse " REHEARSE_VERSION
                   "\" \"Rehearse\"\n.SH NAME\n"
                   "rehearse-gui \\- timelines, predictions and machines on screen\n.SH SYNOPSIS\n.B rehearse-gui\n"
                   "[\\fIoptions\\fR] [\\fIFILE\\fR...]\n.SH OPTIONS\n";
    for (const QCommandLineOption& option : options()) {
        const QString value = option.valueName().isEmpty() ? "" : " \\fI" + option.valueName() + "\\fR";
        text += ".TP\n.B \\-\\-" + option.names().constFirst() + value + "\n" + option.description() + "\n";
    }
    return text +
           ".SH EXIT STATUS\n.TP\n.B 0\ngood\n.TP\n.B 2\nwrong input\n.TP\n.B 3\nno display\n"
           ".SH SEE ALSO\n.BR rehearse (1)\n";
}

// An empty one where it was not asked for; nothing when it is none.
std::optional<QSize> size_of(const QString& text) {
    if (text.isEmpty()) return QSize();
    const QStringList words = text.split('x');
    bool wide = false, high = false;
    const QSize size = words.size() == 2 ? QSize(words[0].toInt(&wide), words[1].toInt(&high)) : QSize();
    return wide && high && size.width() >= 800 && size.height() >= 600 ? std::optional(size) : std::nullopt;
}

// What can be said without a display: help, the version, and what is wrong with the options. Nothing: go on.
std::optional<int> answer(int argc, char** argv) {
    const QCoreApplication application(argc, argv);
    QCommandLineParser parser;
    add_options(parser);
    QStringList words = QCoreApplication::arguments();
    const auto platform = words.indexOf("-platform");  // Qt's own
    if (platform >= 0) words.remove(platform, std::min<qsizetype>(2, words.size() - platform));
    if (!parser.parse(words)) return complain(parser.errorText() + "; see --help", 2);
    if (parser.isSet("help") || parser.isSet("help-all")) {
        std::fputs(qPrintable(parser.helpText()), stdout);
        return 0;
    }
    if (parser.isSet("manual")) {
        std::fputs(qPrintable(manual()), stdout);
        return 0;
    }
    if (parser.isSet("version")) {
        std::puts("rehearse-gui " REHEARSE_VERSION);
        return 0;
    }
    if (const QString theme = parser.value("theme"); !QStringList{"", "light", "dark"}.contains(theme))
        return complain("--theme " + theme + ": light or dark", 2);
    if (!size_of(parser.value("size")))
        return complain("--size " + parser.value("size") + ": pixels like 1280x800, at least 800x600", 2);
    const bool any_display = !qEnvironmentVariableIsEmpty("DISPLAY") ||
                             !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY") ||
                             !qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM") || platform >= 0;
#if defined(Q_OS_UNIX) && !defined(Q_OS_DARWIN)
    if (!any_display)
        return complain("there is no display; with QT_QPA_PLATFORM=offscreen --screenshot and --exit need none", 3);
#endif
    return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
    if (const auto code = answer(argc, argv)) return *code;
    QApplication application(argc, argv);
    QApplication::setOrganizationName("Rehearse");
    QApplication::setApplicationName("rehearse-gui");
    QApplication::setApplicationVersion(REHEARSE_VERSION);
    QCommandLineParser parser;
    add_options(parser);
    parser.process(application);
    if (!draws_text()) complain("no font was found: install fonts-dejavu-core", 0);
    const Startup startup{parser.value("screenshot"), parser.value("find"),  parser.value("keys"), parser.value("tab"),
                          parser.value("beside"),     parser.values("view"), parser.isSet("exit")};
    Window window(!startup.exit && startup.screenshot.isEmpty());
    for (const QString& view : startup.views + parser.values("beside")) {
        if (window.screen(view.toStdString()) != nullptr) continue;
        return complain("--view " + view + ": there is no such screen; see --help", 2);
    }
    if (parser.isSet("theme"))
        window.set_theme(parser.value("theme") == "dark" ? rehearse::picture::Theme::dark
                                                         : rehearse::picture::Theme::light);
    if (const QSize size = size_of(parser.value("size")).value_or(QSize()); !size.isEmpty()) window.resize(size);
    window.show();
    for (const QString& path : parser.values("open") + parser.positionalArguments()) window.open(path);
    if (!startup.views.isEmpty()) window.go(startup.views.front().toStdString());
    QTimer poll;
    QElapsedTimer quiet;
    quiet.start();
    QObject::connect(&poll, &QTimer::timeout, &window, [&] {
        if (window.is_busy()) return void(quiet.restart());
        if (quiet.elapsed() < 400) return;  // an experiment begins a little later
        poll.stop();
        const int code = finish(window, startup);
        if (startup.exit) QCoreApplication::exit(code);
    });
    if (startup.exit || !startup.screenshot.isEmpty() ||
        !(startup.find + startup.keys + startup.tab + startup.beside).isEmpty())
        poll.start(30);
    return QApplication::exec();
}
