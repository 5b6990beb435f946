// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "prices/interval.hpp"
#include "prices/recurrent.hpp"

namespace rehearse::calibrate {

namespace {

double log_ratio(const Judged& row) { return std::log(row.measured.value) - row.predicted.log_time; }

double quantile(std::vector<double> values, double share) {
    require(!values.empty(), "a quantile of something");
    std::ranges::sort(values);
    const double rank = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(rank);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

std::vector<int> groups_of(const MeasuredKernels& kernels, Leave leave) {
    std::map<std::string, int> numbers;
    std::vector<int> groups;
    for (const KernelSample& sample : kernels.samples) {
        const int next = static_cast<int>(numbers.size());
        groups.push_back(numbers.emplace(held_out_with(sample.problem, leave), next).first->second);
    }
    return groups;
}

}  // namespace

std::string held_out_with(const Problem& problem, Leave leave) {
    if (leave == Leave::problem) return to_string(problem);
    if (const auto* product = std::get_if<MatMul>(&problem.op)) {
        const ProductSizes p = product_sizes(*product, problem.pass, problem.batch);
        return leave == Leave::family ? fmt::format("m{}k{}", p.m, p.k) : fmt::format("m{}n{}k{}", p.m, p.n, p.k);
    }
    if (const auto* cells = std::get_if<Recurrent>(&problem.op)) {  // the number of steps says next to nothing new
        const std::string layer = fmt::format("{}{}", cells->cell, cells->hidden);
        return leave == Leave::family ? layer : fmt::format("n{}{}", problem.batch, layer);
    }
    return leave == Leave::family ? to_string(problem.op) : fmt::format("n{}{}", problem.batch, to_string(problem.op));
}

Judged judge(const KernelSample& sample, Seconds predicted, double error) {
    return {sample.problem, sample.time, {std::log(predicted.value), error}};
}

double error_of(const Judged& row) { return std::abs(std::exp(-log_ratio(row)) - 1); }

bool in_band(const Judged& row) { return std::abs(log_ratio(row)) <= prices::ninety_percent * row.predicted.deviation; }

std::vector<Judged> cross_validate(const MeasuredKernels& kernels, Leave leave) {
    const std::vector<int> groups = groups_of(kernels, leave);
    std::vector<std::vector<Estimate>> estimates(kernels.samples.size());
    for (const Expert& expert : kernels.experts) {
        const TrainingSet set = training_set(kernels, expert);
        std::vector<Estimate> some = leave_out(expert.covariance, set.points, set.values, groups);
        for (std::size_t i = 0; i < some.size(); ++i) {
            some[i].mean += set.log_bounds[i];
            estimates[i].push_back(some[i]);
        }
    }
    std::vector<Judged> rows;
    for (std::size_t i = 0; i < kernels.samples.size(); ++i) {
        const KernelSample& sample = kernels.samples[i];
        rows.push_back({sample.problem, sample.time, combine(estimates[i], kernels.band, 1)});
    }
    return rows;
}

KnownPrices::KnownPrices(const MeasuredKernels& kernels) : prices(kernels) {
    for (const KernelSample& sample : kernels.samples) problems.insert(to_string(sample.problem));
}

std::vector<Judged> judge(const KernelPrices& prices, std::span<const KernelSample> samples) {
    std::vector<Judged> rows;
    for (const KernelSample& sample : samples) {
        if (const auto price = prices.at(sample.problem)) rows.push_back({sample.problem, sample.time, *price});
    }
    return rows;
}

Judged judge_steps(const KernelSample& sample, bool backward, const DeviceClass& device) {
    const Problem& problem = sample.problem;
    const auto steps = [&](Pass pass) {
        return recurrent_price(std::get<Recurrent>(problem.op), pass, problem.batch, problem.type, device).steps;
    };
    const Price first = steps(problem.pass);
    if (!backward) return judge(sample, first.time, first.error);
    const Price then = steps(Pass::backward_weights);
    const Seconds time = first.time + then.time;
    return judge(sample, time, (first.time * first.error + then.time * then.error) / time);
}

ErrorSummary summarize(std::span<const Judged> rows) {
    std::vector<double> errors;
    for (const Judged& row : rows) errors.push_back(error_of(row));
    const auto inside = static_cast<double>(std::ranges::count_if(rows, in_band));
    return {rows.size(), quantile(errors, 0.5), quantile(errors, 0.9), inside / static_cast<double>(rows.size())};
}

double band_of(std::span<const Judged> rows) {
    std::vector<double> scores;
    for (const Judged& row : rows) scores.push_back(std::abs(log_ratio(row)) / row.predicted.deviation);
    return quantile(scores, 0.9) / prices::ninety_percent;
}

}  // namespace rehearse::calibrate
