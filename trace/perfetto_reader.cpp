// SPDX-License-Identifier: Apache-2.0
// Reads what perfetto_writer.cpp wrote, packet by packet; packets and fields that it doesn't know are passed over.
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "trace/formats.hpp"
#include "trace/layout.hpp"
#include "trace/perfetto.pb.h"

namespace rehearse::trace {

namespace {

using wire::DebugAnnotation;
using wire::TracePacket;
using wire::TrackEvent;
using InternedList = google::protobuf::RepeatedPtrField<wire::InternedText>;

struct Sequence {
    bool has_head = false;
    Timeline timeline;
    std::vector<std::string> names, categories, keys, texts;  // interned, from 1
    std::unordered_map<std::uint64_t, std::size_t> open;      // track -> event that has begun
    std::unordered_map<std::uint64_t, std::size_t> counters;  // track -> counter
};

class PerfettoReader {
public:
    explicit PerfettoReader(InputFile& file) : file_(file) {}

    std::vector<Timeline> read() {
        while (next_packet()) take();
        if (sequences_.empty() || timelines_ == 0) {
            file_.is_not_a_trace("none of its packets is the head of a timeline (another program's trace, or cut off)");
        }
        if (read_ < packets_) file_.is_cut_off(fmt::format("only {} of {} packets are there", read_, packets_));
        std::vector<Timeline> timelines;
        for (auto& [id, sequence] : sequences_) {
            if (!sequence.has_head) continue;
            if (!sequence.open.empty()) broken("an event never ends");
            sort_events(sequence.timeline);
            timelines.push_back(std::move(sequence.timeline));
        }
        if (static_cast<std::int64_t>(timelines.size()) != timelines_) broken("timelines are missing");
        return timelines;
    }

private:
    [[noreturn]] void broken(std::string_view what) const { file_.is_broken(offset_, what); }

    int next_byte() {
        const int byte = file_.stream().rdbuf()->sbumpc();
        if (byte != std::char_traits<char>::eof()) ++position_;
        return byte;
    }

    std::uint64_t next_length() {
        std::uint64_t length = 0;
        for (unsigned shift = 0; shift < 63; shift += 7) {
            const int byte = next_byte();
            if (byte == std::char_traits<char>::eof()) file_.is_cut_off("in the length of a packet");
            length |= (static_cast<std::uint64_t>(byte) & 0x7FU) << shift;
            if (byte < 0x80) return length;
        }
        broken("the length of a packet has no end");
    }

    // False at the end of the file.
    bool next_packet() {
        offset_ = position_;
        const int tag = next_byte();
        if (tag == std::char_traits<char>::eof()) return false;
        if (tag != 0x0A) broken(fmt::format("a packet begins with 0x0a, not {:#04x}", tag));
        const std::uint64_t length = next_length();
        const std::int64_t left = file_.size() - position_;
        if (length > static_cast<std::uint64_t>(left)) {
            file_.is_cut_off(fmt::format("{}the packet from byte {} on has {} bytes, of which {} are there",
                                         offset_ == 0 ? "or no trace at all: " : "", offset_, length, left));
        }
        bytes_.resize(length);
        file_.stream().rdbuf()->sgetn(bytes_.data(), static_cast<std::streamsize>(length));
        position_ += static_cast<std::int64_t>(length);
        if (!packet_.ParseFromString(bytes_)) {
            if (offset_ == 0) file_.is_not_a_trace("its first packet is none of Perfetto's");
            broken("a packet that is no Perfetto packet");
        }
        ++read_;
        return true;
    }

    void take() {
        Sequence& sequence = sequences_[packet_.trusted_packet_sequence_id()];
        if (packet_.has_interned_data()) {
            const wire::InternedData& data = packet_.interned_data();
            intern(data.event_names(), sequence.names);
            intern(data.event_categories(), sequence.categories);
            intern(data.debug_annotation_names(), sequence.keys);
            intern(data.debug_annotation_string_values(), sequence.texts);
        }
        if (packet_.has_track_descriptor()) take_track(sequence, packet_.track_descriptor());
        if (packet_.has_track_event()) take_event(sequence, packet_.track_event());
    }

    // Another program may number as it likes; ours counts from 1, so that a table is a vector.
    void intern(const InternedList& list, std::vector<std::string>& table) {
        for (const wire::InternedText& entry : list) {
            if (entry.iid() != table.size() + 1) foreign();
            table.push_back(entry.text());
        }
    }

    [[noreturn]] void foreign() const {
        file_.is_not_a_trace(fmt::format("a Perfetto trace of another program (byte {})", offset_));
    }

    const std::string& text_of(const std::vector<std::string>& table, std::uint64_t iid) const {
        if (iid == 0 || iid > table.size()) broken(fmt::format("interned string {} does not exist", iid));
        return table[iid - 1];
    }

    void take_track(Sequence& sequence, const wire::TrackDescriptor& track) {
        if (!track.has_counter()) return;
        const bool bytes = track.counter().unit() == wire::CounterDescriptor::UNIT_SIZE_BYTES;
        if (!sequence.counters.emplace(track.uuid(), sequence.timeline.counters.size()).second) {
            broken("a counter is described twice");
        }
        sequence.timeline.counters.push_back({track.name(), bytes ? "bytes" : track.counter().unit_name(), {}});
    }

