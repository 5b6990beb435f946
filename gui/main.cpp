// SPDX-License-Identifier: Apache-2.0
// rehearse-gui [--open FILE...] [--view NAME] [--screenshot OUT.png] [--exit]
#include <QApplication>
#include <QCommandLineParser>
#include <QElapsedTimer>
#include <QFontDatabase>
#include <QKeyEvent>
#include <QPainter>
#include <QTabWidget>
#include <QTimer>
#include <cstdio>
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

struct Wish {
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
int finish(Window& window, const Wish& wish) {
    for (const QString& view : wish.views) window.go(view.toStdString());
    if (!wish.beside.isEmpty()) window.put_beside(wish.beside.toStdString());
    if (!wish.tab.isEmpty() && !show_tab(window, wish.tab)) {
        std::fprintf(stderr, "rehearse-gui: --tab %s: this screen has no such tab\n", qPrintable(wish.tab));
        return 2;
    }
    auto* timeline = window.findChild<QWidget*>("timeline_view");
    if (!wish.find.isEmpty() && timeline != nullptr) {
        static_cast<rehearse::gui::TimelineView*>(timeline)->find_next(wish.find.toStdString());
    }
    for (const QChar key : wish.keys.toUpper()) {
        QKeyEvent press(QEvent::KeyPress, key.unicode(), Qt::NoModifier);
        QCoreApplication::sendEvent(timeline, &press);
    }
    for (int i = 0; i < 3; ++i) QCoreApplication::processEvents();
    if (!wish.screenshot.isEmpty() && !window.grab().save(wish.screenshot)) {
        std::fprintf(stderr, "rehearse-gui: --screenshot %s: cannot be written\n", qPrintable(wish.screenshot));
        return 2;
    }
    if (!wish.exit) return 0;
    if (window.message().isEmpty()) return 0;
    std::fprintf(stderr, "rehearse-gui: %s\n", qPrintable(window.message()));
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    QApplication::setOrganizationName("Rehearse");
    QApplication::setApplicationName("rehearse-gui");
    QApplication::setApplicationVersion(REHEARSE_VERSION);
    QCommandLineParser parser;
    parser.setApplicationDescription("Timelines, predictions and machines on screen");
    parser.addHelpOption();
    parser.addVersionOption();
    parser.addPositionalArgument("FILE", "what to open", "[FILE...]");
    parser.addOptions({{"open", "open this file (again and again)", "FILE"},
                       {"view",
                        "overview, timeline, editor, scaling, pipeline, compare, topology, memory, kernels or runs; of "
                        "several, the first while files are read",
                        "NAME"},
                       {"screenshot", "write a picture of the window when all is read", "OUT.png"},
                       {"find", "select the first step with this text in its name", "TEXT"},
                       {"keys", "then press these keys in the timeline, as \"CFSS\"", "TEXT"},
                       {"tab", "show the tab of the screen whose name begins so", "NAME"},
                       {"beside", "show this screen beside the other", "NAME"},
                       {"theme", "light or dark", "NAME"},
                       {"size", "of the window, in pixels", "WxH"},
                       {"exit", "end when all is read; exit code 2 when something went wrong"}});
    parser.process(application);
    if (!draws_text()) std::fprintf(stderr, "rehearse-gui: no font was found: install fonts-dejavu-core\n");
    const Wish wish{parser.value("screenshot"), parser.value("find"),  parser.value("keys"), parser.value("tab"),
                    parser.value("beside"),     parser.values("view"), parser.isSet("exit")};
    Window window(!wish.exit && wish.screenshot.isEmpty());
    for (const QString& view : wish.views + parser.values("beside")) {
        if (window.screen(view.toStdString()) != nullptr) continue;
        std::fprintf(stderr, "rehearse-gui: --view %s: there is no such screen; see --help\n", qPrintable(view));
        return 2;
    }
    if (parser.isSet("theme"))
        window.set_theme(parser.value("theme") == "dark" ? rehearse::picture::Theme::dark
                                                         : rehearse::picture::Theme::light);
    const QStringList size = parser.value("size").split('x');
    if (size.size() == 2) window.resize(size[0].toInt(), size[1].toInt());
    window.show();
    for (const QString& path : parser.values("open") + parser.positionalArguments()) window.open(path);
    if (!wish.views.isEmpty()) window.go(wish.views.front().toStdString());
    QTimer poll;
    QElapsedTimer quiet;
    quiet.start();
    QObject::connect(&poll, &QTimer::timeout, &window, [&] {
        if (window.is_busy()) return void(quiet.restart());
        if (quiet.elapsed() < 400) return;  // an experiment begins a little later
        poll.stop();
        const int code = finish(window, wish);
        if (wish.exit) QCoreApplication::exit(code);
    });
    if (wish.exit || !wish.screenshot.isEmpty() || !(wish.find + wish.keys + wish.tab + wish.beside).isEmpty())
        poll.start(30);
    return QApplication::exec();
}
