// SPDX-License-Identifier: Apache-2.0
// Each timeline is a packet sequence of its own with its own interned strings:
//
//   track "resnet50 on summit" (instant: title, kind, ranks)
//   ├─ counters
//   process "rank 0"
//   ├─ compute, communication, io     lanes of one stream have one name, so that the UI draws them as one track
//   process "rank 1" ...
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include "core/error.hpp"
#include "trace/dependency_text.hpp"
#include "trace/formats.hpp"
#include "trace/layout.hpp"
#include "trace/perfetto.pb.h"

namespace rehearse::trace {

namespace {

using wire::TracePacket;
using wire::TrackDescriptor;
using wire::TrackEvent;
using InternedList = google::protobuf::RepeatedPtrField<wire::InternedText>;

// Strings that are written once and then named by a number, from 1.
class Interned {
public:
    // `list` takes the string when it is new.
    std::uint64_t id(const std::string& text, InternedList* (wire::InternedData::*list)(), TracePacket& packet) {
        const auto [entry, is_new] = ids_.try_emplace(text, ids_.size() + 1);
        if (is_new) {
            wire::InternedText& interned = *(packet.mutable_interned_data()->*list)()->Add();
            interned.set_iid(entry->second);
            interned.set_text(text);
        }
        return entry->second;
    }

private:
    std::unordered_map<std::string, std::uint64_t> ids_;
};

// What the first packets say of the whole file.
struct FileHead {
    std::int64_t timelines = 0, packets = 0, shift = 0;
    std::vector<std::string> labels;
};

// Ids that are unique in the file.
struct Ids {
    std::uint64_t track = 0;
    std::int32_t process = 0;
};

class SequenceWriter {
public:
    SequenceWriter(std::size_t number, const FileHead& head, Ids& ids, OutputFile& out)
        : number_(number), head_(head), ids_(ids), out_(out) {}

    void write(const Timeline& timeline, const Layout& layout, std::span<const Dependencies> dependencies) {
        write_head(timeline);
        const std::vector<std::uint64_t> tracks = write_tracks(layout);
        for (const std::size_t i : layout.order) write_slice(timeline.events[i], tracks[layout.lane_of[i]]);
        for (const Counter& counter : timeline.counters) write_counter(counter);
        for (const LinkUse& use : timeline.links) write_link(use);
        for (const Dependencies& each : dependencies) write_dependencies(each);
    }

private:
    TracePacket& fresh() {
        packet_.Clear();
        packet_.set_trusted_packet_sequence_id(static_cast<std::uint32_t>(number_ + 1));
        return packet_;
    }

