// SPDX-License-Identifier: Apache-2.0
#include "trace/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
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
    std::map<std::int64_t, std::map<int, double>> seconds;  // rank -> iteration -> sum of its events
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
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
        std::set<int> iterations;
        for (const Event& event : timeline.events) {
            iterations.insert(event.iteration);
            ranks_.insert(event.rank);
        }
        const bool leave_first = iterations.size() >= 3;
        for (const Event& event : timeline.events) {
            if (!leave_first || event.iteration != *iterations.begin()) add(event);
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
        if (is_new) steps_.push_back({event.step, event.layer, event.pass, {}});
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

}  // namespace

Comparison compare(const Timeline& predicted, const Timeline& measured) {
    const Steps predictions(predicted), measurements(measured);
    const bool representatives = static_cast<std::int64_t>(predictions.ranks()) < predicted.ranks;
    Comparison result;
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
