// SPDX-License-Identifier: Apache-2.0
// The window as a user has it, without a screen: keys, mouse, files that are dropped, and what goes wrong.
#include "gui/window.hpp"

#include <gmock/gmock.h>
#include <sys/mount.h>

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QDropEvent>
#include <QElapsedTimer>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QSlider>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QtTest/QTest>
#include <cerrno>
#include <cstring>
#include <set>

#include "gui/picture_view.hpp"
#include "gui/timeline_view.hpp"
#include "trace/trace.hpp"

namespace rehearse::gui {
namespace {

using testing::HasSubstr;

constexpr const char* prediction = R"({"schema": "rehearse.prediction/1", "model": "resnet50", "machine": "summit",
  "plan": "data", "precision": "mixed", "points": [
  {"devices": 6, "nodes": 1, "global_batch": 192, "step_s": 0.034, "step_low_s": 0.03, "step_high_s": 0.04, "samples_per_s": 5540, "flops_per_s": 1e14,
   "efficiency": 1, "compute_s": 0.033, "exposed_comm_s": 0.001, "bubble_s": 0, "io_wait_s": 0, "memory_peak_bytes": 1.7e9, "memory_capacity_bytes": 1.6e10, "fits": true, "mode": "exact"},
  {"devices": 384, "nodes": 64, "global_batch": 12288, "step_s": 0.037, "step_low_s": 0.03, "step_high_s": 0.045, "samples_per_s": 330000, "flops_per_s": 8e15,
   "efficiency": 0.93, "compute_s": 0.033, "exposed_comm_s": 0.004, "bubble_s": 0, "io_wait_s": 0, "memory_peak_bytes": 1.7e9, "memory_capacity_bytes": 1.6e10, "fits": true, "mode": "folded"}],
  "memory": [{"class": "all", "kind": "weights", "bytes": 5e7}, {"class": "all", "kind": "activations", "bytes": 1.3e9}]})";

Timeline two_ranks(bool measured, double slower = 1) {
    Timeline timeline{measured ? "measured" : "predicted", measured, 2, {}, {}};
    for (const std::int64_t rank : {0, 1}) {
        double now = 0;
        for (int i = 0; i < 20; ++i) {
            const std::string layer = "conv" + std::to_string(i);
            timeline.events.push_back({rank,
                                       Stream::compute,
                                       layer + ":forward",
                                       layer,
                                       "forward",
                                       0,
                                       0,
                                       Seconds{now},
                                       Seconds{now + 1e-3 * slower},
                                       {},
                                       Flops{1e9}});
            now += 1.1e-3 * slower;
        }
        timeline.events.push_back({rank,
                                   Stream::communication,
                                   "bucket0:allreduce",
                                   "bucket0",
                                   "allreduce",
                                   0,
                                   0,
                                   Seconds{now},
                                   Seconds{now + 5e-3},
                                   Bytes{1e6},
                                   {}});
    }
    timeline.counters.push_back(
        {"memory rank 0", "bytes", {{Seconds{0}, 1e9}, {Seconds{0.01}, 2e9}, {Seconds{0.02}, 1e9}}});
    return timeline;
}

