// SPDX-License-Identifier: Apache-2.0
// What stands on the screens: words and figures of their pictures against closed forms and what was put in.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QDropEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QtTest/QTest>

#include "gui/picture_view.hpp"
#include "gui/timeline_size.hpp"
#include "tests/gui/window_fixture.hpp"

namespace rehearse::gui {
namespace {

using testing::Contains;
using testing::HasSubstr;

// All words of a picture, those under the pointer too.
std::vector<std::string> words(const PictureView* view) {
    std::vector<std::string> all;
    for (const picture::Mark& mark : view->shown().marks) {
        if (const auto* text = std::get_if<picture::Text>(&mark.shape)) all.push_back(text->text);
        if (!mark.title.empty()) all.push_back(mark.title);
    }
    return all;
}

// A flush of p stages and m micro-batches leaves (p - 1) / (m + p - 1) of the time idle, by GPipe and by 1F1B.
TEST_F(Gui, ShowsTwoPipelinesBelowEachOther) {
    window_->go("pipeline");
    const auto* page = find<PictureView>("pipeline_picture");
    const auto idle = [&](const char* share) {
        int count = 0;
        for (const std::string& word : words(page)) count += word.find(share) != std::string::npos ? 1 : 0;
        return count;
    };
    EXPECT_EQ(idle("27.3 % idle"), 10);  // 3 / 11: of four stages each, and of both in all
    window_->findChild<QWidget*>("lower_pipeline")->findChild<QSpinBox*>("micro-batches")->setValue(12);
    EXPECT_EQ(idle("27.3 % idle"), 5);
    EXPECT_EQ(idle("20.0 % idle"), 5);  // 3 / 15
}

// The plan that stands in a timeline's title is drawn above it, as it would be without messages.
TEST_F(Gui, PlansThePipelineOfTheTimelineThatIsOpen) {
    Timeline timeline = two_ranks(false);
    timeline.title = "a net on summit, pipe=3:schedule=gpipe:microbatches=6,data, predicted";
    trace::write(timeline, path("pipe.pftrace"));
    open("pipe.pftrace");
    window_->go("pipeline");
    EXPECT_THAT(words(find<PictureView>("pipeline_picture")),
                testing::IsSupersetOf({"gpipe: 3 stages, 6 micro-batches", "25.0 % idle"}));  // 2 / 8
}

TEST_F(Gui, ShowsMemoryByKindBelowItsCapacityAndOverTime) {
    open("prediction.json"), open("predicted.pftrace");
    window_->go("memory");
    const auto& rows = find<Table>("memory_table")->model_of_rows().rows();
    EXPECT_THAT(rows.titles, testing::ElementsAre("kind", "every rank"));
    EXPECT_EQ(rows.rows.back()[1].number, 5e7 + 1.3e9);
    EXPECT_THAT(words(find<PictureView>("memory_picture")), Contains(HasSubstr("capacity 16")));
    EXPECT_THAT(words(find<PictureView>("memory_picture")), Contains(HasSubstr("activations")));
    find<QTabWidget>("memory_tabs")->setCurrentIndex(1);
    EXPECT_THAT(words(find<PictureView>("memory_over_time")), Contains(HasSubstr("memory rank 0")));
}

TEST_F(Gui, ShowsScalingWithItsBandsAndTheFrontOfTimeDevicesAndMemory) {
    open("prediction.json");
    window_->go("scaling");
    const auto* curve = find<PictureView>("scaling_picture");
    EXPECT_THAT(words(curve), Contains(HasSubstr("384 devices: 37 ms a step (30 ms to 45 ms)")));
    find<QComboBox>("scaling_metric")->setCurrentIndex(2);
    EXPECT_THAT(words(curve), Contains(HasSubstr("efficiency 93.0 %")));
    // 192 samples in 34 ms: 1e6 take 177.1 s on 6 devices.
    EXPECT_THAT(words(find<PictureView>("front_picture")),
                Contains(HasSubstr("6 devices: 177.1 s for a million samples")));
}

// Of two curves with points at the same numbers of devices, the one that was clicked.
TEST_F(Gui, OpensTheRunOfThePointThatIsClicked) {
    std::string other = prediction;
    other.replace(other.find("\"plan\": \"data\""), 14, "\"plan\": \"pipe\"");
    write("other.json", other);
    open("prediction.json"), open("other.json");
    for (const char* name : {"scaling_picture", "front_picture"}) {
        for (const int document : {0, 1}) {
            window_->go("scaling");
            const auto* view = find<PictureView>(name);
            const char* plan = document == 0 ? ", data, mixed" : ", pipe, mixed";
            const auto mark = std::ranges::find_if(view->shown().marks, [&](const picture::Mark& m) {
                return m.title.starts_with("384 devices") && m.title.ends_with(plan);
            });
            ASSERT_NE(mark, view->shown().marks.end()) << name << plan;
            view->clicked(*mark);
            EXPECT_EQ(window_->screen(), "overview");
            EXPECT_EQ(window_->session().prediction, document) << name;
            EXPECT_EQ(window_->session().point, 1);
        }
    }
}

TEST_F(Gui, ShowsTheRoofsThatWereMeasuredBesideKernels) {
    write("bench.json", R"({"context": {"host_name": "here", "roofs": [
        {"name": "f32", "flop/s": 1e11}, {"name": "L1", "B/s": 1e11}, {"name": "memory", "B/s": 1e10}]}, "benchmarks": [
      {"name": "a/b", "run_type": "iteration", "real_time": 1, "time_unit": "ms", "flop/s": 5e10, "B/s": 2e9}]})");
    open("bench.json");
    const auto* page = find<PictureView>("rates_picture");
    EXPECT_THAT(words(page), testing::IsSupersetOf({"f32 100 GFLOP/s", "L1 100 GB/s", "memory 10 GB/s"}));
}

