// SPDX-License-Identifier: Apache-2.0
#include "trace/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/error.hpp"

namespace rehearse::trace {

namespace {

using ByRank = std::map<std::int64_t, double>;  // rank -> seconds

struct StepTimes {
    std::string_view name, layer, pass;
    Flops flops;                                            // of one event
    std::map<std::int64_t, std::map<int, double>> seconds;  // rank -> iteration -> sum of its events
};

// As summarize has it: of an even number the lower of the two in the middle.
double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

ByRank medians(const StepTimes& step) {
    ByRank result;
    for (const auto& [rank, iterations] : step.seconds) {
        std::vector<double> values;
        values.reserve(iterations.size());
        for (const auto& [iteration, seconds] : iterations) values.push_back(seconds);
        result[rank] = median(std::move(values));
    }
    return result;
}

double mean(const ByRank& values) {
    double sum = 0;
    for (const auto& [rank, seconds] : values) sum += seconds;
    return sum / static_cast<double>(values.size());
}

// The steps of a timeline in the order of their first event.
class Steps {
public:
    explicit Steps(const Timeline& timeline) {
        int first = std::numeric_limits<int>::max();
        for (const Event& event : timeline.events) {
            first = std::min(first, event.iteration);
            ranks_.insert(event.rank);
        }
        const bool leave_first = iterations(timeline).left_out;
        for (const Event& event : timeline.events) {
            if (!leave_first || event.iteration != first) add(event);
        }
    }

    const std::vector<StepTimes>& all() const { return steps_; }
    std::size_t ranks() const { return ranks_.size(); }

    const StepTimes* find(std::string_view name) const {
        const auto found = index_.find(name);
        return found == index_.end() ? nullptr : &steps_[found->second];
    }

private:
    void add(const Event& event) {
        const auto [entry, is_new] = index_.try_emplace(event.step, steps_.size());
        if (is_new) steps_.push_back({event.step, event.layer, event.pass, event.flops, {}});
        steps_[entry->second].seconds[event.rank][event.iteration] += (event.end - event.start).value;
    }

    std::vector<StepTimes> steps_;
    std::unordered_map<std::string_view, std::size_t> index_;
    std::set<std::int64_t> ranks_;
};

Row row(std::string_view name, Seconds predicted, Seconds measured) {
    double error = 0;
    if (predicted.value != measured.value) {
        error = measured.value == 0 ? std::numeric_limits<double>::infinity() : (predicted - measured) / measured;
    }
    return {.name = std::string{name}, .predicted = predicted, .measured = measured, .error = error};
}

// Keeps of both only the ranks that both have.
void keep_common(ByRank& a, ByRank& b) {
    std::erase_if(a, [&](const auto& entry) { return !b.contains(entry.first); });
    std::erase_if(b, [&](const auto& entry) { return !a.contains(entry.first); });
}

// Sums of rows by the layer or pass of their steps, in the order of first appearance.
class Sums {
public:
    explicit Sums(std::string_view nameless) : nameless_(nameless) {}

    void add(std::string_view name, const Row& step) {
        const auto [entry, is_new] = index_.try_emplace(name.empty() ? nameless_ : name, rows_.size());
        if (is_new) rows_.push_back(row(entry->first, Seconds{}, Seconds{}));
        Row& sum = rows_[entry->second];
        sum = row(entry->first, sum.predicted + step.predicted, sum.measured + step.measured);
    }