class Gui : public testing::Test {
protected:
    Gui() {
        QSettings().clear();
        write("prediction.json", prediction);
        trace::write(two_ranks(false), path("predicted.pftrace"));
        trace::write(two_ranks(true, 1.25), path("measured.pftrace"));
        fake("exec sleep 100");
        window_ = std::make_unique<Window>(false, qpath("rehearse"));
        window_->resize(1280, 800);
        window_->show();
    }
    std::string path(const char* name) const { return folder_.filePath(name).toStdString(); }
    QString qpath(const char* name) const { return folder_.filePath(name); }
    void write(const char* name, const std::string& text) const {
        QFile file(qpath(name));
        ASSERT_TRUE(file.open(QIODevice::WriteOnly));
        file.write(text.data(), static_cast<qint64>(text.size()));
    }
    // A program in the place of rehearse.
    void fake(const std::string& body) const {
        write("rehearse", "#!/bin/sh\n" + body + "\n");
        QFile::setPermissions(qpath("rehearse"),
                              QFileDevice::ReadOwner | QFileDevice::WriteOwner | QFileDevice::ExeOwner);
    }
    bool wait(const std::function<bool()>& until) const { return QTest::qWaitFor(until, 20'000); }
    void open(const char* name) {
        const std::size_t before = window_->session().documents.size();
        window_->open(qpath(name));
        ASSERT_TRUE(
            wait([&] { return window_->session().documents.size() > before || !window_->message().isEmpty(); }));
    }
    template <typename Kind>
    Kind* find(const char* name) const {
        return static_cast<Kind*>(window_->findChild<QWidget*>(name));
    }
    static QByteArray content_of(const QString& path) {
        QFile file(path);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    TimelineView* timeline() const { return find<TimelineView>("timeline_view"); }
    int colors(const QWidget* widget) const {
        const QImage image = const_cast<QWidget*>(widget)->grab().toImage();
        std::set<QRgb> seen;
        for (int y = 0; y < image.height(); y += 2) {
            for (int x = 0; x < image.width(); x += 2) seen.insert(image.pixel(x, y));
        }
        return static_cast<int>(seen.size());
    }

    QTemporaryDir folder_;
    std::unique_ptr<Window> window_;
};

TEST_F(Gui, DrawsEveryScreenInBothThemes) {
    open("prediction.json"), open("predicted.pftrace"), open("measured.pftrace");
    for (const picture::Theme theme : {picture::Theme::light, picture::Theme::dark}) {
        window_->set_theme(theme);
        for (const char* name : {"overview", "timeline", "editor", "scaling", "pipeline", "compare", "topology",
                                 "memory", "kernels", "runs"}) {
            window_->go(name);
            EXPECT_EQ(window_->screen(), name);
            EXPECT_GT(colors(window_->screen(name)), 12) << name;  // text alone is more than a dozen shades
        }
    }
    EXPECT_EQ(window_->message(), "");
}

TEST_F(Gui, ReallyDrawsText) {
    QLabel label("Rehearse");
    label.resize(100, 24);
    EXPECT_GT(colors(&label), 4);
}

TEST_F(Gui, ZoomsAndMovesByKeys) {
    open("predicted.pftrace");
    window_->go("timeline");
    TimelineView& view = *timeline();
    const auto all = view.view();
    QTest::keyClick(&view, Qt::Key_W);
    EXPECT_LT(view.view().to - view.view().from, all.to - all.from);
    const auto zoomed = view.view();
    QTest::keyClick(&view, Qt::Key_D);
    EXPECT_GT(view.view().from, zoomed.from);
    QTest::keyClick(&view, Qt::Key_A);
    EXPECT_NEAR(view.view().from, zoomed.from, 1);
    QTest::keyClick(&view, Qt::Key_S);
    EXPECT_NEAR(view.view().to - view.view().from, all.to - all.from, 1e3);
    QTest::keyClick(&view, Qt::Key_Home);
    EXPECT_EQ(view.view().from, all.from);
}

TEST_F(Gui, SelectsByMouseAndSearchAndShowsDetails) {
    open("predicted.pftrace");
    window_->go("timeline");
    TimelineView& view = *timeline();
    QTest::keyClicks(find<QLineEdit>("search"), "conv7");
    QTest::keyClick(find<QLineEdit>("search"), Qt::Key_Return);
    ASSERT_TRUE(view.selected());
    const auto& table = *find<Table>("details");
    EXPECT_EQ(table.model_of_rows().rows().rows[0][1].text, "conv7:forward");
    QTest::keyClick(&view, Qt::Key_Period);
    EXPECT_EQ(table.model_of_rows().rows().rows[0][1].text, "conv8:forward");
    QTest::keyClick(&view, Qt::Key_F);
    EXPECT_LT(view.view().to - view.view().from, 3e6);  // a millisecond and its margins
    QTest::keyClick(&view, Qt::Key_Escape);
    EXPECT_FALSE(view.selected());
    // Click in the middle of the view, on the lane of rank 0's computing, where conv8 is shown alone.
    const auto lane = std::ranges::find_if(view.rows(), [](const TimelineRow& row) { return row.is_lane; });
    ASSERT_NE(lane, view.rows().end());
    QTest::mouseClick(&view, Qt::LeftButton, {},
                      QPoint(172 + (view.width() - 172) / 2, 56 + static_cast<int>(lane->y + lane->height / 2)));
    ASSERT_TRUE(view.selected());
    EXPECT_EQ(table.model_of_rows().rows().rows[0][1].text, "conv8:forward");
    EXPECT_FALSE(view.find_next("no such step"));
}

TEST_F(Gui, MarksAnAreaWithTheMouseAndCountsIt) {
    open("predicted.pftrace");
    window_->go("timeline");
    TimelineView& view = *timeline();
    QTest::mousePress(&view, Qt::LeftButton, {}, QPoint(180, 60));
    QTest::mouseMove(&view, QPoint(400, 100));
    QTest::mouseMove(&view, QPoint(view.width() - 1, view.height() - 1));
    QTest::mouseRelease(&view, Qt::LeftButton, {}, QPoint(view.width() - 1, view.height() - 1));
    ASSERT_TRUE(view.area());
    EXPECT_EQ(view.area()->lanes.size(), 4U);
    const auto& rows = find<Table>("details")->model_of_rows().rows().rows;
    const auto forward = std::ranges::find(rows, "■ forward", [](const auto& row) { return row[0].text; });
    ASSERT_NE(forward, rows.end());
    EXPECT_NEAR(*(*forward)[1].number, 2 * 20 * 1e-3, 1e-3);  // the first pixels are not in the area
}

TEST_F(Gui, ShowsTheCriticalPathAndArrows) {
    open("predicted.pftrace");
    window_->go("timeline");
    TimelineView& view = *timeline();
    const QImage before = view.grab().toImage();
    QTest::keyClick(&view, Qt::Key_C);
    EXPECT_EQ(view.path().size(), 21U);
    EXPECT_NE(view.grab().toImage(), before);
    ASSERT_NE(find<Table>("path"), nullptr);
    EXPECT_EQ(find<Table>("path")->model_of_rows().rows().rows.size(), 21U);
    view.find_next("allreduce");
    EXPECT_GT(colors(&view), 10);
}

TEST_F(Gui, ModelsPassQtsOwnTest) {
    TableModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    model.show({{"a", "b"}, {{{"x", {}}, seconds(1)}, {{"y", {}}}}});
    EXPECT_EQ(model.rowCount(), 2);
    EXPECT_EQ(model.data(model.index(0, 1)).toString(), "1 s");
    EXPECT_FALSE(model.data(model.index(1, 1)).isValid());  // a row may be shorter
    model.show({});
    EXPECT_EQ(model.rowCount(), 0);
    // Those of the window, and what sorts and filters them, while they change.
    std::vector<std::unique_ptr<QAbstractItemModelTester>> testers;
    for (Table* table : window_->findChildren<Table*>()) {
        testers.push_back(std::make_unique<QAbstractItemModelTester>(
            table->model(), QAbstractItemModelTester::FailureReportingMode::Fatal));
    }
    EXPECT_EQ(testers.size(), 7U);
    open("prediction.json"), open("predicted.pftrace"), open("measured.pftrace");
    for (const char* name : {"timeline", "scaling", "compare", "topology", "kernels", "runs"}) window_->go(name);
    timeline()->set_critical_path(true);
    for (Table* table : window_->findChildren<Table*>()) {
        for (int column = 0; column < table->model()->columnCount(); ++column)
            table->sortByColumn(column, column % 2 == 0 ? Qt::DescendingOrder : Qt::AscendingOrder);
        table->filter("a");
        table->filter("");
    }
}

TEST_F(Gui, CopiesCsvWithNumbersInBaseUnits) {
    EXPECT_EQ(to_csv({{"name", "time"}, {{{"a,\"b\"", {}}, seconds(0.0015)}}}), "name,time\n\"a,\"\"b\"\"\",0.0015\n");
}

TEST_F(Gui, SaysWhatIsWrongWithFilesAndLosesNothing) {
    open("predicted.pftrace");
    write("broken.json", R"({"traceEvents": [{"ph": "X", "name": !)");
    write("empty.json", "");
    for (const char* name : {"broken.json", "empty.json", "vanished.json"}) {
        window_->open(qpath(name));
        ASSERT_TRUE(wait([&] { return window_->message().contains(name); })) << name;
    }
    EXPECT_EQ(window_->session().documents.size(), 1U);
    QFile::remove(qpath("predicted.pftrace"));  // what is open stays
    window_->go("timeline");
    EXPECT_GT(colors(timeline()), 10);
}

TEST_F(Gui, TakesDroppedFiles) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(qpath("prediction.json"))});
    QDragEnterEvent enter({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window_.get(), &enter);
    QDropEvent drop({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window_.get(), &drop);
    EXPECT_TRUE(wait([&] { return window_->session().documents.size() == 1; }));
}

TEST_F(Gui, TakesAnExperimentFromAFile) {
    write("e.toml", "[experiment]\nmodel = 'vgg16'\nplan = 'data=12'\ndevices = [12]\nbatch = 7\n");
    open("prediction.json");
    window_->open(qpath("e.toml"));
    EXPECT_EQ(window_->screen(), "editor");
    EXPECT_EQ(find<QLineEdit>("plan")->text(), "data=12");
    EXPECT_EQ(find<QComboBox>("model")->currentText(), "vgg16");
    EXPECT_EQ(find<QLineEdit>("devices")->text(), "12");
    EXPECT_EQ(find<QComboBox>("machine")->currentText(), "summit");  // as before
    QTest::mouseClick(find<QPushButton>("undo"), Qt::LeftButton);
    EXPECT_EQ(find<QLineEdit>("plan")->text(), "data");
    write("broken.toml", "[experiment\n");
    window_->open(qpath("broken.toml"));
    EXPECT_THAT(window_->message().toStdString(), HasSubstr("broken.toml"));
    EXPECT_EQ(window_->session().documents.size(), 1U);
}

// A disk of 64 KB that is full: what was saved before stays, and each failure is a message.
TEST_F(Gui, FullDiskIsAMessageAndLosesNothing) {
    QDir(folder_.path()).mkdir("disk");
    const std::string disk = path("disk");
    if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
        GTEST_SKIP() << "a small disk cannot be mounted here: " << strerror(errno);
    const std::unique_ptr<const std::string, void (*)(const std::string*)> mounted(
        &disk, [](const std::string* at) { umount2(at->c_str(), MNT_DETACH); });
    window_->go("pipeline");
    auto* pipeline = find<PictureView>("pipeline_picture");
    const QString picture = qpath("disk/p.svg");
    pipeline->save(picture);
    const QByteArray before = content_of(picture);
    EXPECT_GT(before.size(), 1000);
    QFile filler(qpath("disk/filler"));
    ASSERT_TRUE(filler.open(QIODevice::WriteOnly));
    while (filler.write(QByteArray(4096, 'x')) > 0 && filler.flush()) {
    }
    filler.close();
    for (const char* name : {"disk/p.svg", "disk/p.png", "disk/p.pdf"}) {
        EXPECT_THROW(pipeline->save(qpath(name)), std::exception) << name;
    }
    EXPECT_EQ(content_of(picture), before);
    EXPECT_FALSE(QFile::exists(qpath("disk/p.png")));
    // A run whose output does not fit: its message, and what is open stays.
    open("prediction.json");
    fake("cat /dev/zero > " + disk + "/trace || exit 3");
    QString said = "-";
    window_->runner().start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return said != "-"; }));
    EXPECT_THAT(said.toStdString(), HasSubstr("No space left on device"));
    EXPECT_EQ(window_->session().documents.size(), 1U);
}