// What differs from row to row has a column of its own; a column without a figure is not there.
TEST_F(Gui, ListsKernelsByProblemAndImplementation) {
    write("bench.json", R"({"context": {}, "benchmarks": [
      {"name": "conv2d:n8/cpu/direct/real_time", "real_time": 1, "time_unit": "ms", "flop/s": 5e10},
      {"name": "BM_Sort", "real_time": 2, "time_unit": "ms"}]})");
    open("bench.json");
    const auto* table = find<Table>("benchmarks");
    const auto& rows = table->model_of_rows().rows();
    EXPECT_EQ(rows.rows[0][0].text, "conv2d:n8");
    EXPECT_EQ(rows.rows[0][1].text, "cpu/direct");
    EXPECT_EQ(rows.rows[1][0].text, "BM_Sort");
    for (std::size_t c = 0; c < rows.titles.size(); ++c)
        EXPECT_EQ(table->isColumnHidden(static_cast<int>(c)), c > 3) << rows.titles[c];  // only time and rate are known
}

// Before anything is open: an example goes into the editor, a card to its screen.
TEST_F(Gui, BeginsWithExamplesAndWhatWasOpenedLast) {
    QSettings().setValue("recent", QStringList(qpath("prediction.json")));
    window_->session().refresh();
    const auto* page = find<PictureView>("overview_picture");
    const auto click = [&](const std::string& title) {
        window_->go("overview");
        const auto mark = std::ranges::find(page->shown().marks, title, &picture::Mark::title);
        ASSERT_NE(mark, page->shown().marks.end()) << title;
        page->clicked(*mark);
    };
    click("example: GPT-3 on Selene");
    EXPECT_EQ(window_->screen(), "editor");
    EXPECT_EQ(find<QComboBox>("model")->currentText(), "gpt3-175b");
    EXPECT_TRUE(find<QPushButton>("undo")->isEnabled());
    click("pipeline: Alt+5");
    EXPECT_EQ(window_->screen(), "pipeline");
    click("recent: " + path("prediction.json"));
    EXPECT_TRUE(wait([&] { return window_->session().documents.size() == 1; }));
}

TEST_F(Gui, UnfoldsTheOptionsOfAPlansAxis) {
    window_->go("editor");
    auto* help = find<QLabel>("plan_help");
    EXPECT_THAT(help->text().toStdString(), testing::Not(HasSubstr(":chunks")));
    Q_EMIT help->linkActivated("pipe");
    EXPECT_THAT(help->text().toStdString(), HasSubstr(":chunks"));
    Q_EMIT help->linkActivated("pipe");
    EXPECT_THAT(help->text().toStdString(), testing::Not(HasSubstr(":chunks")));
}

