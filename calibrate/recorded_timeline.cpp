// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recorded_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "calibrate/fit.hpp"
#include "calibrate/recorded_calls.hpp"
#include "calibrate/recorded_updates.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// The schedule's steps of a layer, by pass.
struct LayerSteps {
    const Step *forward = nullptr, *data = nullptr, *weights = nullptr;
};

class Builder {
public:
    Builder(std::span<const Recording> recordings, const Schedule& schedule, const NamedSteps& named)
        : schedule_(schedule), named_(named) {
        require(schedule.classes.size() == 1, "data parallelism on one device is one rank class");
        match_steps(calibrate::steps_of(recordings));
        steps_.resize(network().layers.size());
        for (const Step& step : schedule.classes.front().steps) {
            const auto* compute = std::get_if<Compute>(&step.action);
            if (compute == nullptr) continue;
            LayerSteps& of = steps_[at(compute->layer)];
            const Pass pass = compute->problem.pass;
            (pass == Pass::forward ? of.forward : pass == Pass::backward_data ? of.data : of.weights) = &step;
        }
        result_.timeline.title =
            fmt::format("{}, data, batch {} a rank, measured", network().name, schedule.batch_per_rank);
        result_.timeline.measured = true;
        result_.timeline.ranks = recordings.front().ranks;
    }

    MatchedRecording build() {
        result_.steps = std::ssize(matched_);
        result_.by_shape = matched_.front().match->by_shape;
        result_.passes = matched_.front().match->passes;
        std::map<const Recording*, int> iterations;  // from 1: the warm-up is 0
        const auto before = [](const Event& a, const Event& b) {
            return std::tuple(a.iteration, a.rank, a.start.value) < std::tuple(b.iteration, b.rank, b.start.value);
        };
        // Of thousands of steps there are millions: room is made once, and each step is sorted by itself.
        std::vector<Event>& events = result_.timeline.events;
        for (const Matched& each : matched_) {
            const std::ptrdiff_t first = std::ssize(events);
            add_step(each, ++iterations[each.step.recording]);
            std::stable_sort(events.begin() + first, events.end(), before);
            if (first == 0) events.reserve(events.size() * matched_.size());
        }
        if (!std::ranges::is_sorted(events, before)) std::ranges::stable_sort(events, before);
        if (!events.empty() && events.back().iteration >= 2) add_warm_ups();
        add_shares();
        result_.spread = spread();
        add_layers();
        for (const int index : matched_.front().match->without_calls) {
            result_.missing.push_back(network().layers[static_cast<std::size_t>(index)].name);
        }
        return std::move(result_);
    }

private:
    struct Matched {
        StepCalls step;
        const Match* match;
    };

    // Steps that call less of the network than others count for nothing.
    void match_steps(const std::vector<StepCalls>& steps) {
        std::size_t most = 0;
        for (const StepCalls& step : steps) {
            const auto [place, is_new] = matches_.try_emplace(signature(step));
            if (is_new) place->second = match(step, network(), schedule_.batch_per_rank);
            most = std::max(most, place->second.anchors);
            matched_.push_back({step, &place->second});
        }
        result_.unlike = static_cast<std::int64_t>(
            std::erase_if(matched_, [&](const Matched& each) { return each.match->anchors < most; }));
    }

    const Network& network() const { return schedule_.classes.front().part.network; }

    Event event(const StepCalls& step, int iteration, std::int64_t start, std::int64_t length) const {
        Event made;
        made.rank = RankIndex{step.recording->rank};
        made.iteration = iteration;
        made.start = Seconds{seconds(start - step.recording->steps.front().start)};
        made.end = made.start + Seconds{seconds(std::max<std::int64_t>(0, length))};
        return made;
    }