    TrackEvent& fresh_event(TrackEvent::Type type, std::uint64_t track, std::int64_t ns) {
        fresh().set_timestamp(static_cast<std::uint64_t>(ns + head_.shift));
        packet_.set_sequence_flags(TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
        TrackEvent& event = *packet_.mutable_track_event();
        event.set_type(type);
        event.set_track_uuid(track);
        return event;
    }

    TrackDescriptor& fresh_track(std::string_view name) {
        TrackDescriptor& track = *fresh().mutable_track_descriptor();
        track.set_uuid(++ids_.track);
        if (!name.empty()) track.set_name(std::string{name});
        return track;
    }

    void send() {
        const std::size_t size = packet_.ByteSizeLong();
        bytes_.assign(1, '\x0A');
        std::array<google::protobuf::uint8, 10> length{};
        const auto* end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(size, length.data());
        bytes_.append(reinterpret_cast<const char*>(length.data()), static_cast<std::size_t>(end - length.data()));
        packet_.AppendToString(&bytes_);
        out_.append(bytes_);
    }

    void write_head(const Timeline& timeline) {
        TrackDescriptor& track = fresh_track(timeline.title.empty() ? head_.labels[number_] : timeline.title);
        root_ = track.uuid();
        packet_.set_sequence_flags(TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
        send();
        TrackEvent& event = fresh_event(TrackEvent::TYPE_INSTANT, root_, 0);
        event.set_name(std::string{schema});
        const auto annotation = [&](const char* name) {
            wire::DebugAnnotation& a = *event.add_debug_annotations();
            a.set_name(name);
            return &a;
        };
        annotation("title")->set_string_value(timeline.title);
        annotation("measured")->set_bool_value(timeline.measured);
        annotation("ranks")->set_int_value(timeline.ranks);
        annotation("timelines")->set_int_value(head_.timelines);
        annotation("packets")->set_int_value(head_.packets);
        annotation("shift_ns")->set_int_value(head_.shift);
        send();
    }

    // Tracks of all lanes, in their order.
    std::vector<std::uint64_t> write_tracks(const Layout& layout) {
        std::vector<std::uint64_t> tracks;
        std::size_t next = 0;
        for (const RankIndex rank : layout.ranks) {
            TrackDescriptor& process = fresh_track({});
            const std::uint64_t parent = process.uuid();
            process.mutable_process()->set_pid(++ids_.process);
            process.mutable_process()->set_process_name(
                process_name(head_.labels, number_, fmt::format("rank {}", rank)));
            process.set_child_ordering(TrackDescriptor::EXPLICIT);
            send();
            for (; next < layout.lanes.size() && layout.lanes[next].rank == rank; ++next) {
                TrackDescriptor& track = fresh_track(to_string(layout.lanes[next].stream));
                track.set_parent_uuid(parent);
                track.set_sibling_order_rank(static_cast<std::int32_t>(layout.lanes[next].stream));
                tracks.push_back(track.uuid());
                send();
            }
        }
        return tracks;
    }

    wire::DebugAnnotation& annotate(TrackEvent& event, const std::string& name) {
        wire::DebugAnnotation& annotation = *event.add_debug_annotations();
        annotation.set_name_iid(keys_.id(name, &wire::InternedData::mutable_debug_annotation_names, packet_));
        return annotation;
    }

    void annotate(TrackEvent& event, const std::string& name, const std::string& text) {
        if (text.empty()) return;
        annotate(event, name)
            .set_string_value_iid(
                texts_.id(text, &wire::InternedData::mutable_debug_annotation_string_values, packet_));
    }

    // Whole numbers as such: the UI then shows no decimals.
    void annotate(TrackEvent& event, const std::string& name, double value) {
        constexpr double exact = 9007199254740992.0;  // 2^53
        require(std::isfinite(value), "bytes and flops of an event are finite");
        if (value == 0) return;
        wire::DebugAnnotation& annotation = annotate(event, name);
        if (std::abs(value) < exact && value == std::trunc(value)) {
            annotation.set_int_value(static_cast<std::int64_t>(value));
        } else {
            annotation.set_double_value(value);
        }
    }

    void write_slice(const Event& event, std::uint64_t track) {
        TrackEvent& begin = fresh_event(TrackEvent::TYPE_SLICE_BEGIN, track, to_ns(event.start));
        begin.set_name_iid(names_.id(event.step, &wire::InternedData::mutable_event_names, packet_));
        begin.add_category_iids(categories_.id(std::string{to_string(event.stream)},
                                               &wire::InternedData::mutable_event_categories, packet_));
        annotate(begin, "rank").set_int_value(event.rank);
        annotate(begin, "layer", event.layer);
        annotate(begin, "pass", event.pass);
        annotate(begin, "micro_batch").set_int_value(event.micro_batch);
        annotate(begin, "iteration").set_int_value(event.iteration);
        annotate(begin, "bytes", event.bytes.value);
        annotate(begin, "flops", event.flops.value);
        if (event.flow != 0) {
            annotate(begin, "flow").set_int_value(event.flow);
            // Arrows of one number join slices of all timelines: told apart by the highest bits.
            begin.add_flow_ids((static_cast<std::uint64_t>(number_) << 48U) + static_cast<std::uint64_t>(event.flow));
        }
        send();
        fresh_event(TrackEvent::TYPE_SLICE_END, track, to_ns(event.end));
        send();
    }

    void write_counter(const Counter& counter) {
        TrackDescriptor& track = fresh_track(counter.name);
        const std::uint64_t uuid = track.uuid();
        track.set_parent_uuid(root_);
        wire::CounterDescriptor& description = *track.mutable_counter();
        if (counter.unit == "bytes") {
            description.set_unit(wire::CounterDescriptor::UNIT_SIZE_BYTES);  // the UI then shows KB, MB
        } else if (!counter.unit.empty()) {
            description.set_unit_name(counter.unit);
        }
        send();
        for (const auto& [time, value] : counter.points) {
            require(std::isfinite(value), "a counter's values are finite");
            fresh_event(TrackEvent::TYPE_COUNTER, uuid, to_ns(time)).set_double_counter_value(value);
            send();
        }
    }

    void write_link(const LinkUse& use) {
        TrackEvent& event = fresh_event(TrackEvent::TYPE_INSTANT, root_, 0);
        event.set_name(std::string{link_instant});
        annotate(event, "name", use.name);
        annotate(event, "kind", use.kind);
        annotate(event, "links", static_cast<double>(use.links));
        annotate(event, "capacity", use.capacity.value);
        annotate(event, "bytes", use.bytes.value);
        annotate(event, "most", use.most.value);
        send();
    }

    void write_dependencies(const Dependencies& dependencies) {
        TrackEvent& event = fresh_event(TrackEvent::TYPE_INSTANT, root_, 0);
        event.set_name(std::string{dependencies_instant});
        annotate(event, "ranks", ranks_text(dependencies));
        annotate(event, "steps", steps_text(dependencies));
        send();
    }

    std::size_t number_;
    const FileHead& head_;
    Ids& ids_;
    OutputFile& out_;
    std::uint64_t root_ = 0;
    Interned names_, categories_, keys_, texts_;
    TracePacket packet_;
    std::string bytes_;
};

// A reader that has seen fewer packets knows that the file was cut, even between two packets.
std::int64_t packets_of(const Timeline& timeline, const Layout& layout) {
    std::size_t packets =
        2 + layout.ranks.size() + layout.lanes.size() + 2 * timeline.events.size() + timeline.links.size();
    for (const Counter& counter : timeline.counters) packets += 1 + counter.points.size();
    return static_cast<std::int64_t>(packets);
}

}  // namespace

void write_perfetto(std::span<const Timeline> timelines, std::span<const Dependencies> dependencies, OutputFile& out) {
    FileHead head{.timelines = static_cast<std::int64_t>(timelines.size()),
                  .packets = 0,
                  .shift = shift_of(timelines),
                  .labels = labels_of(timelines)};
    std::vector<Layout> layouts;
    for (const Timeline& timeline : timelines) {
        layouts.push_back(lay_out(timeline));
        head.packets += packets_of(timeline, layouts.back());
    }
    head.packets += std::ssize(dependencies);
    Ids ids;
    for (std::size_t i = 0; i < timelines.size(); ++i) {
        SequenceWriter(i, head, ids, out)
            .write(timelines[i], layouts[i], i == 0 ? dependencies : std::span<const Dependencies>{});
    }
}

}  // namespace rehearse::trace
