// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recorded_prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "calibrate/collective_times.hpp"
#include "calibrate/fit.hpp"
#include "calibrate/in_situ.hpp"
#include "calibrate/quick.hpp"
#include "core/error.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {

namespace {

constexpr const char* backend = "profile";
constexpr double most_error = 1;  // as of prices between batches (prices/prices.cpp)

// Of the optimizer: the share of the bytes' time that its kernels reached, whatever a bucket's size.
std::optional<Efficiency> update_share(const std::vector<Sample>& prices, const DeviceClass& device) {
    double bytes = 0, seconds = 0, error = 0;
    const Sample* first = nullptr;
    for (const Sample& sample : prices) {
        if (sample.problem.pass != Pass::update) continue;
        if (first == nullptr) first = &sample;
        bytes += bytes_moved(sample.problem.op, Pass::update, sample.problem.type, 1).value;
        seconds += sample.median.value;
        error = std::max(error, sample.error);
    }
    if (first == nullptr || !(seconds > 0) || device.memory_bandwidth.value <= Bandwidth{}) return std::nullopt;
    Efficiency row;
    row.kind = kind_of(first->problem.op);
    row.pass = Pass::update;
    row.fraction = bounded_share(bytes / device.memory_bandwidth.value.value / seconds);
    row.error = error;
    return row;
}

// Nodes that the ranks of a collective lie on; as many as ranks where these fill them unevenly, 0 where nobody tells.
std::int64_t hosts_of(const RecordedCollective& collective, std::int64_t job, std::int64_t devices_per_node) {
    if (job <= devices_per_node) return 1;
    std::vector<std::int64_t> members = collective.members;
    if (members.empty() && collective.ranks == job) {
        members.resize(static_cast<std::size_t>(job));
        std::iota(members.begin(), members.end(), 0);
    }
    std::map<std::int64_t, std::int64_t> nodes;
    for (const std::int64_t rank : members) ++nodes[rank / devices_per_node];
    const bool even =
        std::ranges::all_of(nodes, [&](const auto& node) { return node.second == nodes.begin()->second; });
    return even ? std::ssize(nodes) : collective.ranks;
}

bool is_backward(Pass pass) { return pass == Pass::backward_data || pass == Pass::backward_weights; }

// All of a schedule's computations, those that a recording has no call of among them.
struct Completed {
    std::vector<Event> more;               // of the latter
    std::map<std::string, double> errors;  // of problems that no layer with a call has, relative
    double once = 0;                       // seconds of each computation once, medians
    double step = 0;                       // ... as many times as a step has it
};

std::map<std::string, double> medians_by_step(const Timeline& timeline) {
    std::map<std::string, std::vector<double>> seconds;
    for (const Event& event : timeline.events) {
        if (event.stream == Stream::compute && event.iteration > 0)
            seconds[event.step].push_back((event.end - event.start).value);
    }
    std::map<std::string, double> medians;
    for (auto& [step, times] : seconds) medians[step] = median(std::move(times));
    return medians;
}

// Of passes that the recording has calls of at all: a profile of forward passes says nothing of the others.
Completed completed(const MatchedRecording& recording, const RankClass& steps, const DeviceClass& device) {
    Completed made;
    const std::map<std::string, double> medians = medians_by_step(recording.timeline);
    std::map<std::string, double> known;  // by problem
    bool goes_back = false;
    for (const Step& step : steps.steps) {
        const auto found = medians.find(step.name);
        const Problem* const problem = problem_of(step);
        if (problem == nullptr || found == medians.end()) continue;
        known.emplace(to_string(*problem), found->second);
        goes_back = goes_back || is_backward(problem->pass);
    }
    int iterations = 0;
    for (const Event& event : recording.timeline.events) iterations = std::max(iterations, event.iteration);
    for (const Step& step : steps.steps) {
        const Problem* const problem = problem_of(step);
        if (problem == nullptr) continue;
        const double times = problem->pass == Pass::update ? 1 : recording.passes;
        const auto found = medians.find(step.name);
        double seconds = found == medians.end() ? 0 : found->second;
        if (found == medians.end() && problem->pass != Pass::update && (goes_back || !is_backward(problem->pass))) {
            const auto same = known.find(to_string(*problem));
            const Price own = same == known.end() ? price(*problem, device) : Price{};
            seconds = same == known.end() ? own.time.value : same->second;
            if (same == known.end()) made.errors.emplace(to_string(*problem), own.error);
            for (int iteration = 1; seconds > 0 && iteration <= iterations; ++iteration) {
                Event& event = made.more.emplace_back();
                event.step = step.name;
                event.iteration = iteration;
                event.end = Seconds{seconds};
            }
        }
        made.once += seconds;
        made.step += seconds * times;
    }
    return made;
}

}  // namespace