    void take_event(Sequence& sequence, const TrackEvent& event) {
        if (event.type() == TrackEvent::TYPE_INSTANT && event.name() == schema) return take_head(sequence, event);
        if (!sequence.has_head) foreign();
        if (event.type() == TrackEvent::TYPE_INSTANT && event.name() == link_instant) take_link(sequence, event);
        switch (event.type()) {
            case TrackEvent::TYPE_SLICE_BEGIN:
                begin_slice(sequence, event);
                break;
            case TrackEvent::TYPE_SLICE_END:
                end_slice(sequence, event);
                break;
            case TrackEvent::TYPE_COUNTER:
                add_point(sequence, event);
                break;
            default:
                break;
        }
    }

    void take_head(Sequence& sequence, const TrackEvent& event) {
        if (sequence.has_head) broken("a timeline has two heads");
        sequence.has_head = true;
        for (const DebugAnnotation& annotation : event.debug_annotations()) {
            const std::string& name = annotation.name();
            if (name == "title") sequence.timeline.title = annotation.string_value();
            if (name == "measured") sequence.timeline.measured = annotation.bool_value();
            if (name == "ranks") sequence.timeline.ranks = annotation.int_value();
            if (name == "timelines") timelines_ = annotation.int_value();
            if (name == "packets") packets_ = annotation.int_value();
            if (name == "shift_ns") shift_ = annotation.int_value();
        }
    }

    Seconds now() const {
        constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        const std::uint64_t ns = packet_.timestamp();
        const auto time = ns > most ? std::nullopt : from_file_ns(static_cast<std::int64_t>(ns), shift_);
        if (!time) broken(fmt::format("time {} ns is out of range", ns));
        return *time;
    }

    void begin_slice(Sequence& sequence, const TrackEvent& wire_event) {
        Event event;
        event.start = now();
        event.step = text_of(sequence.names, wire_event.name_iid());
        if (wire_event.category_iids_size() != 1) broken("an event has no stream");
        const auto stream = stream_named(text_of(sequence.categories, wire_event.category_iids(0)));
        if (!stream) broken("an event is of no known stream");
        event.stream = *stream;
        for (const DebugAnnotation& annotation : wire_event.debug_annotations()) {
            set(event, text_of(sequence.keys, annotation.name_iid()), annotation, sequence);
        }
        if (!sequence.open.emplace(wire_event.track_uuid(), sequence.timeline.events.size()).second) {
            broken("an event begins before the last one on its track has ended");
        }
        sequence.timeline.events.push_back(std::move(event));
    }

    void set(Event& event, const std::string& key, const DebugAnnotation& value, const Sequence& sequence) const {
        if (key == "rank") event.rank = RankIndex{value.int_value()};
        if (key == "layer") event.layer = text_of(sequence.texts, value.string_value_iid());
        if (key == "pass") event.pass = text_of(sequence.texts, value.string_value_iid());
        if (key == "micro_batch") event.micro_batch = whole(value);
        if (key == "iteration") event.iteration = whole(value);
        if (key == "bytes") event.bytes = Bytes{number(value)};
        if (key == "flops") event.flops = Flops{number(value)};
        if (key == "flow") event.flow = value.int_value();
    }

    void take_link(Sequence& sequence, const TrackEvent& wire_event) {
        LinkUse use;
        use.links = 0;
        for (const DebugAnnotation& value : wire_event.debug_annotations()) {
            const std::string& key = text_of(sequence.keys, value.name_iid());
            if (key == "name") use.name = text_of(sequence.texts, value.string_value_iid());
            if (key == "kind") use.kind = text_of(sequence.texts, value.string_value_iid());
            if (key == "links") use.links = value.int_value();
            if (key == "capacity") use.capacity = Bandwidth{number(value)};
            if (key == "bytes") use.bytes = Bytes{number(value)};
            if (key == "most") use.most = Bytes{number(value)};
        }
        sequence.timeline.links.push_back(std::move(use));
    }

    static double number(const DebugAnnotation& value) {
        return value.has_double_value() ? value.double_value() : static_cast<double>(value.int_value());
    }

    int whole(const DebugAnnotation& value) const {
        if (!std::in_range<int>(value.int_value())) broken(fmt::format("{} is out of range", value.int_value()));
        return static_cast<int>(value.int_value());
    }

    void end_slice(Sequence& sequence, const TrackEvent& wire_event) {
        const auto open = sequence.open.find(wire_event.track_uuid());
        if (open == sequence.open.end()) broken("an event ends that has not begun");
        Event& event = sequence.timeline.events[open->second];
        event.end = now();
        if (event.end < event.start) broken("an event ends before it begins");
        sequence.open.erase(open);
    }

    void add_point(Sequence& sequence, const TrackEvent& wire_event) {
        const auto counter = sequence.counters.find(wire_event.track_uuid());
        if (counter == sequence.counters.end()) broken("a value of a counter that is not described");
        sequence.timeline.counters[counter->second].points.emplace_back(now(), wire_event.double_counter_value());
    }

    InputFile& file_;
    std::int64_t offset_ = 0, position_ = 0;  // of this packet, of the next byte
    std::int64_t read_ = 0, packets_ = 0, timelines_ = 0, shift_ = 0;
    std::map<std::uint32_t, Sequence> sequences_;
    TracePacket packet_;
    std::string bytes_;
};

}  // namespace

std::vector<Timeline> read_perfetto(InputFile& file) { return PerfettoReader(file).read(); }

}  // namespace rehearse::trace
