// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.hpp"
#include "tests/trace/perfetto_importer.hpp"
#include "tests/trace/timelines.hpp"
#include "trace/perfetto_scan.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

using namespace importer;

namespace {

Shown shown(const std::vector<Timeline>& timelines) {
    const std::string path = path_of(fmt::format("perfetto_{}.pftrace", ::getpid()));
    write(timelines, path, Format::perfetto);
    const std::string file = content_of(path);
    ::unlink(path.c_str());
    return Importer().import(file);
}

TEST(Perfetto, ShowsSlicesWithNanosecondsAndArguments) {
    const Shown trace = shown({three_events()});
    ASSERT_EQ(trace.slices.size(), 3U);
    const Slice& first = trace.slices[0];
    EXPECT_EQ(first.name, "conv1:forward");
    EXPECT_EQ(first.process, "rank 0");
    EXPECT_EQ(first.track, "compute");
    EXPECT_EQ(first.start, 0U);
    EXPECT_EQ(first.end, 1500U);
    EXPECT_EQ(first.args, (std::map<std::string, std::string>{{"rank", "0"},
                                                              {"layer", "conv1"},
                                                              {"pass", "forward"},
                                                              {"micro_batch", "0"},
                                                              {"iteration", "0"},
                                                              {"bytes", "4096"},
                                                              {"flops", "1000000"}}));
    EXPECT_EQ(trace.slices[1].start, 1500U);
    EXPECT_EQ(trace.slices[1].end, 3001U);
    EXPECT_EQ(trace.slices[1].args.at("flops"), "2.5");
    EXPECT_EQ(trace.slices[2].track, "communication");
    EXPECT_EQ(trace.slices[2].category, "communication");
    EXPECT_EQ(trace.slices[2].end, 1002000U);
    const std::vector<std::pair<std::uint64_t, double>> points{{0, 1024}, {1000, 2048.5}};
    EXPECT_EQ(trace.counters.at("memory rank 0"), points);
}

TEST(Perfetto, PutsTwoTimelinesOnOneAxisUnderNamesOfTheirOwn) {
    Timeline measured = three_events();
    measured.measured = true;
    for (Event& event : measured.events) event.rank = RankIndex{1};
    const Shown trace = shown({three_events(), measured});
    EXPECT_THAT(trace.processes, testing::ElementsAre("predicted: rank 0", "measured: rank 1"));
    EXPECT_EQ(trace.slices.size(), 6U);
}

TEST(Perfetto, JoinsEventsOfAFlowByItsIdWithinTheirTimelineOnly) {
    Timeline timeline = three_events();
    timeline.events[0].flow = timeline.events[2].flow = 5;
    const Shown trace = shown({timeline, timeline});
    ASSERT_EQ(trace.slices.size(), 6U);
    std::map<std::vector<std::uint64_t>, int> slices_of;
    for (const Slice& slice : trace.slices) ++slices_of[slice.flows];
    EXPECT_EQ(slices_of, (std::map<std::vector<std::uint64_t>, int>{{{}, 2}, {{5}, 2}, {{(1ULL << 48U) + 5}, 2}}));
}

TEST(Perfetto, LosesNoEventHoweverTheyOverlap) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        const Timeline timeline = random_timeline(seed, 300, 3, true);
        std::vector<std::string> expected;
        for (const Event& e : timeline.events) {
            expected.push_back(fmt::format("rank {} {} {} {}-{}", e.rank, to_string(e.stream), e.step,
                                           std::llround(e.start.value * 1e9), std::llround(e.end.value * 1e9)));
        }
        std::vector<std::string> seen;
        for (const Slice& s : shown({timeline}).slices) {
            seen.push_back(fmt::format("{} {} {} {}-{}", s.process, s.track, s.name, s.start, s.end));
        }
        std::ranges::sort(expected);
        std::ranges::sort(seen);
        EXPECT_EQ(seen, expected);
    }
}