// The links' load follows the pointer in the timeline beside; closed, the screen is back in the middle.
TEST_F(Gui, ShowsAScreenBesideAnother) {
    Timeline written = two_ranks(false);
    written.title = "resnet50 on summit, data=12, predicted";
    const double half = length(written).value / 2;
    written.counters = {{"mean of links nic:up", "B/s", {{Seconds{0}, 5e9}, {Seconds{half}, 10e9}}}};
    written.links = {{"nic:up", "nic:up", 4, Bandwidth{10e9}, Bytes{4e6}, Bytes{1e6}}};
    trace::write(written, path("links.pftrace"));
    open("links.pftrace");
    window_->go("timeline");
    window_->put_beside("topology");
    QApplication::processEvents();
    auto* page = find<PictureView>("topology_picture");
    EXPECT_TRUE(page->isVisible());
    EXPECT_TRUE(timeline()->isVisible());
    find<QComboBox>("load")->setCurrentIndex(3);
    const auto point_at = [&](double share) {
        const TimelineView& view = *timeline();
        QTest::mouseMove(timeline(), QPoint(172 + static_cast<int>(share * (view.width() - 172)), 100));
        QApplication::processEvents();
    };
    point_at(0.25);
    EXPECT_THAT(words(page), Contains(HasSubstr("nic:up: 50.0 % used")));
    point_at(0.75);
    EXPECT_THAT(words(page), Contains(HasSubstr("nic:up: 100.0 % used")));
    window_->findChild<QDockWidget*>("beside_topology")->close();
    EXPECT_FALSE(page->isVisible());
    window_->go("topology");
    EXPECT_TRUE(page->isVisible());
}

// A window too narrow for both has one below the other, and keeps its size.
TEST_F(Gui, ShowsAScreenBelowWhereTheWindowIsNarrow) {
    for (const bool is_narrow : {true, false}) {
        window_ = std::make_unique<Window>(false, qpath("rehearse"));
        const QSize size = is_narrow ? QSize(800, 600) : QSize(1400, 900);
        window_->resize(size);
        window_->show();
        open("predicted.pftrace");
        window_->go("timeline");
        window_->put_beside("topology");
        QApplication::processEvents();
        EXPECT_EQ(window_->size(), size);
        auto* dock = window_->findChild<QDockWidget*>("beside_topology");
        const Qt::DockWidgetArea area = is_narrow ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea;
        EXPECT_EQ(window_->dockWidgetArea(dock), area);
        EXPECT_TRUE(timeline()->isVisible());
        EXPECT_GT(timeline()->height(), 100);
    }
}

TEST_F(Gui, ShowsTheTrafficBetweenRanks) {
    window_->session().experiment = {};
    window_->session().experiment.devices = "6";
    window_->go("topology");
    find<QTabWidget>("topology_tabs")->setCurrentIndex(2);
    EXPECT_THAT(words(find<PictureView>("traffic_picture")), Contains(HasSubstr("rank 0 to rank 1: ")));
}

TEST_F(Gui, HasPerfettosKeysForSearchPinsAndTheSelectionsTime) {
    open("predicted.pftrace");
    window_->go("timeline");
    TimelineView& view = *timeline();
    view.setFocus();
    QTest::keyClick(&view, Qt::Key_Slash);
    EXPECT_TRUE(find<QLineEdit>("search")->hasFocus());
    QTest::keyClicks(find<QLineEdit>("search"), "conv3");
    QTest::keyClick(find<QLineEdit>("search"), Qt::Key_Return);
    QTest::keyClick(find<QLineEdit>("search"), Qt::Key_Return);  // the next one: of rank 1
    ASSERT_TRUE(view.selected());
    EXPECT_EQ(view.lanes()->lanes[view.selected()->lane].rank, 1);
    EXPECT_EQ(view.rows().front().rank, 0);
    QTest::keyClick(&view, Qt::Key_P);
    EXPECT_EQ(view.rows().front().rank, 1);
    EXPECT_TRUE(view.rows().front().is_pinned);
    QTest::keyClick(&view, Qt::Key_P);
    EXPECT_EQ(view.rows().front().rank, 0);
    const double before = view.rows().back().y;
    QTest::keyClick(&view, Qt::Key_W, Qt::ShiftModifier);
    EXPECT_GE(view.rows().back().y, before);
    QTest::keyClick(&view, Qt::Key_R);
    ASSERT_TRUE(view.area());
    EXPECT_NEAR(view.area()->to - view.area()->from, 1e6, 2);  // a millisecond
    EXPECT_EQ(view.area()->lanes.size(), 4U);
}

