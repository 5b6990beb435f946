// SPDX-License-Identifier: Apache-2.0
// The window as a user has it, without a screen: its screens, by keys and mouse.
#include "gui/window.hpp"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QtTest/QTest>

#include "gui/picture_view.hpp"
#include "gui/timeline_size.hpp"
#include "tests/gui/window_fixture.hpp"

namespace rehearse::gui {
namespace {

using testing::HasSubstr;

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

// Columns that stay when the view is moved are not drawn again.
TEST_F(Gui, DrawsTheSameWhereTheViewWasMovedTo) {
    open("predicted.pftrace");
    const auto image_of = [](TimelineView& view) {
        QImage image(view.size(), QImage::Format_RGB32);
        static_cast<QWidget&>(view).render(&image);
        return image;
    };
    const auto shown = [&](TimelineView& view) {
        view.resize(size::heads + 1000, 300);
        view.show(timeline()->lanes());
        view.open_rank(0, false), view.open_rank(1, true);
    };
    TimelineView moved, anew;
    shown(moved), shown(anew);
    moved.set_view({2e6, 12e6});  // a pixel is 10 us
    image_of(moved);
    for (const int pixels : {37, -250, 1, 0, 2000, -900, 400}) {
        const picture::TimeView view = moved.view();
        moved.set_view({view.from + pixels * 1e4, view.to + pixels * 1e4});
        anew.show_all();
        image_of(anew);  // of another zoom
        anew.set_view(moved.view());
        EXPECT_EQ(image_of(moved), image_of(anew)) << pixels;
    }
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
    const std::size_t before = view.rows().size();
    QTest::keyClick(&view, Qt::Key_O);
    EXPECT_LT(view.rows().size(), before);
    QTest::keyClick(&view, Qt::Key_O);
    EXPECT_EQ(view.rows().size(), before);
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
    const auto forward = std::ranges::find(rows, "forward", [](const auto& row) { return row[0].text; });
    ASSERT_NE(forward, rows.end());
    EXPECT_NEAR(*(*forward)[1].number, 2 * 20 * 1e-3, 1e-3);  // the first pixels are not in the area
    EXPECT_NEAR(*(*forward)[3].number, 2 * 20, 2);            // those that begin in it
    EXPECT_EQ((*forward)[0].color, picture::color_of(picture::Activity::forward, picture::Theme::light));
    EXPECT_THAT(find<QLabel>("legend")->text().toStdString(), HasSubstr("</span>&nbsp;forward"));
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
    const int left = (Qt::AlignLeft | Qt::AlignVCenter).toInt(), right = (Qt::AlignRight | Qt::AlignVCenter).toInt();
    EXPECT_EQ(model.data(model.index(0, 0), Qt::TextAlignmentRole).toInt(), left);
    EXPECT_EQ(model.data(model.index(0, 1), Qt::TextAlignmentRole).toInt(), right);  // a column of numbers
    EXPECT_EQ(model.headerData(1, Qt::Horizontal, Qt::TextAlignmentRole).toInt(), right);
    model.show({});
    EXPECT_EQ(model.rowCount(), 0);
    // Those of the window, and what sorts and filters them, while they change.
    std::vector<std::unique_ptr<QAbstractItemModelTester>> testers;
    for (Table* table : window_->findChildren<Table*>()) {
        testers.push_back(std::make_unique<QAbstractItemModelTester>(
            table->model(), QAbstractItemModelTester::FailureReportingMode::Fatal));
    }
    EXPECT_EQ(testers.size(), 8U);
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
    plan->setText("data:zero=1");  // what is shown was of another plan
    EXPECT_LT(curve->shown().marks.size(), 5U);
    EXPECT_FALSE(verdict->text().contains("can be run"));
    QTest::mouseClick(find<QPushButton>("undo"), Qt::LeftButton);
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
    const auto verdict = [&] { return find<QLabel>("compare_verdict")->text().toStdString(); };
    ASSERT_TRUE(wait([&] { return !verdict().empty(); }));
    EXPECT_THAT(verdict(), HasSubstr("-16.9 %"));
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