TEST(Perfetto, KeepsOneLaneWhenEventsOnlyTouch) {
    Timeline timeline = three_events();
    const Event event = timeline.events.front();
    timeline.events.clear();
    timeline.counters.clear();
    double time = 0;
    for (int i = 0; i < 1000; ++i) {  // 0.1 us each; in doubles, ends and starts differ in their last digits
        timeline.events.push_back(event);
        timeline.events.back().start = Seconds{i * 1e-7};
        timeline.events.back().end = Seconds{time += 1e-7};
    }
    const std::string path = path_of(fmt::format("lanes_{}.pftrace", ::getpid()));
    write(timeline, path);
    int tracks = 0;
    const std::string file = content_of(path);
    for (const Field& packet : fields_of(file)) tracks += field(packet.bytes, 60) ? 1 : 0;
    ::unlink(path.c_str());
    EXPECT_EQ(tracks, 3);  // the timeline's own, the process, and one lane
}

TEST(Perfetto, RefusesATraceOfAnotherProgram) {
    const std::string path = path_of(fmt::format("foreign_{}.pftrace", ::getpid()));
    // packet { timestamp: 5, trusted_packet_sequence_id: 7, track_event { type: SLICE_BEGIN, track_uuid: 1, name: "a" }
    // }
    put(path, {"\x0A\x0E\x40\x05\x50\x07\x5A\x08\x48\x01\x58\x01\xBA\x01\x01\x61", 16});
    try {
        read(path);
        ADD_FAILURE() << "taken";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("a Perfetto trace of another program (byte 0)"));
    }
    ::unlink(path.c_str());
}

// Everything that a scan tells, as a timeline again.
std::optional<Timeline> scanned(const std::string& path) {
    Timeline timeline;
    std::vector<Event> kinds;
    const ScanVisitor visitor{.head = [&](const Timeline& head) { timeline = head; },
                              .what = [&](const Event& event) { kinds.push_back(event); },
                              .event =
                                  [&](const ScannedEvent& event) {
                                      Event& added = timeline.events.emplace_back(kinds.at(event.what));
                                      EXPECT_EQ(added.stream, event.stream);
                                      added.rank = event.rank;
                                      added.iteration = event.iteration;
                                      added.flow = event.flow;
                                      added.start = Seconds{static_cast<double>(event.start) * 1e-9};
                                      added.end = Seconds{static_cast<double>(event.end) * 1e-9};
                                  },
                              .counter = [&](Counter counter) { timeline.counters.push_back(std::move(counter)); },
                              .link = [&](LinkUse use) { timeline.links.push_back(std::move(use)); },
                              .progress = {}};
    if (!scan_perfetto(path, visitor)) return std::nullopt;
    const auto key = [](const Event& e) {
        return std::tie(e.iteration, e.rank, e.start.value, e.end.value, e.stream, e.step, e.layer, e.pass,
                        e.micro_batch, e.bytes, e.flops, e.flow);
    };
    std::ranges::sort(timeline.events, [&](const Event& a, const Event& b) { return key(a) < key(b); });
    return timeline;
}

TEST(Perfetto, IsScannedAsItIsRead) {
    const std::string path = path_of(fmt::format("scan_{}.pftrace", ::getpid()));
    int scans = 0;
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        write(random_timeline(seed, 200, 5, seed % 2 == 0), path);
        const auto found = scanned(path);
        if (!found) continue;  // it leaves what it does not know to the reader
        ++scans;
        Timeline expected = read(path);
        const auto key = [](const Event& e) {
            return std::tie(e.iteration, e.rank, e.start.value, e.end.value, e.stream, e.step, e.layer, e.pass,
                            e.micro_batch, e.bytes, e.flops, e.flow);
        };
        for (Event& event : expected.events) {  // both from whole nanoseconds
            event.start = Seconds{static_cast<double>(std::llround(event.start.value * 1e9)) * 1e-9};
            event.end = Seconds{static_cast<double>(std::llround(event.end.value * 1e9)) * 1e-9};
        }
        std::ranges::sort(expected.events, [&](const Event& a, const Event& b) { return key(a) < key(b); });
        expect_equal(*found, expected);
    }
    EXPECT_GT(scans, 3);
    ::unlink(path.c_str());
}