TEST_F(Gui, TakesADroppedExperimentAndKeepsWhatWasOpenedLast) {
    write("e.toml", "[experiment]\nmodel = 'vgg16'\n");
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(qpath("e.toml")), QUrl::fromLocalFile(qpath("predicted.pftrace"))});
    QDragEnterEvent enter({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window_.get(), &enter);
    QDropEvent drop({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window_.get(), &drop);
    EXPECT_EQ(find<QComboBox>("model")->currentText(), "vgg16");
    EXPECT_TRUE(wait([&] { return window_->session().documents.size() == 1; }));
    // A window that remembers lists it, and opens it again from there.
    Window remembers(true, qpath("rehearse"));
    remembers.open(qpath("prediction.json"));
    ASSERT_TRUE(wait([&] { return remembers.session().documents.size() == 1; }));
    EXPECT_EQ(QSettings().value("recent").toStringList().front(), qpath("prediction.json"));
    remembers.session().documents.clear();
    for (QMenu* menu : remembers.findChildren<QMenu*>()) {
        if (menu->title() != "Open recent") continue;
        ASSERT_FALSE(menu->actions().isEmpty());
        menu->actions().front()->trigger();
    }
    EXPECT_TRUE(wait([&] { return remembers.session().documents.size() == 1; }));
}

TEST_F(Gui, ScalesItsTextAndCopiesTablesAsCsv) {
    open("predicted.pftrace");
    window_->go("timeline");
    const double before = QApplication::font().pointSizeF();
    QTest::keyClick(window_.get(), Qt::Key_Plus, Qt::ControlModifier);
    EXPECT_NEAR(QApplication::font().pointSizeF(), 1.1 * before, 0.01);
    // A picture as a whole: it has less room for more of its own points.
    window_->go("pipeline");
    const auto* page = find<PictureView>("pipeline_picture");
    EXPECT_NEAR(page->shown().width, page->width() / 1.1, 1);
    const picture::Mark* mark = nullptr;
    for (const picture::Mark& each : page->shown().marks) {
        if (!each.title.empty() && std::holds_alternative<picture::Rectangle>(each.shape)) mark = &each;
    }
    ASSERT_NE(mark, nullptr);
    const auto& box = std::get<picture::Rectangle>(mark->shape);
    const picture::Mark* under = page->mark_at(1.1 * QPointF(box.at.x + box.width / 2, box.at.y + box.height / 2));
    ASSERT_NE(under, nullptr);
    EXPECT_EQ(under->title, mark->title);
    QTest::keyClick(window_.get(), Qt::Key_0, Qt::ControlModifier);
    EXPECT_NEAR(page->shown().width, page->width(), 1);
    window_->go("timeline");
    EXPECT_NEAR(QApplication::font().pointSizeF(), before, 0.01);
    auto* table = find<Table>("details");
    table->setFocus();
    QTest::keyClick(table, Qt::Key_C, Qt::ControlModifier);
    const std::string csv = QApplication::clipboard()->text().toStdString();
    EXPECT_EQ(csv, to_csv(table->model_of_rows().rows()));
}

// Measured: a warm-up of 100 ms, then steps of 40, 30 and 20 ms. The one in the middle, of 30 ms from 140 ms on, is the
// one whose time the figures have, and is what is looked at.
TEST_F(Gui, ComparesTheIterationInTheMiddleNotTheWarmUp) {
    const auto steps = [](bool measured, std::vector<double> lengths) {
        Timeline timeline{measured ? "net, data=1, batch 4 a rank, measured" : "net on summit, data=1, predicted",
                          measured,
                          1,
                          {},
                          {}};
        double now = 0;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            timeline.events.push_back({RankIndex{0},
                                       Stream::compute,
                                       "a:forward",
                                       "a",
                                       "forward",
                                       0,
                                       static_cast<int>(i),
                                       Seconds{now},
                                       Seconds{now + lengths[i]},
                                       {},
                                       {}});
            now += lengths[i];
        }
        return timeline;
    };
    trace::write(steps(false, {0.03}), path("p.pftrace"));
    trace::write(steps(true, {0.1, 0.04, 0.03, 0.02}), path("m.pftrace"));
    open("p.pftrace"), open("m.pftrace");
    window_->go("compare");
    const auto verdict = [&] { return find<QLabel>("compare_verdict")->text().toStdString(); };
    ASSERT_TRUE(wait([&] { return !verdict().empty(); }));
    EXPECT_THAT(verdict(), HasSubstr("0.0 %"));
    EXPECT_THAT(verdict(), HasSubstr("measured: median of 3 iterations (the first, a warm-up, left out)"));
    const auto view = find<TimelineView>("compare_measured")->view();
    EXPECT_NEAR(view.from, 140e6, 1e6);
    EXPECT_NEAR(view.to, 170e6, 6e6);
    EXPECT_NEAR(find<TimelineView>("compare_predicted")->view().from, 0, 1e6);
    find<Table>("differences")->chosen_row(3);
    const auto* measured = find<TimelineView>("compare_measured");
    ASSERT_TRUE(measured->selected());
    EXPECT_EQ(measured->lanes()->lanes[0].iteration(measured->selected()->event), 2);
}

