// SPDX-License-Identifier: Apache-2.0
// How long a frame and opening take at a million and ten million events: printed for docs/performance.md, and held to
// limits so loose that only a wrong order of magnitude passes them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QImage>
#include <algorithm>
#include <chrono>
#include <fstream>

#include "gui/timeline_view.hpp"

namespace rehearse::gui {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double resident_bytes() {
    std::ifstream file("/proc/self/statm");
    double pages = 0;
    file >> pages >> pages;
    return pages * 4096;
}

// Lanes full of events of eight activities that repeat with another length on every lane.
std::shared_ptr<const picture::Lanes> timeline_of(std::size_t events, std::size_t lanes) {
    picture::LanesBuilder builder("frames", false, static_cast<std::int64_t>(lanes));
    std::vector<std::uint32_t> whats;
    for (int i = 0; i < 64; ++i) {
        whats.push_back(
            builder.what({fmt::format("step{}:forward", i), "", "", 0, 1e6, 0, static_cast<picture::Activity>(i % 8)}));
    }
    for (std::size_t l = 0; l < lanes; ++l) {
        const std::size_t lane = builder.lane(static_cast<std::int64_t>(l), Stream::compute, "compute");
        std::uint64_t state = l * 977 + 13;
        std::int64_t now = 0;
        for (std::size_t i = 0; i < events / lanes; ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            const auto length = static_cast<std::int64_t>(500 + (state >> 33U) % 1000);
            builder.add(lane, now, length, whats[(i + l) % whats.size()]);
            now += length + static_cast<std::int64_t>((state >> 50U) % 300);
        }
    }
    return std::make_shared<picture::Lanes>(builder.finish());
}

// The 95th percentile of frames while the view is moved a little each time.
double p95(TimelineView& view, QImage& image, double from, double span) {
    std::vector<double> frames;
    for (int i = 0; i < 40; ++i) {
        view.set_view({from + span * 0.001 * i, from + span + span * 0.001 * i});
        const auto begin = Clock::now();
        static_cast<QWidget&>(view).render(&image);
        frames.push_back(ms_since(begin));
    }
    std::ranges::sort(frames);
    return frames[frames.size() * 95 / 100];
}

TEST(Frames, OfTheTimelineAreDrawnInTime) {
    for (const std::size_t events : {std::size_t{1'000'000}, std::size_t{10'000'000}}) {
        const double before = resident_bytes();
        const auto begin = Clock::now();
        const auto lanes = timeline_of(events, 1024);
        const double built = ms_since(begin);
        const double per_event = (resident_bytes() - before) / static_cast<double>(lanes->size());
        TimelineView view;
        view.resize(1920, 1080);
        view.show(lanes);
        QImage image(1920, 1080, QImage::Format_RGB32);
        static_cast<QWidget&>(view).render(&image);
        const double span = static_cast<double>(lanes->last - lanes->first);
        const double out = p95(view, image, 0, span);
        const double in16 = p95(view, image, 0.4 * span, span / 16);
        for (std::int64_t rank = 0; rank < 8; ++rank) view.open_rank(rank, true);
        const double in1000 = p95(view, image, 0.4 * span, span / 1000);
        std::vector<std::size_t> all(lanes->lanes.size());
        for (std::size_t l = 0; l < all.size(); ++l) all[l] = l;
        const auto counting = Clock::now();
        const auto counted = statistics(*lanes, all, lanes->first + 1000, lanes->last - 1000);
        fmt::print(
            "{} events on 1024 lanes: built in {:.0f} ms, {:.1f} bytes an event ({:.1f} counted); frames p95 {:.1f} ms "
            "all, {:.1f} ms 1/16, {:.1f} ms 1/1000; statistics of all {:.2f} ms\n",
            lanes->size(), built, per_event,
            static_cast<double>(lanes->memory_bytes()) / static_cast<double>(lanes->size()), out, in16, in1000,
            ms_since(counting));
        EXPECT_GT(counted.events, lanes->size() / 2);
        EXPECT_LT(out, 167);
        EXPECT_LT(in16, 167);
        EXPECT_LT(in1000, 167);
        EXPECT_LT(static_cast<double>(lanes->memory_bytes()) / static_cast<double>(lanes->size()), 40);
    }
}

}  // namespace
}  // namespace rehearse::gui

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