// Some megabytes, so that blocks are parsed apart; names, annotations and flows that come up long after the first
// block.
TEST(Perfetto, IsScannedInBlocksAsItIsRead) {
    Timeline timeline{"blocks", true, 8, {}, {}, {}};
    constexpr int count = 5000;
    for (int i = 0; i < count; ++i) {
        for (RankIndex rank{0}; rank < 8; ++rank) {
            Event event;
            event.rank = rank;
            event.stream = i % 7 == 3 ? Stream::communication : Stream::compute;
            event.layer = fmt::format("layer{}", i < count / 2 ? i % 5 : i % 11);
            event.pass = "forward";
            event.step = event.layer + ":forward";
            event.micro_batch = i % 3;
            event.iteration = i / 100;
            event.start = Seconds{i * 1e-6};
            event.end = Seconds{(i + 1) * 1e-6};
            if (i > count / 3) event.flops = Flops{1000.0 + i % 4};
            if (i > 2 * count / 3) event.flow = i * 8 + rank;
            timeline.events.push_back(event);
        }
    }
    const std::string path = path_of(fmt::format("blocks_{}.pftrace", ::getpid()));
    write(timeline, path);
    EXPECT_GT(content_of(path).size(), 3'000'000U);
    const auto found = scanned(path);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->events.size(), timeline.events.size());
    std::ranges::sort(timeline.events, [](const Event& a, const Event& b) {
        return std::tie(a.iteration, a.rank, a.start) < std::tie(b.iteration, b.rank, b.start);
    });
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < timeline.events.size(); ++i) {
        const Event &a = found->events[i], &b = timeline.events[i];
        const bool same =
            std::tie(a.rank, a.stream, a.step, a.layer, a.pass, a.micro_batch, a.iteration, a.flops, a.flow) ==
                std::tie(b.rank, b.stream, b.step, b.layer, b.pass, b.micro_batch, b.iteration, b.flops, b.flow) &&
            std::llround(a.start.value * 1e9) == std::llround(b.start.value * 1e9) &&
            std::llround(a.end.value * 1e9) == std::llround(b.end.value * 1e9);
        wrong += same ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U);
    put(path, content_of(path).substr(0, 2'500'000));
    EXPECT_FALSE(scanned(path));
    ::unlink(path.c_str());
}

TEST(Perfetto, CarriesWhatStepsWaitFor) {
    const std::string path = path_of(fmt::format("waits_{}.pftrace", ::getpid()));
    const std::vector<Dependencies> written{
        {{RankIndex{0}, RankIndex{2}, RankIndex{5}},
         {{"a b", Stream::compute, 3, {}}, {"c", Stream::communication, 0, {0}}, {"d", Stream::io, 1, {0, 1}}}},
        {{RankIndex{1}}, {}}};
    write(three_events(), written, path);
    std::vector<Dependencies> found;
    const ScanVisitor visitor{.head = [](const Timeline&) {},
                              .what = [](const Event&) {},
                              .event = [](const ScannedEvent&) {},
                              .counter = [](Counter) {},
                              .link = [](LinkUse) {},
                              .progress = {},
                              .dependencies = [&](Dependencies each) { found.push_back(std::move(each)); }};
    EXPECT_TRUE(scan_perfetto(path, visitor));
    EXPECT_EQ(found, written);
    EXPECT_EQ(read(path).events.size(), three_events().events.size());  // the reader leaves them out
    ::unlink(path.c_str());
}

TEST(Perfetto, IsNotScannedWhenItIsCutOrDamaged) {
    const std::string path = path_of(fmt::format("scan_cut_{}.pftrace", ::getpid()));
    write(three_events(), path);
    const std::string whole = content_of(path);
    ASSERT_TRUE(scanned(path));
    for (std::size_t length = 0; length < whole.size(); ++length) {
        put(path, whole.substr(0, length));
        EXPECT_FALSE(scanned(path)) << length;
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {  // any answer, but no crash
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
        put(path, damaged);
        scanned(path);
    }
    write({three_events(), three_events()}, path, Format::perfetto);
    EXPECT_FALSE(scanned(path));  // two timelines
    ::unlink(path.c_str());
}

}  // namespace

}  // namespace rehearse::trace