    // A step of the schedule is one event, though several calls are of it.
    void put(const Event& call, const Step& step, int pass, double share) {
        const Seconds length = (call.end - call.start) * share;
        const auto [place, is_new] = merged_.try_emplace({&step, pass}, call);
        Event& event = place->second;
        if (!is_new) {
            event.end += length;
            return;
        }
        const auto& compute = std::get<Compute>(step.action);
        event.step = step.name;
        event.micro_batch = pass;
        event.layer = network().layers[at(compute.layer)].name;
        event.pass = to_string(compute.problem.pass);
        event.flops = flops(compute.problem.op, compute.problem.pass, compute.problem.batch);
        event.end = event.start + length;
    }

    // The step that steps_of leaves out stays in the timeline as one event, so that who leaves out the first of three
    // or more iterations (core/iterations.hpp) leaves out this one.
    void add_warm_ups() {
        std::vector<Event> warm_ups;
        const Recording* last = nullptr;
        for (const Matched& each : matched_) {
            const Recording* recording = each.step.recording;
            if (recording == std::exchange(last, recording) || recording->steps.size() < 3) continue;
            const RecordedStep& first = recording->steps.front();
            Event& made = warm_ups.emplace_back(event(each.step, 0, first.start, first.end - first.start));
            made.step = made.pass = "warm-up";
        }
        std::ranges::stable_sort(warm_ups, {}, [](const Event& each) { return each.rank; });
        std::vector<Event>& events = result_.timeline.events;
        events.insert(events.begin(), warm_ups.begin(), warm_ups.end());
    }

    void add_step(const Matched& matched, int iteration) {
        const StepCalls& step = matched.step;
        const Match& match = *matched.match;
        const Recording& recording = *step.recording;
        const Updates updates(step);
        RecordedShares shares;
        for (std::size_t i = 0; i < step.calls; ++i) {
            const RecordedCall& call = step.call(i);
            const std::int64_t start = begin_of(recording, call);
            const Event made = event(step, iteration, updates.moved(start), call.busy + call.gap);
            shares.gaps += seconds(call.gap);
            if (call.part == RecordedCall::Part::loader) {
                add_wait(recording.name_of(call), made);
            } else if (call.part == RecordedCall::Part::update) {
                shares.update += seconds(call.busy);
            } else if (match.layer[i] != no_layer && add_layer_call(step, call, match.layer[i], match.pass[i], made)) {
                shares.layers += seconds(call.busy);
            } else {
                shares.unmatched += seconds(call.busy);
                shares.beside += seconds(call.gap);
                add_alone(recording.name_of(call), call, made);
            }
        }
        for (auto& [of, made] : merged_) result_.timeline.events.push_back(std::move(made));
        merged_.clear();
        add_updates(event(step, iteration, updates.start(), updates.length()));
        add_collectives(step, iteration, updates);
        const RecordedStep& whole = recording.steps[static_cast<std::size_t>(step.step)];
        shares.step = seconds(whole.end - whole.start);
        shares.exposed = seconds(whole.exposed);
        shares.collective = seconds(whole.collective);
        shares.loader = seconds(whole.loader);
        shares_.push_back(shares);
    }

    bool add_layer_call(const StepCalls& step, const RecordedCall& call, int index, int pass, const Event& made) {
        const LayerSteps& of = steps_[at(index)];
        if (call.part == RecordedCall::Part::forward) {
            if (of.forward == nullptr) return false;
            put(made, *of.forward, pass, 1);
            return true;
        }
        if (of.data == nullptr && of.weights == nullptr) return false;
        const double weights = of.data == nullptr      ? 1
                               : of.weights == nullptr ? 0
                                                       : weights_share(*step.recording, call, index);
        if (weights < 1) put(made, *of.data, pass, 1 - weights);
        if (weights > 0) put(made, *of.weights, pass, weights);
        return true;
    }

