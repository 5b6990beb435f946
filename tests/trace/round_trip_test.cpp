// SPDX-License-Identifier: Apache-2.0
// What was written is read back, in both formats, whatever the timeline.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.hpp"
#include "tests/trace/timelines.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

namespace {

// In place: a file that is replaced thousands of times keeps the disk busy.
void overwrite(const std::string& path, std::size_t at, char byte) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
}

class AnyFormat : public testing::TestWithParam<const char*> {
protected:
    // Each test is a process of its own under ctest, and they run side by side.
    std::string path() const { return path_of(fmt::format("round_trip_{}{}", ::getpid(), GetParam())); }
    Timeline there_and_back(const Timeline& timeline) const {
        write(timeline, path());
        return read(path());
    }
    void TearDown() override { ::unlink(path().c_str()); }
};

TEST_P(AnyFormat, KeepsAHandMadeTimeline) { expect_equal(there_and_back(three_events()), three_events()); }

TEST_P(AnyFormat, KeepsTimelinesOfEveryKind) {
    for (const bool crowded : {false, true}) {
        for (const int ranks : {1, 2, 64}) {
            for (unsigned seed = 1; seed <= 10; ++seed) {
                SCOPED_TRACE(fmt::format("seed {}, {} ranks, crowded {}", seed, ranks, crowded));
                const Timeline timeline = random_timeline(seed, std::size_t{20} * seed, ranks, crowded);
                expect_equal(there_and_back(timeline), timeline);
            }
        }
    }
}

TEST_P(AnyFormat, KeepsATimelineWithoutEvents) {
    const Timeline nothing{.title = "", .measured = true, .ranks = 27648, .events = {}, .counters = {}};
    expect_equal(there_and_back(nothing), nothing);
    Timeline silent = nothing;
    silent.counters = {{.name = "link", .unit = "B/s", .points = {}}, {.name = "link", .unit = "", .points = {}}};
    expect_equal(there_and_back(silent), silent);
}

TEST_P(AnyFormat, KeepsManyRanksFarApart) {
    Timeline timeline = three_events();
    timeline.ranks = 5'000'000'000;
    const Event event = timeline.events.front();
    timeline.events.clear();
    for (std::int64_t rank = 0; rank < timeline.ranks; rank += 5'000'000) {
        timeline.events.push_back(event);
        timeline.events.back().rank = RankIndex{rank};
    }
    expect_equal(there_and_back(timeline), timeline);
}

TEST_P(AnyFormat, KeepsTimesBeforeTheOriginAndFarBehindIt) {
    Timeline timeline = three_events();
    timeline.events[0].start = Seconds{-0.25};
    timeline.events[2].end = Seconds{86400 * 30};  // a month: 2.6e15 ns, still exact in a double
    timeline.counters[0].points[0].first = Seconds{-0.5};
    const Timeline back = there_and_back(timeline);
    expect_equal(back.events[0], timeline.events[0]);
    EXPECT_EQ(back.counters[0].points[0].first, Seconds{-0.5});
    // Chrome's microseconds are doubles: those of a month have steps of 2^-11 us = 0.5 ns, and so has their sum.
    EXPECT_NEAR(back.events[2].end.value, timeline.events[2].end.value, 2e-9);
}

TEST_P(AnyFormat, KeepsTheOrderOfEventsThatStartTogether) {
    Timeline timeline = three_events();
    const Event event = timeline.events.front();
    timeline.events.clear();
    for (int i = 0; i < 20; ++i) {
        timeline.events.push_back(event);
        timeline.events.back().step = fmt::format("step{}", i);
        timeline.events.back().end = event.start + Seconds{(i % 3) * 1e-9};
    }
    expect_equal(there_and_back(timeline), timeline);
}

TEST_P(AnyFormat, KeepsSeveralTimelinesApart) {
    std::vector<Timeline> both{random_timeline(1, 50, 4, true), random_timeline(2, 50, 4, true), three_events()};
    both[0].measured = false;
    both[1].measured = true;
    write(both, path(), format_of(path()));
    const std::vector<Timeline> back = read_all(path());
    ASSERT_EQ(back.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) expect_equal(back[i], both[i]);
    expect_equal(read(path() + "#predicted"), both[0]);
    expect_equal(read(path() + "#measured"), both[1]);
    expect_equal(read(path() + "#predicted 2"), both[2]);
}

TEST_P(AnyFormat, AsksWhichOfSeveralTimelinesIsMeant) {
    write({three_events(), three_events()}, path(), format_of(path()));
    const auto message_of = [](const std::string& name) -> std::string {
        try {
            read(name);
        } catch (const InputError& error) {
            return error.what();
        }
        return "no error";
    };
    EXPECT_EQ(message_of(path()), fmt::format("{0}: has 2 timelines (predicted, predicted 2): pick one, as in "
                                              "'{0}#predicted 2'",
                                              path()));
    EXPECT_EQ(message_of(path() + "#predcited"),
              path() + ": has no timeline 'predcited' (did you mean 'predicted'?): it has predicted, predicted 2");
}

// A cut at every byte: the reader says that the file is cut off or no trace, and never takes it.
TEST_P(AnyFormat, RefusesAFileCutAtAnyByte) {
    Timeline second = three_events();
    second.measured = true;
    write({three_events(), second}, path(), format_of(path()));
    const std::string whole = content_of(path());
    ASSERT_GT(whole.size(), 500U);
    std::size_t cut_off = 0;
    for (std::size_t length = whole.size(); length-- > 0;) {
        std::filesystem::resize_file(path(), length);
        try {
            read_all(path());
            ADD_FAILURE() << "taken when cut at byte " << length;
        } catch (const InputError& error) {
            const std::string message = error.what();
            cut_off += message.find(fmt::format("cut off at byte {}: ", length)) != std::string::npos ? 1 : 0;
            EXPECT_THAT(message, testing::AnyOf(testing::HasSubstr("cut off"), testing::HasSubstr("is empty")));
        }
    }
    EXPECT_GT(cut_off, whole.size() * 8 / 10);
}

// Whatever a damaged file does to the reader, it is an InputError or another timeline, never a crash. (Run under the
// sanitizers, this is the test that counts.)
TEST_P(AnyFormat, SurvivesAnyDamagedByte) {
    write(three_events(), path());
    const std::string whole = content_of(path());
    std::size_t refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
            overwrite(path(), at, static_cast<char>(static_cast<unsigned char>(whole[at]) ^ flip));
            try {
                read_all(path());
            } catch (const InputError&) {
                ++refused;
            }
        }
        overwrite(path(), at, whole[at]);
    }
    EXPECT_GT(refused, whole.size());  // at least a third
}

INSTANTIATE_TEST_SUITE_P(Formats, AnyFormat, testing::Values(".pftrace", ".json"),
                         [](const auto& format) { return std::string{format.param}.substr(1); });

}  // namespace

}  // namespace rehearse::trace
