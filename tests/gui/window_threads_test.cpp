// SPDX-License-Identifier: Apache-2.0
// What takes long does so in threads: the window answers meanwhile.
#include <QLabel>
#include <QSemaphore>
#include <QSpinBox>
#include <QThreadPool>
#include <QtTest/QTest>

#include "gui/picture_view.hpp"
#include "tests/gui/window_fixture.hpp"

namespace rehearse::gui {
namespace {

// With all threads taken, what needs one comes later, and the window answers meanwhile.
TEST_F(Gui, NeverWaitsForItsThreads) {
    QThreadPool& pool = *QThreadPool::globalInstance();
    QSemaphore free;
    const auto block = [&] {
        for (int i = 0; i < pool.maxThreadCount(); ++i) pool.start([&] { free.acquire(); });
    };
    const auto answers = [&] {
        window_->go("pipeline");
        const auto* page = find<PictureView>("pipeline_picture");
        auto* stages = find<QWidget>("upper_pipeline")->findChild<QSpinBox*>("stages");
        const std::size_t before = page->shown().marks.size();
        stages->setValue(stages->value() + 1);
        EXPECT_GT(page->shown().marks.size(), before);
        EXPECT_TRUE(window_->is_busy());
        free.release(pool.maxThreadCount());
    };
    block();
    window_->open(qpath("predicted.pftrace")), window_->open(qpath("measured.pftrace"));
    EXPECT_TRUE(window_->session().documents.empty());
    answers();
    ASSERT_TRUE(wait([&] { return window_->session().documents.size() == 2 && pool.activeThreadCount() == 0; }));
    block();
    window_->go("compare");
    const auto* verdict = find<QLabel>("compare_verdict");
    EXPECT_TRUE(verdict->text().isEmpty());
    answers();
    EXPECT_TRUE(wait([&] { return !verdict->text().isEmpty() && pool.activeThreadCount() == 0; }));
}

// 120,000 events one behind the other: the way through them is found in a thread.
TEST_F(Gui, FindsTheCriticalPathOfALargeTimelineInAThread) {
    picture::LanesBuilder builder("large", false, 2);
    const auto work = builder.what({"f", "", "", 0, 0, 0, picture::Activity::forward});
    const std::size_t lane = builder.lane(0, Stream::compute, "compute");
    for (std::int64_t i = 0; i < 120'000; ++i) builder.add(lane, 10 * i, 8, work);
    const auto lanes = std::make_shared<picture::Lanes>(builder.finish());
    TimelineView view;
    view.show(lanes);
    view.set_critical_path(true);
    EXPECT_TRUE(view.path().empty());
    EXPECT_TRUE(wait([&] { return view.path().size() == 100'000; }));  // at most so many
    EXPECT_EQ(view.path().back().at.event, 119'999U);
}

}  // namespace
}  // namespace rehearse::gui