TEST_F(Gui, ChildThatIsKilledIsAMessageAndCancelIsNone) {
    fake("kill -SEGV $$");
    Runner& runner = window_->runner();
    QString said = "-";
    runner.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return said != "-"; }));
    EXPECT_THAT(said.toStdString(), HasSubstr("killed or crashed"));
    fake("exec sleep 100");
    said = "-";
    const int id = runner.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return runner.is_running(id); }));
    runner.cancel(id);
    ASSERT_TRUE(wait([&] { return said != "-"; }));
    EXPECT_EQ(said, "");
    EXPECT_EQ(runner.jobs().back()->state, "cancelled");
    fake("echo 'no space left on device' >&2; exit 3");
    runner.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return !said.isEmpty(); }));
    EXPECT_THAT(said.toStdString(), HasSubstr("no space left on device"));
    Runner missing("/no/such/program");
    said.clear();
    missing.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return !said.isEmpty(); }));
    EXPECT_THAT(said.toStdString(), HasSubstr("cannot be started"));
}

TEST_F(Gui, EditsAnExperimentLivesAndUndoes) {
    write("answer.json", prediction);
    fake("cat " + path("answer.json"));
    window_->go("editor");
    auto* plan = find<QLineEdit>("plan");
    const QString before = plan->text();
    plan->setText("datta");
    auto* verdict = find<QLabel>("verdict");
    ASSERT_TRUE(wait([&] { return verdict->text().contains("datta"); }));
    QTest::mouseClick(find<QPushButton>("undo"), Qt::LeftButton);
    EXPECT_EQ(plan->text(), before);
    ASSERT_TRUE(wait([&] { return verdict->text().contains("can be run"); }));
    auto* curve = find<PictureView>("curve");
    EXPECT_TRUE(wait([&] { return curve->shown().marks.size() > 20; }));
    QTest::mouseClick(find<QPushButton>("copy"), Qt::LeftButton);
    EXPECT_EQ(QApplication::clipboard()->text().toStdString(), command_line(window_->session().experiment));
    QTest::mouseClick(find<QPushButton>("predict"), Qt::LeftButton);
    EXPECT_TRUE(wait([&] { return !window_->session().documents.empty(); }));
    EXPECT_NE(window_->session().documents[0].prediction, nullptr);
}

