// SPDX-License-Identifier: Apache-2.0
#include "run/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "core/error.hpp"
#include "core/ring_attention.hpp"

namespace rehearse::run {

namespace {

// What an event says of its step, but for its times.
struct Describe {
    Event operator()(const Compute& compute) const {
        const Problem& p = compute.problem;
        Event event = of_problem(network.layers[static_cast<std::size_t>(compute.layer)].name, p);
        event.micro_batch = compute.micro_batch;
        return event;
    }
    Event operator()(const Communicate& communicate) const {
        const bool bucket = communicate.of_bucket();
        Event event =
            of_layer(bucket ? LayerIndex{} : communicate.layer(), communicate.micro_batch, pass_of(communicate));
        if (bucket) event.layer = bucket_name(communicate.bucket());
        return event;
    }
    Event operator()(const Send& send) const { return of_layer(send.layer, send.micro_batch, "send"); }
    Event operator()(const Recv& recv) const { return of_layer(recv.layer, recv.micro_batch, "recv"); }
    Event operator()(const PushPull& push_pull) const {
        Event event;
        event.layer = bucket_name(push_pull.bucket);
        event.pass = "trade";
        return event;
    }
    Event operator()(const Precondition& precondition) const {
        const bool factor = precondition.bucket >= 0;
        Event event = of_problem(factor ? bucket_name(precondition.bucket) : "", precondition.problem);
        event.micro_batch = precondition.micro_batch;
        return event;
    }
    Event operator()(const Update& update) const { return of_problem(bucket_name(update.bucket), update.problem); }
    Event operator()(const auto&) const {
        require(false, "a program holds only what run executes");
        return {};
    }

    static std::string bucket_name(int bucket) { return fmt::format("bucket{}", bucket); }

    Event of_layer(LayerIndex layer, int micro_batch, std::string_view pass) const {
        Event event;
        if (layer >= 0) event.layer = network.layers[static_cast<std::size_t>(layer)].name;
        event.micro_batch = micro_batch;
        event.pass = pass;
        return event;
    }

    static Event of_problem(std::string layer, const Problem& p) {
        Event event;
        event.layer = std::move(layer);
        event.pass = to_string(p.pass);
        event.bytes = bytes_moved(p.op, p.pass, p.type, p.batch);
        event.flops = flops(p.op, p.pass, p.batch);
        return event;
    }

    const Network& network;
};

/// Sends and receives of a rank class: the n-th send of a rank to another one meets the n-th receive there of the same
/// tensors.
class Messages {
public:
    explicit Messages(const RankClass& rank_class) {
        std::map<Channel, int> sent, received;
        for (const Step& step : rank_class.steps) {
            if (const auto* send = std::get_if<Send>(&step.action)) {
                const Channel to{send->axis, send->offset, step.stream == Stream::send_gradients};
                sends_[{to, sent[to]++}] = &step;
            } else if (const auto* receive = std::get_if<Recv>(&step.action)) {
                const Channel from{receive->axis, receive->offset, step.stream == Stream::receive_gradients};
                receives_[{step.stream, step.name}] = {receive, {from, received[from]++}};
            }
        }
    }

