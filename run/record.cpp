// SPDX-License-Identifier: Apache-2.0
#include "run/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/error.hpp"

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
        Event event = of_layer(communicate.layer, communicate.micro_batch, pass_of(communicate.kind));
        if (communicate.bucket >= 0) event.layer = fmt::format("bucket{}", communicate.bucket);
        return event;
    }
    Event operator()(const Send& send) const { return of_layer(send.layer, send.micro_batch, "send"); }
    Event operator()(const Recv& recv) const { return of_layer(recv.layer, recv.micro_batch, "recv"); }
    Event operator()(const Update& update) const {
        return of_problem(fmt::format("bucket{}", update.bucket), update.problem);
    }
    Event operator()(const auto&) const {
        require(false, "a program holds only what run executes");
        return {};
    }

    Event of_layer(int layer, int micro_batch, std::string_view pass) const {
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

std::vector<double> as_doubles(const std::vector<std::byte>& bytes) {
    std::vector<double> values(bytes.size() / sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

}  // namespace

Recording::Recording(std::vector<double> bytes_sent, int iterations) : bytes_sent_(std::move(bytes_sent)) {
    times_.reserve(2 * bytes_sent_.size() * static_cast<std::size_t>(iterations));
}

void Recording::add(std::span<const Interval> times) {
    for (const Interval& interval : times) {
        times_.push_back(seconds(interval.start));
        times_.push_back(seconds(interval.end));
    }
}

void Recording::align(const Alignment& alignment) {
    for (double& time : times_) time = alignment.at_rank_zero(time);
}

std::vector<Event> events_of(const Schedule& schedule, std::int64_t rank, std::span<const double> bytes_sent,
                             std::span<const double> times, double origin) {
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
        event.iteration = static_cast<int>(i / steps.size());
        event.start = Seconds{times[2 * i] - origin};
        event.end = Seconds{times[2 * i + 1] - origin};
        events.push_back(std::move(event));
    }
    return events;
}

Timeline make_timeline(const Schedule& schedule, const kernels::Communicator& world, const Recording& recording) {
    std::vector<double> own{recording.bytes_sent().begin(), recording.bytes_sent().end()};
    own.insert(own.end(), recording.times().begin(), recording.times().end());
    std::vector<std::vector<double>> all;
    for (const auto& bytes : world.gather(std::as_bytes(std::span{own}))) all.push_back(as_doubles(bytes));
    std::int64_t rank = 0;
    if (all.empty()) {
        rank = world.rank();
        all.push_back(std::move(own));
    }
    Timeline timeline;
    timeline.measured = true;
    timeline.ranks = world.size();
    if (recording.times().empty()) return timeline;
    const std::size_t steps = recording.bytes_sent().size();
    double origin = recording.times().front();
    for (const auto& values : all)
        origin = std::min(origin, *std::ranges::min_element(std::span{values}.subspan(steps)));
    for (const auto& values : all) {
        const std::span<const double> both{values};
        std::ranges::move(events_of(schedule, rank++, both.first(steps), both.subspan(steps), origin),
                          std::back_inserter(timeline.events));
    }
    std::ranges::stable_sort(timeline.events, [](const Event& a, const Event& b) {
        return std::tie(a.iteration, a.rank, a.start) < std::tie(b.iteration, b.rank, b.start);
    });
    return timeline;
}

}  // namespace rehearse::run