TEST_F(Gui, OpensTheRunOfAPointAndTheEvidenceOfAFigure) {
    open("prediction.json");
    window_->go("scaling");
    find<Table>("points")->activated_row(0);
    EXPECT_EQ(window_->screen(), "overview");
    EXPECT_EQ(window_->session().point, 0);
    auto* page = find<PictureView>("overview_picture");
    bool clicked = false;
    for (const picture::Mark& mark : page->shown().marks) {
        if (!mark.title.starts_with("memory:")) continue;
        const auto& box = std::get<picture::Rectangle>(mark.shape);
        QTest::mouseClick(page, Qt::LeftButton, {},
                          QPoint(static_cast<int>(box.at.x + 5), static_cast<int>(box.at.y + 5)));
        clicked = true;
        break;
    }
    EXPECT_TRUE(clicked);
    EXPECT_EQ(window_->screen(), "memory");
}

TEST_F(Gui, ComparesPredictedAboveMeasured) {
    open("predicted.pftrace"), open("measured.pftrace");
    window_->go("compare");
    // Steps of 27 ms (20 * 1.1 + 5 and 20 * 1.375 + 5 = 32.5): (27 - 32.5) / 32.5 = -16.9 %.
    EXPECT_THAT(find<QLabel>("compare_verdict")->text().toStdString(), HasSubstr("-16.9 %"));
    const auto& rows = find<Table>("differences")->model_of_rows().rows().rows;
    EXPECT_EQ(rows[0][4].text, "whole step");
    EXPECT_GT(rows.size(), 20U);
    // A row's step is selected in both, and both are in sight: conv7 from 7.7 ms on and from 9.6 ms on.
    const auto row = std::ranges::find(rows, "conv7:forward", [](const auto& r) { return r[0].text; });
    ASSERT_NE(row, rows.end());
    find<Table>("differences")->chosen_row(static_cast<int>(row - rows.begin()));
    for (const char* name : {"compare_predicted", "compare_measured"}) {
        const auto* view = find<TimelineView>(name);
        ASSERT_TRUE(view->selected());
        const auto& lane = view->lanes()->lanes[view->selected()->lane];
        EXPECT_EQ(view->lanes()->whats[lane.what(view->selected()->event)].step, "conv7:forward");
        EXPECT_GT(static_cast<double>(lane.start(view->selected()->event)), view->view().from);
        EXPECT_LT(static_cast<double>(lane.end(view->selected()->event)), view->view().to);
    }
    // Each pass of a layer in the map: 1 ms predicted, 1.25 ms measured.
    find<QTabWidget>("compare_tabs")->setCurrentIndex(2);
    EXPECT_TRUE(std::ranges::any_of(find<PictureView>("differences_picture")->shown().marks, [](const auto& m) {
        return m.title == "conv7:forward : predicted 1 ms, measured 1.25 ms";
    }));
}

