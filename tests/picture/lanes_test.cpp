// SPDX-License-Identifier: Apache-2.0
// Lanes against loops over the events, and pixels against the share of time that each of them is.
#include "picture/lanes.hpp"

#include <gmock/gmock.h>

#include <random>

#include "picture/raster.hpp"
#include "picture/shares.hpp"
#include "picture/timeline_picture.hpp"

namespace rehearse::picture {
namespace {

What what(std::string step, Activity activity) { return {std::move(step), "", "", 0, 0, 0, activity}; }

struct Plain {
    std::int64_t start, end;
    Activity activity;
};

// `count` events that follow each other with gaps, of two kinds; the same as plain intervals.
Lanes random_lane(int count, std::vector<Plain>& plain, unsigned seed = 7) {
    std::mt19937 random(seed);
    LanesBuilder builder("t", false, 1);
    const auto lane = builder.lane(0, Stream::compute, "compute");
    const auto forward = builder.what(what("f", Activity::forward));
    const auto update = builder.what(what("u", Activity::update));
    std::int64_t now = 0;
    for (int i = 0; i < count; ++i) {
        now += random() % 50;
        const std::int64_t length = random() % 100;
        const bool is_forward = random() % 3 != 0;
        builder.add(lane, now, length, is_forward ? forward : update);
        plain.push_back({now, now + length, is_forward ? Activity::forward : Activity::update});
        now += length;
    }
    return builder.finish();
}

TEST(Lanes, StatisticsOfAnAreaAreThoseOfALoopOverAllEvents) {
    std::vector<Plain> plain;
    const Lanes lanes = random_lane(1000, plain);
    std::mt19937 random(1);
    const std::vector<std::size_t> which{0};
    for (int trial = 0; trial < 200; ++trial) {
        std::int64_t from = static_cast<std::int64_t>(random() % static_cast<unsigned>(lanes.last));
        std::int64_t to = static_cast<std::int64_t>(random() % static_cast<unsigned>(lanes.last));
        if (from > to) std::swap(from, to);
        if (from == to) ++to;
        std::array<std::int64_t, activity_count> busy{};
        for (const Plain& p : plain) {
            busy[static_cast<std::size_t>(p.activity)] +=
                std::max<std::int64_t>(0, std::min(p.end, to) - std::max(p.start, from));
        }
        EXPECT_EQ(statistics(lanes, which, from, to).busy, busy) << from << " to " << to;
    }
}

TEST(Lanes, FindTheEventUnderThePointer) {
    std::vector<Plain> plain;
    const Lanes lanes = random_lane(300, plain);
    for (std::int64_t ns = 0; ns < lanes.last; ns += 7) {
        std::optional<std::size_t> expected;
        for (std::size_t i = 0; i < plain.size(); ++i) {
            if (plain[i].start <= ns && ns < plain[i].end) expected = i;
        }
        EXPECT_EQ(lanes.lanes[0].at(ns), expected) << ns;
    }
}

TEST(Lanes, StatisticsByStepCountWhatBegins) {
    std::vector<Plain> plain;
    const Lanes lanes = random_lane(400, plain);
    const std::vector<std::size_t> which{0};
    std::int64_t total = 0;
    std::size_t count = 0;
    for (const Plain& p : plain) {
        if (p.start < 1000 || p.start >= 20000 || p.activity != Activity::forward) continue;
        total += p.end - p.start;
        ++count;
    }
    const auto rows = statistics_by_step(lanes, which, 1000, 20000);
    const auto f = std::ranges::find(rows, "f", &NamedStatistics::step);
    ASSERT_NE(f, rows.end());
    EXPECT_EQ(f->total, total);
    EXPECT_EQ(f->count, count);
}

// Of an event of 100 ns that begins in an area of 10 ns, 4 ns lie in it; of one that began before it, 6.
TEST(Lanes, StatisticsByStepCountTheTimeInsideTheArea) {
    LanesBuilder builder("t", false, 1);
    const auto lane = builder.lane(0, Stream::compute, "compute");
    builder.add(lane, 50, 56, builder.what(what("before", Activity::forward)));
    builder.add(lane, 106, 100, builder.what(what("long", Activity::forward)));
    const Lanes lanes = builder.finish();
    const auto rows = statistics_by_step(lanes, std::vector<std::size_t>{0}, 100, 110);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].step, "before");
    EXPECT_EQ(rows[0].inside, 6);
    EXPECT_EQ(rows[0].count, 0U);
    EXPECT_EQ(rows[1].inside, 4);
    EXPECT_EQ(rows[1].count, 1U);
    EXPECT_EQ(rows[1].total, 100);
}