double stretch_of(const MatchedRecording& recording, const Schedule& schedule, const DeviceClass& device) {
    const Completed whole = completed(recording, schedule.classes.front(), device);
    return whole.step > 0 ? recording.computing() / whole.step : 1;
}

std::vector<Sample> prices_of(const MatchedRecording& recording, const Schedule& schedule, const DeviceClass& device) {
    const RankClass& steps = schedule.classes.front();
    const Completed whole = completed(recording, steps, device);
    const double stretch = whole.step > 0 ? recording.computing() / whole.step : 1;
    InSituSteps in_situ;
    const auto add_times = [&](const Timeline& timeline) {
        in_situ.add(schedule, steps, timeline, device, Seconds{whole.once * stretch});
    };
    if (whole.more.empty()) {
        add_times(recording.timeline);
    } else {
        Timeline timeline = recording.timeline;
        timeline.events.insert(timeline.events.end(), whole.more.begin(), whole.more.end());
        add_times(timeline);
    }
    std::map<std::string, Problem> problems;
    const auto add = [&](const Problem& problem) { problems.emplace(to_string(problem), problem); };
    for (const Step& step : steps.steps) {
        if (const Problem* problem = problem_of(step)) add(*problem);
    }
    for (const auto& [name, times] : in_situ.times()) {
        if (!problems.contains(name)) add(parse_problem(name));
    }
    std::vector<Sample> samples;
    for (const auto& [name, times] : in_situ.times()) {
        if (!(times.seconds > 0)) continue;
        Sample sample;
        sample.problem = problems.at(name);
        sample.backend = backend;
        sample.median = Seconds{times.seconds / times.places};
        // A few steps of a busy host say that a price of microseconds is uncertain, not that it is off twentyfold.
        sample.error = std::min(times.error / times.seconds, most_error);
        if (const auto own = whole.errors.find(name); own != whole.errors.end())
            sample.error = std::min(own->second, most_error);
        sample.count = static_cast<std::int64_t>(times.samples);
        samples.push_back(std::move(sample));
    }
    return samples;
}

Machine with_prices(Machine machine, const std::vector<Sample>& prices, double spread, const std::string& where) {
    machine = apply(std::move(machine), FileSamples{where, prices, {}, {}});
    DeviceClass& device = machine.classes.front();
    device.step_spread = {};
    if (spread > 0)
        device.step_spread = {std::min(spread, 1.0), fmt::format("measured, {}: neighbouring steps", where)};
    if (std::optional<Efficiency> row = update_share(prices, device)) {
        row->source = fmt::format("measured, {}: the optimizer's step of the whole network", where);
        std::erase_if(device.efficiencies,
                      [&](const Efficiency& each) { return each.kind == row->kind && each.pass == row->pass; });
        device.efficiencies.push_back(std::move(*row));
    }
    return machine;
}

std::vector<RecordedMessage> messages_of(std::span<const Recording> recordings, std::int64_t devices_per_node) {
    // The n-th collective of a step, by ranks: the shortest is that of the rank which came last.
    std::map<std::pair<int, std::size_t>, RecordedCollective> shortest;
    for (const Recording& recording : recordings) {
        std::map<int, std::size_t> places;
        for (const RecordedCollective& each : recording.collectives) {
            const auto [place, fresh] = shortest.try_emplace({each.step, places[each.step]++}, each);
            RecordedCollective& known = place->second;
            if (!fresh && known.kind == each.kind && each.end - each.start < known.end - known.start) known = each;
        }
    }
    std::map<std::tuple<std::string, double, std::int64_t, std::int64_t>, std::vector<double>> times;
    for (const auto& [place, each] : shortest) {
        if (each.end <= each.start || !(each.bytes > Bytes{}) || each.ranks < 2) continue;
        const std::int64_t hosts = hosts_of(each, recordings.front().ranks, devices_per_node);
        times[{each.kind, each.bytes.value, each.ranks, hosts}].push_back(static_cast<double>(each.end - each.start) *
                                                                          1e-9);
    }
    std::vector<RecordedMessage> messages;
    for (const auto& [key, seconds] : times) {
        const auto& [kind, bytes, ranks, hosts] = key;
        const std::optional<RingRounds> rounds = ring_rounds(kind, ranks);
        RecordedMessage message{
            kind, Bytes{bytes}, ranks, hosts, std::ssize(seconds), Seconds{std::ranges::min(seconds)}, {}, {}, {}};
        message.algorithm = message.bytes / message.time;
        if (rounds) {
            message.bus = message.algorithm * rounds->bus_factor();
            message.samples.push_back(rounds->message(message.bytes, message.time));
        }
        messages.push_back(std::move(message));
    }
    return messages;
}

}  // namespace rehearse::calibrate
