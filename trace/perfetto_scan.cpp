// SPDX-License-Identifier: Apache-2.0
// Fields as in perfetto.proto.
#include "trace/perfetto_scan.hpp"

#include <bit>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "trace/dependency_text.hpp"
#include "trace/layout.hpp"
#include "trace/perfetto_packets.hpp"
#include "trace/perfetto_slices.hpp"

namespace rehearse::trace {

namespace {

std::string_view text_field(std::string_view message, std::uint32_t number) {
    while (!message.empty()) {
        if (const Field field = next(message); field.number == number) return field.bytes;
    }
    return {};
}

// What a slice says besides when: equal bytes of name, category and annotations say the same, so each text of bytes is
// decoded once. Rank, iteration and flow, which differ between equal kinds, are read every time.
// Large: one table a kind of interned text, and the events that are open in each track.
class Scanner {
public:
    Scanner(Packets& file, const ScanVisitor& visitor) : file_(file), blocks_(file), visitor_(visitor) {}

    void scan() {
        std::int64_t packets = 0;
        while (const ParsedBlock* block = blocks_.next()) {
            if (block->irregular) throw Irregular{};
            take(*block);
            packets += block->packets;
            if (visitor_.progress && !visitor_.progress(file_.share_done())) throw Irregular{};
        }
        if (!has_head_ || packets != packets_) throw Irregular{};
        for (const bool open : is_open_) {
            if (open) throw Irregular{};
        }
        for (Counter& counter : counters_) visitor_.counter(std::move(counter));
        for (LinkUse& use : links_) visitor_.link(std::move(use));
    }

private:
    struct Annotation {
        std::uint64_t key = 0, text = 0;
        std::int64_t whole = 0;
        double real = 0;
        bool is_real = false;
        std::string_view name, string;
    };

    static Annotation annotation_of(std::string_view bytes) {
        Annotation a;
        while (!bytes.empty()) {
            const Field field = next(bytes);
            if (field.number == 1) a.key = field.value;
            if (field.number == 2 || field.number == 4) a.whole = static_cast<std::int64_t>(field.value);
            if (field.number == 5) a.real = std::bit_cast<double>(field.value), a.is_real = true;
            if (field.number == 6) a.string = field.bytes;
            if (field.number == 10) a.name = field.bytes;
            if (field.number == 17) a.text = field.value;
        }
        return a;
    }

    void take(const ParsedBlock& block) {
        const auto parser = static_cast<std::size_t>(block.parser);
        if (kind_of_.size() <= parser) kind_of_.resize(parser + 1);
        for (const SliceRecord& record : block.records) {
            if (record.kind == SliceRecord::other) {
                take(block.block.bytes().substr(static_cast<std::size_t>(record.time),
                                                static_cast<std::size_t>(record.flow)));
                continue;
            }
            if (!has_head_ || record.track >= starts_.size()) throw Irregular{};
            if (record.kind == SliceRecord::ends) {
                end(record.time - shift_, record.track);
            } else {
                begin(record, kind(parser, record.kind));
            }
        }
    }

    // A packet that is not only a slice: its slice has a record of its own.
    void take(std::string_view packet) {
        std::uint64_t timestamp = 0;
        std::string_view event;
        while (!packet.empty()) {
            const Field field = next(packet);
            if (field.number == 8) timestamp = field.value;
            if (field.number == 11) event = field.bytes;
            if (field.number == 12) intern(field.bytes);
            if (field.number == 60) describe(field.bytes);
        }
        if (!event.empty()) take_event(static_cast<std::int64_t>(timestamp), event);
    }

    void intern(std::string_view data) {
        while (!data.empty()) {
            const Field field = next(data);
            std::vector<std::string>* table = field.number == 1    ? &categories_
                                              : field.number == 2  ? &names_
                                              : field.number == 3  ? &keys_
                                              : field.number == 29 ? &texts_
                                                                   : nullptr;
            if (table != nullptr) table->emplace_back(text_field(field.bytes, 2));
        }
    }

    void describe(std::string_view track) {
        std::uint64_t uuid = 0;
        std::string_view name, counter;
        bool counts = false;
        while (!track.empty()) {
            const Field field = next(track);
            if (field.number == 1) uuid = field.value;
            if (field.number == 2) name = field.bytes;
            if (field.number == 8) counter = field.bytes, counts = true;
        }
        if (uuid == 0 || uuid > 4'000'000) throw Irregular{};
        if (starts_.size() <= uuid) starts_.resize(uuid + 1), is_open_.resize(uuid + 1);
        if (!counts) return;
        counter_of_[uuid] = counters_.size();
        Counter& made = counters_.emplace_back();
        made.name = name;
        made.unit = text_field(counter, 6);
        while (!counter.empty()) {
            if (const Field field = next(counter); field.number == 3 && field.value == 3) made.unit = "bytes";
        }
    }

    void take_event(std::int64_t timestamp, std::string_view event) {
        const std::string_view whole = event;
        std::uint64_t type = 0, track = 0;
        double value = 0;
        std::string_view text;
        while (!event.empty()) {
            const Field field = next(event);
            if (field.number == 9) type = field.value;
            if (field.number == 11) track = field.value;
            if (field.number == 23) text = field.bytes;
            if (field.number == 44) value = std::bit_cast<double>(field.value);
        }
        if (type == 3 && text == schema) return take_head(whole);
        if (!has_head_ || track >= starts_.size()) throw Irregular{};
        if (type == 3 && text == link_instant) return take_link(whole);
        if (type == 3 && text == dependencies_instant) return take_dependencies(whole);
        if (type == 4) counters_[counter_of_.at(track)].points.emplace_back(from_ns(timestamp - shift_), value);
    }