    // Of a node that gives both gradients.
    double weights_share(const Recording& recording, const RecordedCall& call, int index) const {
        if (recording.name_of(call).find("AccumulateGrad") != std::string_view::npos) return 1;
        if (call.data + call.weights > 0) {
            return static_cast<double>(call.weights) / static_cast<double>(call.data + call.weights);
        }
        const auto* product = std::get_if<MatMul>(&network().layers[at(index)].op);
        double data = 0, weights = 0;
        for (std::uint32_t k = call.inner; product != nullptr && k < call.inner + call.inners; ++k) {
            const RecordedInner& inner = recording.inner[k];
            const std::string_view name = recording.texts[inner.name];
            if (name == "aten::sum") weights += seconds(inner.busy);
            if (name != "aten::mm") continue;
            // The gradient of the weights sums over the samples' rows.
            const ProductShape shape = product_shape(name, shapes_in(recording.texts[inner.shapes]));
            const bool over_rows = shape.depth == product->m * schedule_.batch_per_rank && shape.depth != product->n;
            (over_rows ? weights : data) += seconds(inner.busy);
        }
        return data > 0 && weights > 0 ? weights / (data + weights) : 0.5;
    }

    // For samples: what of it nothing else hides.
    void add_wait(std::string_view name, Event made) {
        if (!(made.end > made.start)) return;
        made.stream = Stream::io;
        made.step = name;
        made.pass = to_string(RecordedCall::Part::loader);
        result_.timeline.events.push_back(std::move(made));
    }

    void add_alone(std::string_view name, const RecordedCall& call, Event made) {
        made.step = short_name(name);
        made.pass = to_string(call.part);
        UnmatchedCalls& calls = unmatched_[{made.step, made.pass}];
        calls.name = made.step;
        calls.pass = made.pass;
        ++calls.calls;
        calls.seconds += seconds(call.busy);
        calls.idle += seconds(call.gap);
        result_.timeline.events.push_back(std::move(made));
    }

    void add_updates(const Event& whole) {
        double all = 0, before = 0;
        for (const auto& [name, weight] : named_.updates) all += weight;
        if (!(whole.end > whole.start) || !(all > 0)) return;
        for (const auto& [name, weight] : named_.updates) {
            Event made = whole;
            made.start = whole.start + (whole.end - whole.start) * (before / all);
            before += weight;
            made.end = whole.start + (whole.end - whole.start) * (before / all);
            made.step = name;
            made.layer = name.substr(0, name.find(':'));
            made.pass = "update";
            result_.timeline.events.push_back(std::move(made));
        }
    }

    // In the order of a step where there are as many as in the schedule; else by their kinds.
    void add_collectives(const StepCalls& step, int iteration, const Updates& updates) {
        std::vector<const RecordedCollective*> of_step;
        for (const RecordedCollective& each : step.recording->collectives) {
            if (each.step == step.step) of_step.push_back(&each);
        }
        const bool named = of_step.size() == named_.collectives.size();
        for (std::size_t i = 0; i < of_step.size(); ++i) {
            Event made = event(step, iteration, updates.moved(of_step[i]->start), of_step[i]->end - of_step[i]->start);
            made.stream = Stream::communication;
            made.step = named ? named_.collectives[i] : of_step[i]->kind;
            if (named) made.layer = made.step.substr(0, made.step.find(':'));
            made.pass = named ? made.step.substr(made.step.find(':') + 1) : of_step[i]->kind;
            made.bytes = of_step[i]->bytes;
            result_.timeline.events.push_back(std::move(made));
        }
    }

    // See MatchedRecording::spread.
    double spread() const {
        std::vector<double> differences;
        const auto computing = [&](std::size_t k) { return shares_[k].step - shares_[k].exposed - shares_[k].loader; };
        for (std::size_t k = 1; k < matched_.size(); ++k) {
            const StepCalls &before = matched_[k - 1].step, &after = matched_[k].step;
            if (before.recording != after.recording || before.step + 1 != after.step) continue;
            differences.push_back(std::abs(computing(k) - computing(k - 1)));
        }
        if (std::ssize(differences) + 1 < MatchedRecording::fewest_for_spread || !(result_.computing() > 0)) return 0;
        constexpr double within = 0.674490;  // half of all normal values are within so many deviations
        return median(std::move(differences)) / result_.computing() / (within * std::numbers::sqrt2);
    }