TEST_F(Gui, RefusesToCompareDifferentNetworks) {
    for (const bool measured : {false, true}) {
        Timeline timeline = two_ranks(measured);
        timeline.title =
            measured ? "resnet101, data=2, batch 4 a rank, measured" : "resnet50 on summit, data=2, predicted";
        trace::write(timeline, path(measured ? "m.pftrace" : "p.pftrace"));
    }
    open("p.pftrace"), open("m.pftrace");
    window_->go("compare");
    const auto says = [&] {
        const auto& marks = find<PictureView>("differences_picture")->shown().marks;
        return std::ranges::any_of(marks, [](const picture::Mark& mark) {
            const auto* text = std::get_if<picture::Text>(&mark.shape);
            return text != nullptr && text->text.find("different networks") != std::string::npos;
        });
    };
    find<QTabWidget>("compare_tabs")->setCurrentIndex(2);
    EXPECT_TRUE(wait(says));
    EXPECT_EQ(find<QLabel>("compare_verdict")->text(), "");
}

// What is dragged over is named while the button is down: half of the view's width is half of its time.
TEST_F(Gui, NamesTheExtentOfAnAreaWhileItIsDragged) {
    open("predicted.pftrace");
    window_->go("timeline");
    TimelineView& view = *timeline();
    view.set_view({0, 20e6});
    const int left = size::heads, width = view.width() - left;
    QTest::mousePress(&view, Qt::LeftButton, {}, QPoint(left + width / 4, 70));
    const QImage before = view.grab().toImage();
    QTest::mouseMove(&view, QPoint(left + width / 2, 90));
    QTest::mouseMove(&view, QPoint(left + width / 4 + width / 2, 100));
    ASSERT_TRUE(view.area());
    EXPECT_NEAR(view.area()->to - view.area()->from, 10e6, 5e4);
    EXPECT_THAT(view.extent(), testing::MatchesRegex("(10\\.0|9\\.9)[0-9] ms"));
    EXPECT_NE(view.grab().toImage(), before);
    QTest::mouseRelease(&view, Qt::LeftButton, {}, QPoint(left + width / 4 + width / 2, 100));
    view.select_area(TimelineView::Area{1000, 1000 + 3e6, {0}});
    view.set_view({0, 2000});  // a pixel is about two nanoseconds: to the nanosecond
    EXPECT_EQ(view.extent(), "3.000000 ms");
}

}  // namespace
}  // namespace rehearse::gui