    std::vector<Row> rows() const { return rows_; }

private:
    std::string_view nameless_;
    std::vector<Row> rows_;
    std::unordered_map<std::string_view, std::size_t> index_;
};

[[noreturn]] void nothing_matches(const Timeline& predicted, const Timeline& measured) {
    const auto first = [](const Timeline& timeline) {
        return timeline.events.empty() ? std::string{"no events"} : fmt::format("'{}'", timeline.events.front().step);
    };
    throw InputError(
        fmt::format("not one step of '{}' ({}, ...) is a step of '{}' ({}, ...): "
                    "right would be two timelines of the same model and plan",
                    predicted.title, first(predicted), measured.title, first(measured)));
}

void require_one_network(const Timeline& predicted, const Timeline& measured) {
    const std::string_view a = network_of(predicted), b = network_of(measured);
    if (a.empty() || b.empty() || a == b) return;
    throw InputError(
        fmt::format("different networks: '{}' is of {}, '{}' of {}: right would be two timelines of one network",
                    predicted.title, a, measured.title, b));
}

// Every step does the same multiple of its partner's operations: that is no other accounting, but another batch.
void require_one_batch(const Steps& predicted, const Steps& measured) {
    constexpr double same = 0.01;
    double least = std::numeric_limits<double>::infinity(), most = 0;
    const StepTimes* of = nullptr;
    for (const StepTimes& step : measured.all()) {
        const StepTimes* partner = predicted.find(step.name);
        if (partner == nullptr || step.flops.value <= 0 || partner->flops.value <= 0) continue;
        const double ratio = partner->flops / step.flops;
        least = std::min(least, ratio), most = std::max(most, ratio);
        if (of == nullptr) of = partner;
    }
    if (of == nullptr || most > least * (1 + same) || std::abs(least - 1) <= same) return;
    throw InputError(fmt::format(
        "different batches: each predicted step does {:.4g} times the operations of the measured one ('{}': {} against "
        "{}): right would be the same --batch and plan in both",
        least, of->name, to_string(of->flops), to_string(measured.find(of->name)->flops)));
}

// Layers whose output goes to another stage, of steps like "conv2.send:send#0", in their order.
std::vector<std::string_view> sent(const std::vector<std::string>& steps) {
    constexpr std::string_view mark = ".send:send";
    std::vector<std::string_view> layers;
    for (const std::string_view step : steps) {
        const std::size_t at = step.find(mark);
        if (at == std::string_view::npos) continue;
        const std::string_view layer = step.substr(0, at);
        if (std::ranges::find(layers, layer) == layers.end()) layers.push_back(layer);
    }
    return layers;
}

}  // namespace

std::string text_of_cuts(const Comparison& comparison) {
    const auto predicted = sent(comparison.only_predicted), measured = sent(comparison.only_measured);
    if (predicted.empty() || measured.empty()) return {};
    return fmt::format("stages end after {} in the prediction, after {} in the measured timeline",
                       fmt::join(predicted, ", "), fmt::join(measured, ", "));
}

std::string text_of_iterations(const Comparison& comparison) {
    return fmt::format("predicted: {}; measured: {}", to_string(comparison.predicted), to_string(comparison.measured));
}

std::string_view network_of(const Timeline& timeline) {
    const std::string_view title = timeline.title;
    const auto from = [&](std::string_view text, std::size_t begin) { return title.find(text, begin); };
    if (timeline.measured) return title.ends_with(", measured") ? title.substr(0, from(", ", 0)) : std::string_view{};
    constexpr std::string_view end = ", predicted";
    const std::size_t machine = from(" on ", 0);
    const bool names = title.ends_with(end) && machine != std::string_view::npos &&
                       from(", ", machine) < title.size() - end.size();  // a plan follows the machine
    return names ? title.substr(0, machine) : std::string_view{};
}

Comparison compare(const Timeline& predicted, const Timeline& measured) {
    require_one_network(predicted, measured);
    const Steps predictions(predicted), measurements(measured);
    const bool representatives = static_cast<std::int64_t>(predictions.ranks()) < predicted.ranks;
    Comparison result;
    result.predicted = iterations(predicted);
    result.measured = iterations(measured);
    Sums layers("(no layer)"), passes("(no pass)");
    std::set<std::string_view> matched;
    for (const StepTimes& step : measurements.all()) {
        const StepTimes* partner = predictions.find(step.name);
        if (partner == nullptr) continue;
        ByRank p = medians(*partner), m = medians(step);
        if (!representatives) keep_common(p, m);
        if (p.empty()) continue;
        result.steps.push_back(row(step.name, Seconds{mean(p)}, Seconds{mean(m)}));
        layers.add(step.layer, result.steps.back());
        passes.add(step.pass, result.steps.back());
        matched.insert(step.name);
    }
    if (result.steps.empty()) nothing_matches(predicted, measured);
    if (measured.measured && !predicted.measured) require_one_batch(predictions, measurements);
    for (const StepTimes& step : predictions.all()) {
        if (!matched.contains(step.name)) result.only_predicted.emplace_back(step.name);
    }
    for (const StepTimes& step : measurements.all()) {
        if (!matched.contains(step.name)) result.only_measured.emplace_back(step.name);
    }
    result.layers = layers.rows();
    result.passes = passes.rows();
    result.whole = row("step", summarize(predicted).step, summarize(measured).step);
    return result;
}

}  // namespace rehearse::trace