    double median_of(double RecordedShares::*part) const {
        std::vector<double> values;
        for (const RecordedShares& each : shares_) values.push_back(each.*part);
        return median(std::move(values));
    }

    void add_shares() {
        for (const auto part : {&RecordedShares::step, &RecordedShares::layers, &RecordedShares::update,
                                &RecordedShares::unmatched, &RecordedShares::gaps, &RecordedShares::beside,
                                &RecordedShares::exposed, &RecordedShares::loader, &RecordedShares::collective}) {
            result_.shares.*part = median_of(part);
        }
        for (auto& [key, calls] : unmatched_) {
            calls.seconds /= static_cast<double>(matched_.size());
            calls.idle /= static_cast<double>(matched_.size());
            calls.calls = (calls.calls + std::ssize(matched_) / 2) / std::ssize(matched_);
            result_.unmatched.push_back(calls);
        }
        std::ranges::stable_sort(result_.unmatched, std::greater{},
                                 [](const UnmatchedCalls& calls) { return calls.seconds + calls.idle; });
    }

    void add_layers() {
        struct Sums {
            std::vector<double> forward, backward;  // by step
            std::string calls;
        };
        std::map<int, Sums> sums;
        for (std::size_t k = 0; k < matched_.size(); ++k) {
            const auto& [step, match] = matched_[k];
            for (std::size_t i = 0; i < step.calls; ++i) {
                if (match->layer[i] == no_layer) continue;
                Sums& of = sums[match->layer[i]];
                of.forward.resize(matched_.size());
                of.backward.resize(matched_.size());
                const bool forward = step.call(i).part == RecordedCall::Part::forward;
                (forward ? of.forward : of.backward)[k] += seconds(step.call(i).busy + step.call(i).gap);
                if (k == 0 && forward && match->pass[i] == 0) add_name(of.calls, step.name(i));
            }
        }
        for (auto& [index, of] : sums) {
            result_.layers.push_back(
                {network().layers[at(index)].name, of.calls, median(of.forward), median(of.backward)});
        }
    }

    static void add_name(std::string& calls, std::string_view name) {
        constexpr std::size_t enough = 60;
        if (calls.size() > enough) return;
        if (name.starts_with("aten::")) name.remove_prefix(6);
        calls += (calls.empty() ? "" : ", ") + std::string{name};
    }

    const Schedule& schedule_;
    const NamedSteps& named_;
    std::map<std::uint64_t, Match> matches_;  // by signature
    std::vector<Matched> matched_;
    std::vector<LayerSteps> steps_;
    std::vector<RecordedShares> shares_;
    std::map<std::pair<const Step*, int>, Event> merged_;  // of the step that is being added
    std::map<std::pair<std::string, std::string>, UnmatchedCalls> unmatched_;
    MatchedRecording result_;
};

}  // namespace

NamedSteps named_steps(const Schedule& schedule) {
    NamedSteps named;
    for (const Step& step : schedule.classes.front().steps) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate != nullptr && communicate->of_bucket()) named.collectives.push_back(step.name);
        const auto* update = std::get_if<Update>(&step.action);
        if (update == nullptr) continue;
        named.updates.emplace_back(step.name,
                                   bytes_moved(update->problem.op, Pass::update, update->problem.type, 1).value);
    }
    return named;
}

NamedSteps named_steps(const Timeline& timeline) {
    NamedSteps named;
    for (const Event& event : timeline.events) {
        if (event.iteration != timeline.events.front().iteration || event.rank != timeline.events.front().rank)
            continue;
        if (event.pass == "update") named.updates.emplace_back(event.step, (event.end - event.start).value);
        if (is_communicator(event.stream) || event.stream == Stream::communication) {
            named.collectives.push_back(event.step);
        }
    }
    return named;
}

MatchedRecording matched(std::span<const Recording> recordings, const Schedule& schedule, const NamedSteps& named) {
    return Builder(recordings, schedule, named).build();
}

}  // namespace rehearse::calibrate
