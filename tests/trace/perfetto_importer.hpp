// SPDX-License-Identifier: Apache-2.0
// The protobuf read a second time: by a walk over the wire format that knows Perfetto's public field numbers
// (protos/perfetto/trace) and nothing of our .proto, and that pairs begins with ends as Perfetto's importer does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rehearse::trace::importer {  // apart from trace/, which has a Field and a varint of its own

struct Field {
    std::uint64_t number = 0, value = 0;  // of varints and fixed64
    std::string_view bytes;               // of length-delimited fields
};

inline std::uint64_t varint(std::string_view& in) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(in.at(0));
        in.remove_prefix(1);
        value |= (byte & 0x7FULL) << shift;
        if (byte < 0x80) return value;
    }
}

inline std::vector<Field> fields_of(std::string_view in) {
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

inline std::optional<Field> field(std::string_view message, std::uint64_t number) {
    for (const Field& f : fields_of(message)) {
        if (f.number == number) return f;
    }
    return std::nullopt;
}

inline std::uint64_t number_in(std::string_view message, std::uint64_t number) {
    const auto f = field(message, number);
    return f ? f->value : 0;
}

inline std::string_view bytes_in(std::string_view message, std::uint64_t number) {
    const auto f = field(message, number);
    return f ? f->bytes : std::string_view{};
}

// What Perfetto would show.
struct Slice {
    std::string name, category, process, track;
    std::uint64_t start = 0, end = 0;
    std::map<std::string, std::string> args;
    std::vector<std::uint64_t> flows;
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
                        .args = {},
                        .flows = {}};
            for (const Field& f : fields_of(event)) {
                if (f.number == 4) slice.args[tables.keys.at(number_in(f.bytes, 1))] = argument(f.bytes, tables);
                if (f.number == 47) slice.flows.push_back(f.value);
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

}  // namespace rehearse::trace::importer
