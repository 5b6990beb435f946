// SPDX-License-Identifier: Apache-2.0
// What stands on the screens: words and figures of their pictures against closed forms and what was put in.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDropEvent>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QtTest/QTest>

#include "gui/picture_view.hpp"
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

TEST_F(Gui, ShowsMemoryByKindBelowItsCapacityAndOverTime) {
    open("prediction.json"), open("predicted.pftrace");
    window_->go("memory");
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
    // 1e6 / 5540 a second = 180.5 s on 6 devices.
    EXPECT_THAT(words(find<PictureView>("front_picture")),
                Contains(HasSubstr("6 devices: 180.5 s for a million samples")));
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
    for (QMenu* menu : remembers.findChildren<QMenu*>()) {
        if (menu->title() != "Open recent") continue;
        ASSERT_FALSE(menu->actions().isEmpty());
        menu->actions().front()->trigger();
    }
    EXPECT_TRUE(wait([&] { return remembers.session().documents.size() == 2; }));
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

}  // namespace
}  // namespace rehearse::gui