    struct Received {
        const Recv* receive = nullptr;  // null: an event of another kind
        const Step* sent_by(const Messages& peer) const {
            const auto [axis, offset, gradients] = number.first;
            const auto found = peer.sends_.find({Channel{axis, -offset, gradients}, number.second});
            return found == peer.sends_.end() ? nullptr : found->second;
        }
        std::pair<std::tuple<int, std::int64_t, bool>, int> number{};  // where from, and the how manieth of these
    };
    Received received(const Event& event) const {
        const auto found = receives_.find({event.stream, event.step});
        return found == receives_.end() ? Received{} : found->second;
    }

private:
    using Channel = std::tuple<int, std::int64_t, bool>;  // axis, offset, whether of gradients
    std::map<std::pair<Channel, int>, const Step*> sends_;
    std::map<std::pair<Stream, std::string>, Received> receives_;
};

std::vector<double> as_doubles(const std::vector<std::byte>& bytes) {
    std::vector<double> values(bytes.size() / sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

}  // namespace

Recording::Recording(std::vector<double> bytes_sent, int iterations) : bytes_sent_(std::move(bytes_sent)) {
    times_.reserve(2 * bytes_sent_.size() * static_cast<std::size_t>(std::min(iterations, most_iterations)));
}

void Recording::add(std::span<const Interval> times) {
    const std::size_t at = 2 * times.size() * static_cast<std::size_t>(iterations_++ % most_iterations);
    times_.resize(std::max(times_.size(), at + 2 * times.size()));
    for (std::size_t i = 0; i < times.size(); ++i) {
        times_[at + 2 * i] = seconds(times[i].start);
        times_[at + 2 * i + 1] = seconds(times[i].end);
    }
}

void Recording::align(const Alignment& alignment) {
    const std::size_t oldest = 2 * bytes_sent_.size() * static_cast<std::size_t>(dropped() % most_iterations);
    std::ranges::rotate(times_, times_.begin() + static_cast<std::ptrdiff_t>(oldest));
    for (double& time : times_) time = alignment.at_rank_zero(time);
}

std::vector<Event> events_of(const Schedule& schedule, RankIndex rank, std::span<const double> bytes_sent,
                             std::span<const double> times, double origin, int first) {
    const RankClass& of = schedule.classes[static_cast<std::size_t>(class_of(schedule, rank))];
    const auto& steps = of.steps;
    std::vector<Event> events;
    for (std::size_t i = 0; i < times.size() / 2; ++i) {
        const Step& step = steps[i % steps.size()];
        Event event = std::visit(Describe{of.part.network}, step.action);
        event.rank = rank;
        event.stream = step.stream;
        event.step = step.name;
        if (event.stream != Stream::compute) event.bytes = Bytes{bytes_sent[i % steps.size()]};
        event.iteration = first + static_cast<int>(i / steps.size());
        event.start = Seconds{times[2 * i] - origin};
        event.end = Seconds{times[2 * i + 1] - origin};
        events.push_back(std::move(event));
    }
    return events;
}

void meet(const Schedule& schedule, std::vector<Event>& events) {
    using Key = std::tuple<int, RankIndex, Stream, std::string>;  // iteration, rank, stream, step
    std::map<Key, Event*> by_step;
    for (Event& event : events) by_step[{event.iteration, event.rank, event.stream, event.step}] = &event;
    const std::vector<Messages> messages{schedule.classes.begin(), schedule.classes.end()};  // by class
    const auto messages_of = [&](RankIndex rank) -> const Messages& {
        return messages[static_cast<std::size_t>(class_of(schedule, rank))];
    };
    for (Event& event : events) {
        const Messages::Received received = messages_of(event.rank).received(event);
        if (received.receive == nullptr) continue;
        const Recv& receive = *received.receive;
        const RankIndex peer = neighbour(schedule.mesh, receive.axis, event.rank, receive.offset);
        const Step* const send = received.sent_by(messages_of(peer));
        require(send != nullptr, "a receive has a send");
        const auto sent = by_step.find({event.iteration, peer, send->stream, send->name});
        require(sent != by_step.end(), "a send has been recorded");
        const Seconds both = std::max(event.start, sent->second->start);
        if (both <= event.end && both <= sent->second->end) event.start = sent->second->start = both;
    }
}

std::vector<Event> events_of_servers(const Schedule& schedule, const ServerLogs& logs, double origin, int first) {
    std::vector<Event> events;
    for (std::size_t server = 0; server < logs.size(); ++server) {
        for (const Served& served : logs[server]) {
            if (served.step < first) continue;
            const RankClass& of = class_of_stage(schedule, served.stage);
            const auto step = std::ranges::find_if(of.steps, [&](const Step& other) {
                const auto* push_pull = std::get_if<PushPull>(&other.action);
                return push_pull != nullptr && push_pull->bucket == served.bucket;
            });
            require(step != of.steps.end(), "a server takes what its schedule pushes");
            const auto& push_pull = std::get<PushPull>(step->action);
            Event event;
            event.rank = RankIndex{ranks(schedule.mesh) + static_cast<std::int64_t>(server)};
            event.bucket = BucketIndex{served.bucket};
            event.layer = fmt::format("bucket{}", served.bucket);
            event.step = event.layer + ":serve";
            event.pass = "update";
            event.iteration = served.step;
            event.start = Seconds{served.came - origin};
            event.end = Seconds{served.updated - origin};
            for (const Problem& problem : push_pull.work) {
                event.flops += flops(problem.op, problem.pass, problem.batch);
                event.bytes += bytes_moved(problem.op, problem.pass, problem.type, problem.batch);
            }
            events.push_back(event);
            event.step = event.layer + ":answer";
            event.pass = "send";
            event.stream = step->stream;
            event.start = event.end;
            event.end = Seconds{served.answered - origin};
            event.flops = {};
            event.bytes = static_cast<double>(push_pull.received) * size_of(DataType::f32);
            events.push_back(std::move(event));
        }
    }
    return events;
}

Timeline make_timeline(const Schedule& schedule, const kernels::Communicator& world, const Recording& recording,
                       const ServerLogs& logs) {
    std::vector<double> own{recording.bytes_sent().begin(), recording.bytes_sent().end()};
    own.insert(own.end(), recording.times().begin(), recording.times().end());
    std::vector<std::vector<double>> all;
    for (const auto& bytes : world.gather(std::as_bytes(std::span{own}))) all.push_back(as_doubles(bytes));
    RankIndex first{0};
    if (all.empty()) {
        first = RankIndex{world.rank()};
        all.push_back(std::move(own));
    }
    Timeline timeline;
    timeline.measured = true;
    timeline.ranks = world.size();
    if (recording.times().empty()) return timeline;
    // Each rank sent what its steps sent, then their times; ranks of different classes have different steps.
    const auto rank_of = [&](std::size_t i) { return RankIndex{first + static_cast<std::int64_t>(i)}; };
    const auto steps_of = [&](std::size_t i) {
        const int of = class_of(schedule, rank_of(i));
        return schedule.classes[static_cast<std::size_t>(of)].steps.size();
    };
    double origin = recording.times().front();
    for (std::size_t i = 0; i < all.size(); ++i) {
        origin = std::min(origin, *std::ranges::min_element(std::span{all[i]}.subspan(steps_of(i))));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::span<const double> both{all[i]};
        std::ranges::move(events_of(schedule, rank_of(i), both.first(steps_of(i)), both.subspan(steps_of(i)), origin,
                                    recording.first_iteration()),
                          std::back_inserter(timeline.events));
    }
    if (timeline.ranks > 1 && all.size() > 1) meet(schedule, timeline.events);
    if (world.rank() == 0)
        std::ranges::move(events_of_servers(schedule, logs, origin, recording.first_iteration()),
                          std::back_inserter(timeline.events));
    std::ranges::stable_sort(timeline.events, [](const Event& a, const Event& b) {
        return std::tie(a.iteration, a.rank, a.start) < std::tie(b.iteration, b.rank, b.start);
    });
    return timeline;
}

}  // namespace rehearse::run
