// SPDX-License-Identifier: Apache-2.0
// The protobuf is read a second time here: by a walk over the wire format that knows Perfetto's public field numbers
// (protos/perfetto/trace) and nothing of our .proto, and that pairs begins with ends as Perfetto's importer does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "timelines.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

namespace {

struct Field {
    std::uint64_t number = 0, value = 0;  // of varints and fixed64
    std::string_view bytes;               // of length-delimited fields
};

std::uint64_t varint(std::string_view& in) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(in.at(0));
        in.remove_prefix(1);
        value |= (byte & 0x7FULL) << shift;
        if (byte < 0x80) return value;
    }
}

std::vector<Field> fields_of(std::string_view in) {
    std::vector<Field> fields;
    while (!in.empty()) {
        const std::uint64_t tag = varint(in);
        Field field{.number = tag >> 3U, .value = 0, .bytes = {}};
        switch (tag & 7U) {
            case 0:
                field.value = varint(in);
                break;
            case 1:
                std::memcpy(&field.value, in.substr(0, 8).data(), 8);
                in.remove_prefix(8);
                break;
            case 2:
                field.bytes = in.substr(0, varint(in));
                in.remove_prefix(field.bytes.size());
                break;
            default:
                ADD_FAILURE() << "wire type " << (tag & 7U);
                return fields;
        }
        fields.push_back(field);
    }
    return fields;
}

std::optional<Field> field(std::string_view message, std::uint64_t number) {
    for (const Field& f : fields_of(message)) {
        if (f.number == number) return f;
    }
    return std::nullopt;
}

std::uint64_t number_in(std::string_view message, std::uint64_t number) {
    const auto f = field(message, number);
    return f ? f->value : 0;
}

std::string_view bytes_in(std::string_view message, std::uint64_t number) {
    const auto f = field(message, number);
    return f ? f->bytes : std::string_view{};
}

// What Perfetto would show.
struct Slice {
    std::string name, category, process, track;
    std::uint64_t start = 0, end = 0;
    std::map<std::string, std::string> args;
};
struct Shown {
    std::vector<Slice> slices;
    std::map<std::string, std::vector<std::pair<std::uint64_t, double>>> counters;
    std::vector<std::string> processes;
};

using Table = std::map<std::uint64_t, std::string>;

class Importer {
public:
    Shown import(std::string_view file) {
        std::vector<std::pair<std::uint64_t, std::string_view>> events;  // time, packet
        for (const Field& packet : fields_of(file)) {
            EXPECT_EQ(packet.number, 1U);
            const std::uint64_t sequence = number_in(packet.bytes, 10);
            EXPECT_GT(sequence, 0U);
            intern(tables_[sequence], bytes_in(packet.bytes, 12));
            if (const auto track = field(packet.bytes, 60)) take_track(track->bytes);
            if (field(packet.bytes, 11)) events.emplace_back(number_in(packet.bytes, 8), packet.bytes);
        }
        std::ranges::stable_sort(events, {}, &std::pair<std::uint64_t, std::string_view>::first);
        for (const auto& [time, packet] : events) {
            take_event(time, bytes_in(packet, 11), tables_[number_in(packet, 10)]);
        }
        EXPECT_TRUE(open_.empty()) << "a slice never ends";
        return std::move(shown_);
    }

private:
    struct Tables {
        Table categories, names, keys, texts;
    };

    static void intern(Tables& tables, std::string_view data) {
        for (const Field& entry : fields_of(data)) {
            Table& table = entry.number == 1   ? tables.categories
                           : entry.number == 2 ? tables.names
                           : entry.number == 3 ? tables.keys
                                               : tables.texts;
            EXPECT_TRUE(entry.number <= 3 || entry.number == 29);
            EXPECT_TRUE(table.emplace(number_in(entry.bytes, 1), bytes_in(entry.bytes, 2)).second);
        }
    }

    void take_track(std::string_view track) {
        EXPECT_TRUE(tracks_.emplace(number_in(track, 1), track).second) << "a track id is used twice";
        if (const auto process = field(track, 3)) {
            EXPECT_TRUE(pids_.emplace(number_in(process->bytes, 1), 0).second) << "a pid is used twice";
            shown_.processes.emplace_back(bytes_in(process->bytes, 6));
        }
    }

    void take_event(std::uint64_t time, std::string_view event, Tables& tables) {
        const std::uint64_t type = number_in(event, 9), uuid = number_in(event, 11);
        ASSERT_TRUE(tracks_.contains(uuid)) << "an event on a track that is not described";
        const std::string_view track = tracks_[uuid];
        if (type == 1) {
            ASSERT_FALSE(open_.contains(uuid)) << "events of one track overlap";
            Slice slice{.name = tables.names.at(number_in(event, 10)),
                        .category = tables.categories.at(number_in(event, 3)),
                        .process = std::string{bytes_in(bytes_in(tracks_[number_in(track, 5)], 3), 6)},
                        .track = std::string{bytes_in(track, 2)},
                        .start = time,
                        .end = 0,
                        .args = {}};
            for (const Field& f : fields_of(event)) {
                if (f.number == 4) slice.args[tables.keys.at(number_in(f.bytes, 1))] = argument(f.bytes, tables);
            }
            open_[uuid] = std::move(slice);
        } else if (type == 2) {
            ASSERT_TRUE(open_.contains(uuid)) << "a slice ends that has not begun";
            shown_.slices.push_back(std::move(open_[uuid]));
            shown_.slices.back().end = time;
            open_.erase(uuid);
        } else if (type == 4) {
            ASSERT_TRUE(field(track, 8)) << "a value on a track that is no counter";
            shown_.counters[std::string{bytes_in(track, 2)}].emplace_back(time,
                                                                          std::bit_cast<double>(number_in(event, 44)));
        }
    }

    static std::string argument(std::string_view annotation, Tables& tables) {
        if (const auto whole = field(annotation, 4)) return std::to_string(static_cast<std::int64_t>(whole->value));
        if (const auto real = field(annotation, 5)) return fmt::format("{}", std::bit_cast<double>(real->value));
        return tables.texts.at(number_in(annotation, 17));
    }

    std::map<std::uint64_t, Tables> tables_;
    std::map<std::uint64_t, std::string_view> tracks_;
    std::map<std::uint64_t, int> pids_;
    std::map<std::uint64_t, Slice> open_;
    Shown shown_;
};

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
    for (Event& event : measured.events) event.rank = 1;
    const Shown trace = shown({three_events(), measured});
    EXPECT_THAT(trace.processes, testing::ElementsAre("predicted: rank 0", "measured: rank 1"));
    EXPECT_EQ(trace.slices.size(), 6U);
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

}  // namespace

}  // namespace rehearse::trace