// torch.compile gives a kernel and the call that launches it one name.
TEST(Lanes, StatisticsByStepTellActivitiesOfOneNameApart) {
    LanesBuilder builder("t", false, 1);
    const auto lane = builder.lane(0, Stream::compute, "compute");
    const auto call = builder.what(what("triton", Activity::other)),
               kernel = builder.what(what("triton", Activity::forward));
    builder.add(lane, 0, 10, call);
    builder.add(lane, 10, 400, kernel);
    builder.add(lane, 410, 10, call);
    builder.add(lane, 420, 480, kernel);
    const auto rows = statistics_by_step(builder.finish(), std::vector<std::size_t>{0}, 0, 1000);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].activity, Activity::forward);
    EXPECT_EQ(rows[0].count, 2U);
    EXPECT_EQ(rows[0].shortest, 400);
    EXPECT_EQ(rows[1].activity, Activity::other);
    EXPECT_EQ(rows[1].total, 20);
}

TEST(Lanes, KeepIterationsBeyondSixteenBits) {
    LanesBuilder builder("t", false, 1);
    const auto lane = builder.lane(0, Stream::compute, "compute");
    const auto w = builder.what(what("f", Activity::forward));
    for (const int iteration : {65'535, 65'536, 700'001}) builder.add(lane, iteration, 1, w, iteration);
    const Timeline timeline = timeline_of(builder.finish());
    EXPECT_EQ(timeline.events.at(1).iteration, 65'536);
    EXPECT_EQ(timeline.events.at(2).iteration, 700'001);
}

TEST(Lanes, OverlappingEventsComeOnLanesOfTheirOwn) {
    LanesBuilder builder("t", false, 1);
    const auto lane = builder.lane(5, Stream::compute, "calls");
    const auto w = builder.what(what("f", Activity::forward));
    builder.add(lane, 10, 5, w);   // inside the next
    builder.add(lane, 0, 100, w);  // given out of order
    builder.add(lane, 20, 5, w);
    builder.add(lane, 12, 1, w);  // inside the first
    const Lanes lanes = builder.finish();
    ASSERT_EQ(lanes.lanes.size(), 3U);
    EXPECT_EQ(lanes.lanes[0].size(), 1U);
    EXPECT_EQ(lanes.lanes[1].size(), 2U);
    EXPECT_EQ(lanes.lanes[2].start(0), 12);
    EXPECT_EQ(lanes.lanes[2].number, 2);
}

TEST(Lanes, KeepDurationsBeyondFourSeconds) {
    LanesBuilder builder("t", false, 1);
    const auto lane = builder.lane(0, Stream::compute, "c");
    const auto w = builder.what(what("f", Activity::forward));
    builder.add(lane, 0, 10'000'000'000, w);
    const Lanes lanes = builder.finish();
    EXPECT_EQ(lanes.lanes[0].end(0), 10'000'000'000);
    EXPECT_EQ(lanes.last, 10'000'000'000);
}

TEST(Lanes, TakeAtMostFortyBytesAnEvent) {
    std::vector<Plain> plain;
    const Lanes lanes = random_lane(100000, plain);
    EXPECT_LT(static_cast<double>(lanes.memory_bytes()) / 100000, 40);
}

// With a number of events that all have flows, on two lanes of a rank: whatever the number, as nothing doubles.
TEST(Lanes, TakeAtMostFortyBytesAnEventOfARankAtAnyNumber) {
    for (const int count : {5'000, 8'191, 8'193, 16'500, 40'000, 66'000}) {
        LanesBuilder builder("t", false, 1);
        const auto w = builder.what(what("f", Activity::forward));
        const std::size_t lanes[] = {builder.lane(0, Stream::compute, "compute"),
                                     builder.lane(0, Stream::communication, "communication")};
        for (int i = 0; i < count; ++i) builder.add(lanes[i % 2], 10 * i, 9, w, 0, i + 1);
        EXPECT_LT(static_cast<double>(builder.finish().memory_bytes()) / count, 40) << count;
    }
}

// Of random intervals of two kinds, at every size of cells: each event begins and ends on a grid of 1/256 of a cell.
TEST(Shares, AreThoseOfALoopOverAllEvents) {
    std::vector<Plain> plain;
    const Lanes lanes = random_lane(500, plain);
    for (const double per_cell : {3.0, 16.7, 61.0, 400.0}) {
        const double from = 1234.5;
        std::vector<Shares> cells(50);
        add_events(lanes.lanes[0], from, per_cell, cells);
        for (std::size_t c = 0; c < cells.size(); ++c) {
            const double left = from + static_cast<double>(c) * per_cell, right = left + per_cell;
            std::array<double, activity_count> busy{};
            int touched = 0;
            for (const Plain& p : plain) {
                const double part =
                    std::min(static_cast<double>(p.end), right) - std::max(static_cast<double>(p.start), left);
                if (part < 0) continue;
                busy[static_cast<std::size_t>(p.activity)] += part;
                ++touched;
            }
            const Coverage coverage = coverage_of(cells[c]);
            for (std::size_t a = 0; a < activity_count; ++a)
                EXPECT_NEAR(coverage[a] / 255.0, busy[a] / per_cell, (touched + 1) / 255.0) << per_cell << " " << c;
        }
    }
}

// A thousand events without a duration in one cell are seen in it and in none beside it; what comes first hides what
// comes later; and the room of the next call is empty.
TEST(Shares, OfABurstStayInTheirCell) {
    LanesBuilder builder("t", false, 1);
    const auto f = builder.what(what("f", Activity::forward));
    const auto c = builder.what(what("c", Activity::collective));
    const auto first = builder.lane(0, Stream::compute, "compute");
    const auto second = builder.lane(0, Stream::communication, "communication");
    for (int i = 0; i < 1000; ++i) builder.add(first, 15'000 + i, 0, f);
    builder.add(first, 20'000, 10'000, f);
    builder.add(second, 0, 40'000, c);
    const Lanes lanes = builder.finish();
    for (int again = 0; again < 2; ++again) {
        std::vector<Shares> cells(4);
        for (const Lane& lane : lanes.lanes) add_events(lane, 0, 10'000, cells);
        constexpr auto forward = static_cast<std::size_t>(Activity::forward);
        constexpr auto collective = static_cast<std::size_t>(Activity::collective);
        EXPECT_EQ(coverage_of(cells[0])[collective], 255);
        EXPECT_GT(coverage_of(cells[1])[forward], 0);
        EXPECT_EQ(coverage_of(cells[1])[forward] + coverage_of(cells[1])[collective], 255);
        EXPECT_EQ(coverage_of(cells[2])[forward], 255);
        EXPECT_EQ(coverage_of(cells[2])[collective], 0);
        EXPECT_EQ(coverage_of(cells[3])[collective], 255);
        EXPECT_EQ(coverage_of(cells[3])[forward], 0);
    }
}

TEST(Raster, RowsOfPixelsHaveTheColourOfEachCell) {
    std::mt19937_64 random(5);
    std::vector<Shares> cells(77);
    for (Shares& cell : cells) {
        Coverage coverage{};
        unsigned room = 256;
        for (std::uint8_t& share : coverage) room -= share = static_cast<std::uint8_t>(random() % room);
        cell = shares_of(coverage);
    }
    cells[3] = 0, cells[4] = ~Shares{0};  // rounding up may give more than a whole
    for (const Coloring coloring : {Coloring::activity, Coloring::waiting, Coloring::network}) {
        const PixelColors colors(Theme::dark, coloring);
        std::vector<std::uint32_t> pixels(cells.size());
        colors.paint(cells, pixels);
        for (std::size_t x = 0; x < cells.size(); ++x) EXPECT_EQ(pixels[x], colors.of(coverage_of(cells[x]))) << x;
    }
}

// The share of computing in the colour of `waiting` is read back from the table of colours.
double busy_of(std::uint32_t pixel, const PixelColors& colors) {
    for (int share = 0; share <= 255; ++share) {
        Coverage coverage{};
        coverage[0] = static_cast<std::uint8_t>(share);
        if (colors.of(coverage) == pixel) return share / 255.0;
    }
    return -1;
}

TEST(Raster, APixelShowsTheShareOfItsTimeAtEveryZoom) {
    std::vector<Plain> plain;
    const Lanes lanes = random_lane(20000, plain);
    const PixelColors colors(Theme::light, Coloring::waiting);
    const auto span = static_cast<double>(lanes.last - lanes.first);
    for (const double zoom : {1.0, 8.0, 300.0}) {
        const TimeView view{0.3 * span, 0.3 * span + span / zoom * 0.6};
        std::vector<std::uint32_t> pixels(64);
        paint(lanes.lanes[0], lanes, view, colors, false, pixels);
        for (std::size_t x = 0; x < pixels.size(); ++x) {
            const double width = (view.to - view.from) / 64;
            const double from = view.from + static_cast<double>(x) * width, to = from + width;
            double busy = 0;
            for (const Plain& p : plain) {
                busy += std::max(
                    0.0, std::min(static_cast<double>(p.end), to) - std::max(static_cast<double>(p.start), from));
            }
            // A pixel of the pyramid has between one and three bins of its own, so a bin at each side may be its
            // neighbour's; shares here are near 0.6 +- 0.3. Colours of 256 steps that repeat: 0.02 more.
            EXPECT_NEAR(busy_of(pixels[x], colors), busy / width, zoom > 100 ? 0.03 : 0.25) << zoom << " " << x;
        }
    }
}

TEST(Raster, CommunicationBehindComputingIsNotSeenInTheRowOfARank) {
    LanesBuilder builder("t", false, 1);
    const auto f = builder.what(what("f", Activity::forward));
    const auto c = builder.what(what("c", Activity::collective));
    builder.add(builder.lane(0, Stream::compute, "compute"), 0, 500, f);
    builder.add(builder.lane(0, Stream::communication, "communication"), 250, 750, c);
    const Lanes lanes = builder.finish();
    const PixelColors colors(Theme::light, Coloring::activity);
    std::vector<std::uint32_t> pixels(4);
    const std::vector<RankLanes> rank{{&lanes.lanes[0], &lanes.lanes[1]}};
    paint(rank, lanes, {0, 1000}, colors, pixels);
    EXPECT_EQ(pixels[0], colors.of(Activity::forward));
    EXPECT_EQ(pixels[1], colors.of(Activity::forward));
    EXPECT_EQ(pixels[2], colors.of(Activity::collective));
    EXPECT_EQ(pixels[3], colors.of(Activity::collective));
}

// A pixel of the rank's own pyramid, of 40 computing events with communication behind and beside them, against the
// length of time in which the rank computes.
TEST(Raster, TheRowOfARankShowsTheShareOfItsComputingAtEveryZoom) {
    std::mt19937 random(3);
    LanesBuilder builder("t", false, 1);
    const auto f = builder.what(what("f", Activity::forward));
    const auto c = builder.what(what("c", Activity::collective));
    const auto compute = builder.lane(0, Stream::compute, "compute");
    const auto network = builder.lane(0, Stream::communication, "communication");
    std::vector<std::pair<std::int64_t, std::int64_t>> computing;
    for (std::int64_t now = 0; now < 1'000'000;) {
        const std::int64_t length = 20 + random() % 100;
        computing.emplace_back(now, now + length);
        builder.add(compute, now, length, f);
        builder.add(network, now + length / 2, length, c);
        now += length + static_cast<std::int64_t>(random() % 80);
    }
    const Lanes lanes = builder.finish();
    ASSERT_FALSE(lanes.levels_of(0).empty());
    const PixelColors colors(Theme::light, Coloring::waiting);
    const std::vector<RankLanes> rank{{&lanes.lanes[0], &lanes.lanes[1]}};
    for (const double zoom : {1.0, 16.0, 500.0}) {
        const double from = 3e5, per_pixel = 0.6 * 1e6 / zoom / 64;
        std::vector<std::uint32_t> pixels(64);
        paint(rank, lanes, {from, from + 64 * per_pixel}, colors, pixels);
        for (std::size_t x = 0; x < pixels.size(); ++x) {
            const double left = from + static_cast<double>(x) * per_pixel, right = left + per_pixel;
            double busy = 0;
            for (const auto& [begin, end] : computing)
                busy += std::max(0.0, std::min<double>(static_cast<double>(end), right) -
                                          std::max<double>(static_cast<double>(begin), left));
            // Of a pyramid's bins, one at each side may be a neighbour's: of about 60 events a pixel, and of 4, at the
            // first zooms. From events: 1/255, and colours of 256 steps that repeat.
            const double tolerance = zoom == 1 ? 0.1 : zoom == 16 ? 0.5 : 0.03;
            EXPECT_NEAR(busy_of(pixels[x], colors), busy / per_pixel, tolerance) << zoom << " " << x;
        }
    }
}

TEST(Lanes, AreATimelineAgain) {
    Timeline timeline{"t", true, 4, {}, {}, {}};
    for (int i = 0; i < 20; ++i) {
        timeline.events.push_back({RankIndex{i % 2}, i % 3 == 0 ? Stream::io : Stream::compute,
                                   "s" + std::to_string(i % 5), "l", "forward", i % 4, i / 10, Seconds{i * 1e-6},
                                   Seconds{(i + 3) * 1e-6}, Bytes{8.0 * i}, Flops{2.0 * i}, i});
    }
    timeline.links.push_back({"nic:up", "nic:up", 4, Bandwidth{10e9}, Bytes{400e6}, Bytes{100e6}});
    const Timeline back = timeline_of(lanes_of(timeline));
    std::ranges::stable_sort(timeline.events, [](const Event& a, const Event& b) {
        return std::tie(a.iteration, a.rank, a.start) < std::tie(b.iteration, b.rank, b.start);
    });
    ASSERT_EQ(back.events.size(), timeline.events.size());
    for (std::size_t i = 0; i < back.events.size(); ++i) {
        const Event &a = back.events[i], &b = timeline.events[i];
        EXPECT_EQ(
            std::tie(a.rank, a.stream, a.step, a.layer, a.pass, a.micro_batch, a.iteration, a.bytes, a.flops, a.flow),
            std::tie(b.rank, b.stream, b.step, b.layer, b.pass, b.micro_batch, b.iteration, b.bytes, b.flops, b.flow));
        EXPECT_NEAR(a.start.value, b.start.value, 1e-12);
        EXPECT_NEAR(a.end.value, b.end.value, 1e-12);
    }
    EXPECT_EQ(back.links, timeline.links);
    EXPECT_EQ(back.title, "t");
    EXPECT_TRUE(back.measured);
}

TEST(Raster, RareShortEventsAreSeenAtFullZoomOut) {
    LanesBuilder builder("t", false, 1);
    const auto lane = builder.lane(0, Stream::compute, "c");
    const auto w = builder.what(what("f", Activity::forward));
    builder.add(lane, 0, 1, w);
    builder.add(lane, 999'999'999, 1, w);
    const Lanes lanes = builder.finish();
    const PixelColors colors(Theme::light, Coloring::activity);
    std::vector<std::uint32_t> pixels(100);
    paint(lanes.lanes[0], lanes, {0, 1e9}, colors, false, pixels);
    EXPECT_NE(pixels.front(), colors.idle());
    EXPECT_NE(pixels.back(), colors.idle());
    EXPECT_EQ(pixels[50], colors.idle());
}

TEST(TimelinePicture, NamesTheBoxesThatAreWideEnough) {
    LanesBuilder builder("step", false, 1);
    const auto lane = builder.lane(0, Stream::compute, "compute");
    builder.add(lane, 0, 500, builder.what(what("conv1:forward", Activity::forward)));
    builder.add(lane, 500, 1, builder.what(what("tiny", Activity::update)));
    builder.add(lane, 600, 400, builder.what(what("conv2:forward", Activity::forward)));
    const Picture picture = timeline_picture(builder.finish());
    std::vector<std::string> texts;
    for (const Mark& mark : picture.marks) {
        if (const auto* text = std::get_if<Text>(&mark.shape)) texts.push_back(text->text);
    }
    EXPECT_THAT(texts, testing::IsSupersetOf({"conv1:forward", "conv2:forward", "rank 0 compute", "step"}));
    EXPECT_THAT(texts, testing::Not(testing::Contains("tiny")));
}

}  // namespace
}  // namespace rehearse::picture