    struct Kind {
        std::uint32_t number = 0;
        Stream stream = Stream::compute;
        bool known = false;
    };

    void begin(const SliceRecord& record, const Kind& kind) {
        if (is_open_[record.track]) throw Irregular{};
        ScannedEvent& event = starts_[record.track];
        event.track = record.track;
        event.start = record.time - shift_;
        event.what = kind.number;
        event.rank = RankIndex{record.rank};
        event.stream = kind.stream;
        event.iteration = record.iteration;
        event.flow = record.flow;
        is_open_[record.track] = true;
    }

    void end(std::int64_t time, std::uint64_t track) {
        ScannedEvent& event = starts_[track];
        if (!is_open_[track] || time < event.start) throw Irregular{};
        event.end = time;
        is_open_[track] = false;
        visitor_.event(event);
    }

    // Of a parser's number: the same of all parsers.
    const Kind& kind(std::size_t parser, std::uint32_t number) {
        std::vector<Kind>& kinds = kind_of_[parser];
        if (kinds.size() <= number) kinds.resize(number + 1);
        Kind& kind = kinds[number];
        if (kind.known) return kind;
        const KindBytes bytes = blocks_.parser(static_cast<int>(parser)).kind(number);
        const auto [place, is_new] = kinds_.try_emplace({bytes.name, bytes.category, bytes.annotations});
        if (is_new) place->second = described(bytes);
        return kind = place->second;
    }

    Kind described(const KindBytes& bytes) {
        const auto stream = stream_named(text(categories_, bytes.category));
        if (!stream) throw Irregular{};
        Event event;
        event.stream = *stream;
        event.step = text(names_, bytes.name);
        std::string_view left = bytes.annotations;
        while (!left.empty()) {
            const Annotation a = annotation_of(next(left).bytes);
            const std::string& key = text(keys_, a.key);
            const double number = a.is_real ? a.real : static_cast<double>(a.whole);
            if (key == "layer") event.layer = text(texts_, a.text);
            if (key == "pass") event.pass = text(texts_, a.text);
            if (key == "micro_batch") event.micro_batch = static_cast<int>(a.whole);
            if (key == "bytes") event.bytes = Bytes{number};
            if (key == "flops") event.flops = Flops{number};
        }
        visitor_.what(event);
        return {static_cast<std::uint32_t>(kinds_.size() - 1), *stream, true};
    }

    static const std::string& text(const std::vector<std::string>& table, std::uint64_t id) {
        if (id == 0 || id > table.size()) throw Irregular{};
        return table[id - 1];
    }

    void take_head(std::string_view event) {
        Timeline head;
        std::int64_t timelines = 0;
        while (!event.empty()) {
            const Field field = next(event);
            if (field.number != 4) continue;
            const Annotation a = annotation_of(field.bytes);
            if (a.name == "title") head.title = a.string;
            if (a.name == "measured") head.measured = a.whole != 0;
            if (a.name == "ranks") head.ranks = a.whole;
            if (a.name == "timelines") timelines = a.whole;
            if (a.name == "packets") packets_ = a.whole;
            if (a.name == "shift_ns") shift_ = a.whole;
        }
        if (has_head_ || timelines != 1) throw Irregular{};
        has_head_ = true;
        visitor_.head(head);
    }

    void take_link(std::string_view event) {
        LinkUse& use = links_.emplace_back();
        use.links = 0;
        while (!event.empty()) {
            const Field field = next(event);
            if (field.number != 4) continue;
            const Annotation a = annotation_of(field.bytes);
            const std::string& key = text(keys_, a.key);
            const double number = a.is_real ? a.real : static_cast<double>(a.whole);
            if (key == "name") use.name = text(texts_, a.text);
            if (key == "kind") use.kind = text(texts_, a.text);
            if (key == "links") use.links = a.whole;
            if (key == "capacity") use.capacity = Bandwidth{number};
            if (key == "bytes") use.bytes = Bytes{number};
            if (key == "most") use.most = Bytes{number};
        }
    }

    void take_dependencies(std::string_view event) {
        std::string ranks, steps;
        while (!event.empty()) {
            const Field field = next(event);
            if (field.number != 4) continue;
            const Annotation a = annotation_of(field.bytes);
            const std::string& key = text(keys_, a.key);
            if (key == "ranks") ranks = text(texts_, a.text);
            if (key == "steps") steps = text(texts_, a.text);
        }
        auto found = dependencies_in(ranks, steps);
        if (!found) throw Irregular{};
        if (visitor_.dependencies) visitor_.dependencies(std::move(*found));
    }

    Packets& file_;
    SliceBlocks blocks_;
    const ScanVisitor& visitor_;
    bool has_head_ = false;
    std::int64_t packets_ = 0, shift_ = 0;
    std::vector<std::string> names_, categories_, keys_, texts_;
    std::vector<ScannedEvent> starts_;  // by track
    std::vector<bool> is_open_;
    std::unordered_map<std::uint64_t, std::size_t> counter_of_;
    std::vector<Counter> counters_;
    std::vector<LinkUse> links_;
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::string>, Kind> kinds_;
    std::vector<std::vector<Kind>> kind_of_;  // by parser and its number
};

}  // namespace

bool scan_perfetto(const std::string& path, const ScanVisitor& visitor) {
    try {
        Packets file(path);
        Scanner(file, visitor).scan();
        return true;
    } catch (const Irregular&) {
        return false;
    } catch (const std::out_of_range&) {
        return false;
    }
}

}  // namespace rehearse::trace