// Network interfaces of Summit at half of their bandwidth, then at all of it.
TEST_F(Gui, ColoursLinksByTheirLoadAtTheCursor) {
    Timeline timeline = two_ranks(false);
    timeline.title = "resnet50 on summit, data=12, predicted";
    const double half = length(timeline).value / 2;
    timeline.counters = {{"mean of links nic:up", "B/s", {{Seconds{0}, 5e9}, {Seconds{half}, 10e9}}}};
    timeline.links = {{"nic:up", "nic:up", 4, Bandwidth{10e9}, Bytes{4e6}, Bytes{1e6}},
                      {"node1:link0:gpu0>gpu1", "gpu>gpu", 1, Bandwidth{10e9}, Bytes{2e6}, Bytes{2e6}}};
    trace::write(timeline, path("links.pftrace"));
    open("links.pftrace");
    window_->go("topology");
    const auto* page = find<PictureView>("topology_picture");
    const auto says = [&](const char* words) {
        return std::ranges::any_of(page->shown().marks,
                                   [&](const auto& m) { return m.title.find(words) != std::string::npos; });
    };
    EXPECT_EQ(find<Table>("links")->model_of_rows().rows().rows.size(), 2U);
    find<QComboBox>("load")->setCurrentIndex(3);
    EXPECT_TRUE(says("nic:up: 50.0 % used"));
    find<QSlider>("load_time")->setValue(900);
    EXPECT_TRUE(says("nic:up: 100.0 % used"));
    EXPECT_FALSE(says("node1:link0"));  // node 0 is drawn
    find<Table>("links")->selectRow(1);
    EXPECT_TRUE(says("node1:link0:gpu0>gpu1: "));
    find<QComboBox>("load")->setCurrentIndex(0);
    EXPECT_FALSE(says("% used"));
}

