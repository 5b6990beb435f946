// SPDX-License-Identifier: Apache-2.0
// Fields as in perfetto.proto.
#include "trace/perfetto_scan.hpp"

#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/layout.hpp"
#include "trace/perfetto_packets.hpp"

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
class Scanner {
public:
    Scanner(Packets& file, const ScanVisitor& visitor) : file_(file), visitor_(visitor) {}

    void scan() {
        std::int64_t packets = 0;
        while (const auto packet = file_.next()) {
            take(*packet);
            if (++packets % 1048576 == 0 && visitor_.progress && !visitor_.progress(file_.share_done()))
                throw Irregular{};
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

    void take(std::string_view packet) {
        std::uint64_t timestamp = 0;
        std::string_view event;
        while (!packet.empty()) {
            const Field field = next(packet);
            if (field.number == 8) timestamp = field.value;
            if (field.number == 10 && field.value != 1) throw Irregular{};  // a second timeline
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
            if (table == &keys_ && keys_.back() == "rank") rank_key_ = keys_.size();
            if (table == &keys_ && keys_.back() == "iteration") iteration_key_ = keys_.size();
            if (table == &keys_ && keys_.back() == "flow") flow_key_ = keys_.size();
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
        std::uint64_t type = 0, track = 0, name = 0, category = 0;
        double value = 0;
        std::string_view text;
        kind_.clear();
        ScannedEvent found;
        const char* run = nullptr;  // where annotations of its kind that follow each other begin
        while (!event.empty()) {
            const char* const from = event.data();
            const Field field = next(event);
            if (field.number == 4 && !is_own(field.bytes, found)) {
                if (run == nullptr) run = from;
                continue;
            }
            if (run != nullptr) kind_.append(run, from);
            run = nullptr;
            switch (field.number) {
                case 3:
                    category = field.value;
                    break;
                case 9:
                    type = field.value;
                    break;
                case 10:
                    name = field.value;
                    break;
                case 11:
                    track = field.value;
                    break;
                case 23:
                    text = field.bytes;
                    break;
                case 44:
                    value = std::bit_cast<double>(field.value);
                    break;
                default:
                    break;
            }
        }
        if (run != nullptr) kind_.append(run, event.data());
        if (type == 3 && text == schema) return take_head(whole);
        if (!has_head_ || track >= starts_.size()) throw Irregular{};
        if (type == 3 && text == link_instant) return take_link(whole);
        const std::int64_t time = timestamp - shift_;
        if (type == 1) begin(found, time, track, name, category);
        if (type == 2) end(time, track);
        if (type == 4) counters_[counter_of_.at(track)].points.emplace_back(from_ns(time), value);
    }

    // Rank, iteration and flow are each event's own; the rest of the annotations belongs to its kind.
    bool is_own(std::string_view annotation, ScannedEvent& event) const {
        const Field key = next(annotation);
        if (key.number != 1 || (key.value != rank_key_ && key.value != iteration_key_ && key.value != flow_key_))
            return false;
        const Field number = next(annotation);
        if (number.number != 4) throw Irregular{};
        if (key.value == rank_key_) event.rank = static_cast<std::int64_t>(number.value);
        if (key.value == iteration_key_) event.iteration = static_cast<int>(number.value);
        if (key.value == flow_key_) event.flow = static_cast<std::int64_t>(number.value);
        return true;
    }

    void begin(ScannedEvent& event, std::int64_t time, std::uint64_t track, std::uint64_t name,
               std::uint64_t category) {
        if (is_open_[track]) throw Irregular{};
        kind_.append(reinterpret_cast<const char*>(&name), sizeof(name));
        kind_.push_back(static_cast<char>(category));
        auto known = what_of_.find(kind_);
        if (known == what_of_.end()) known = add_kind(name, category);
        event.track = track;
        event.start = time;
        event.what = known->second.number;
        event.stream = known->second.stream;
        starts_[track] = event;
        is_open_[track] = true;
    }

    void end(std::int64_t time, std::uint64_t track) {
        ScannedEvent& event = starts_[track];
        if (!is_open_[track] || time < event.start) throw Irregular{};
        event.end = time;
        is_open_[track] = false;
        visitor_.event(event);
    }

    struct Kind {
        std::uint32_t number = 0;
        Stream stream = Stream::compute;
    };
    // Eight bytes at a time: a kind is looked up for every event.
    struct Hash {
        std::size_t operator()(std::string_view bytes) const noexcept {
            std::uint64_t hash = bytes.size();
            for (; bytes.size() >= 8; bytes.remove_prefix(8)) hash = mixed(hash, word(bytes, 8));
            return mixed(hash, word(bytes, bytes.size()));
        }
        static std::uint64_t word(std::string_view bytes, std::size_t count) noexcept {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data(), count);
            return word;
        }
        static std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) noexcept {
            hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
            return hash ^ (hash >> 32U);
        }
    };
    using Kinds = std::unordered_map<std::string, Kind, Hash>;

    Kinds::iterator add_kind(std::uint64_t name, std::uint64_t category) {
        const auto stream = stream_named(text(categories_, category));
        if (!stream) throw Irregular{};
        Event event;
        event.stream = *stream;
        event.step = text(names_, name);
        std::string_view left(kind_.data(), kind_.size() - sizeof(name) - 1);
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
        return what_of_.emplace(kind_, Kind{static_cast<std::uint32_t>(what_of_.size()), *stream}).first;
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

    Packets& file_;
    const ScanVisitor& visitor_;
    bool has_head_ = false;
    std::int64_t packets_ = 0, shift_ = 0;
    std::vector<std::string> names_, categories_, keys_, texts_;
    std::uint64_t rank_key_ = 0, iteration_key_ = 0, flow_key_ = 0;
    std::vector<ScannedEvent> starts_;  // by track
    std::vector<bool> is_open_;
    std::unordered_map<std::uint64_t, std::size_t> counter_of_;
    std::vector<Counter> counters_;
    std::vector<LinkUse> links_;
    std::string kind_;
    Kinds what_of_;
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