TEST_F(Gui, ShowsCollectivesOverTheirSizes) {
    write("bench.json", R"({"context": {"host_name": "here"}, "benchmarks": [
      {"name": "allreduce:n4:1000B:f32/comm/ring", "run_type": "iteration", "real_time": 20, "time_unit": "us"},
      {"name": "allreduce:n4:10000B:f32/comm/ring", "run_type": "iteration", "real_time": 30, "time_unit": "us"},
      {"name": "allreduce:n4:100000B:f32/comm/ring", "run_type": "iteration", "real_time": 130, "time_unit": "us"},
      {"name": "allreduce:n4:1000000B:f32/comm/ring", "run_type": "iteration", "real_time": 1, "time_unit": "ms"}]})");
    open("bench.json");
    EXPECT_EQ(window_->screen(), "kernels");
    EXPECT_EQ(find<QTabWidget>("kernel_tabs")->currentIndex(), 1);
    const auto& marks = find<PictureView>("collectives_picture")->shown().marks;
    EXPECT_TRUE(std::ranges::any_of(marks, [](const auto& m) { return m.title.ends_with("1 ms, 1.5 GB/s"); }));
    find<QTabWidget>("kernel_tabs")->setCurrentIndex(2);
    EXPECT_GT(colors(find<PictureView>("residuals_picture")), 5);  // says that there are no kernels in it
}

TEST_F(Gui, RunsCommandsFromThePalette) {
    EXPECT_GT(window_->commands().size(), 15);
    window_->show_palette();
    auto* input = window_->findChild<QLineEdit*>("palette_input");
    ASSERT_NE(input, nullptr);
    QTest::keyClicks(input, "pipesch");
    QTest::keyClick(input, Qt::Key_Return);
    EXPECT_EQ(window_->screen(), "pipeline");
    QTest::keyClick(window_.get(), Qt::Key_Question, Qt::ShiftModifier);
    EXPECT_NE(window_->findChild<QWidget*>("keys"), nullptr);
}

TEST_F(Gui, CopiesAndSavesPictures) {
    window_->go("pipeline");
    window_->copy_picture();
    EXPECT_FALSE(QApplication::clipboard()->image().isNull());
    find<PictureView>("pipeline_picture")->save(qpath("p.svg"));
    EXPECT_TRUE(QFile::exists(qpath("p.svg")));
    if (QFile::exists("/dev/full")) {
        EXPECT_THROW(find<PictureView>("pipeline_picture")->save("/dev/full/p.svg"), std::exception);
    }
    EXPECT_THROW(find<PictureView>("pipeline_picture")->save(qpath("p.jpg")), std::exception);
}

TEST_F(Gui, RemembersItsSession) {
    {
        Window first(true, qpath("rehearse"));
        first.show();
        first.open(qpath("predicted.pftrace"));
        ASSERT_TRUE(wait([&] { return first.session().documents.size() == 1; }));
        first.go("memory");
        first.set_theme(picture::Theme::dark);
        first.findChild<QDockWidget*>("files_dock")->hide();
        first.close();
    }
    Window second(true, qpath("rehearse"));
    second.show();
    EXPECT_TRUE(wait([&] { return second.session().documents.size() == 1; }));
    EXPECT_EQ(second.screen(), "memory");
    EXPECT_TRUE(second.findChild<QDockWidget*>("files_dock")->isHidden());
    EXPECT_EQ(QSettings().value("theme").toString(), "dark");
}

}  // namespace
}  // namespace rehearse::gui

int main(int argc, char** argv) {
    QTemporaryDir home;  // settings of the tests are no user's
    qputenv("XDG_CONFIG_HOME", home.path().toUtf8());
    QApplication application(argc, argv);
    QApplication::setOrganizationName("Rehearse");
    QApplication::setApplicationName("rehearse-gui-test");
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
