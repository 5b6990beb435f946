// SPDX-License-Identifier: Apache-2.0
#include "calibrate/learn.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "calibrate/validate_kernels.hpp"
#include "core/error.hpp"
#include "prices/library_point.hpp"

namespace rehearse::calibrate {

namespace {

// Standard deviations of the priors: of a logarithm of an amplitude or length, of a logit of a correlation, and of
// either around the family with more data.
constexpr double logarithm_prior = 1, logit_prior = 2, kin_prior = 2.2;

double logit(double share) { return std::log(share / (1 - share)); }
double share(double logit) { return 1 / (1 + std::exp(-logit)); }

/// f(d^2) and its derivative by d^2.
std::pair<double, double> shape(Smoothness smoothness, double squared) {
    if (smoothness == Smoothness::gaussian) {
        const double value = std::exp(-0.5 * squared);
        return {value, -0.5 * value};
    }
    const double d = std::sqrt(3 * squared), decay = std::exp(-d);
    return {(1 + d) * decay, -1.5 * decay};
}

/// Adds `weight` times the derivatives of the covariance of two points; `at` counts parameters.
void add_derivatives(const Covariance& model, const FeaturePoint& a, const FeaturePoint& b, double weight,
                     std::vector<double>& gradient) {
    std::size_t at = 0;
    for (const CovarianceTerm& term : model.terms) {
        const std::size_t features = term.lengths.size();
        double squared = 0;
        for (std::size_t i = 0; i < features; ++i) {
            const double d = (a.features[i] - b.features[i]) / term.lengths[i];
            squared += d * d;
        }
        const auto [value, slope] = shape(model.smoothness, squared);
        const double variance = term.amplitude * term.amplitude;
        const double tasks = a.task == b.task ? 1 : term.task_correlation;
        gradient[at] += weight * 2 * variance * tasks * value;
        for (std::size_t i = 0; i < features; ++i) {
            const double d = (a.features[i] - b.features[i]) / term.lengths[i];
            gradient[at + 1 + i] += weight * variance * tasks * slope * -2 * d * d;
        }
        if (a.task != b.task)
            gradient[at + 1 + features] += weight * variance * value * tasks * (1 - term.task_correlation);
        at += features + 2;
    }
}

void add_likelihood(const TrainingSet& set, const Covariance& model, Objective& sum) {
    const Matrix factor = cholesky(covariances(model, set.points));
    const Matrix precision = inverse(factor);
    const std::vector<double> weights = solve(factor, set.values);
    sum.value += log_determinant(factor) / 2;
    for (std::size_t i = 0; i < weights.size(); ++i) sum.value += weights[i] * set.values[i] / 2;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const double weight = (precision(i, j) - weights[i] * weights[j]) / (i == j ? 2 : 1);
            add_derivatives(model, set.points[i], set.points[j], weight, sum.gradient);
            if (i == j) sum.gradient.back() += weight * 2 * model.noise * model.noise;
        }
    }
}

// The prior's centre and its standard deviation, parameter by parameter.
void add_prior(const std::vector<double>& values, const std::vector<double>& centre,
               const std::vector<double>& deviation, Objective& sum) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double z = (values[i] - centre[i]) / deviation[i];
        sum.value += z * z / 2;
        sum.gradient[i] += z / deviation[i];
    }
}

std::vector<double> prior_deviations(const Covariance& model) {
    std::vector<double> deviations;
    for (const CovarianceTerm& term : model.terms) {
        deviations.insert(deviations.end(), term.lengths.size() + 1, logarithm_prior);
        deviations.push_back(logit_prior);
    }
    deviations.push_back(1e3);  // noise: any
    return deviations;
}

}  // namespace

double unseen_factor(std::string_view kind) { return kind == "conv2d" ? 1.18 : 1; }

Covariance first_guess(Smoothness smoothness, std::size_t features) {
    return {smoothness,
            {CovarianceTerm{0.4, 0.5, std::vector<double>(features, 4.5)},
             CovarianceTerm{0.2, 0.27, std::vector<double>(features, 2.7)}},
            0.05};
}

std::vector<Expert> first_experts(std::string_view kind, const DeviceSheet& sheet) {
    using enum LowerBound;
    if (sheet.board && kind != "conv2d") {
        const std::size_t features = library_features(kind);
        return {{overlapped, first_guess(Smoothness::matern32, features)},
                {overlapped, first_guess(Smoothness::gaussian, features)}};
    }
    const std::size_t all = feature_names(kind).size();
    if (kind == "conv2d") {
        std::vector<Expert> experts{{overlapped, first_guess(Smoothness::gaussian, 9)},
                                    {in_turn, first_guess(Smoothness::matern32, all)}};
        if (sheet.image_blocks != ImageBlocks::unknown)
            experts.push_back({library, first_guess(Smoothness::matern32, all + features_of_library)});
        return experts;
    }
    const std::size_t some =
        kind == "matmul" ? 10 : 4;  // sizes, the ridge, of products the distances of rows and width
    return {{overlapped, first_guess(Smoothness::matern32, some)}, {in_turn, first_guess(Smoothness::gaussian, all)}};
}

std::vector<double> parameters(const Covariance& model) {
    std::vector<double> values;
    for (const CovarianceTerm& term : model.terms) {
        values.push_back(std::log(term.amplitude));
        for (const double length : term.lengths) values.push_back(std::log(length));
        values.push_back(logit(term.task_correlation));
    }
    values.push_back(std::log(model.noise));
    return values;
}

Covariance with_parameters(Covariance model, std::span<const double> parameters) {
    std::size_t at = 0;
    for (CovarianceTerm& term : model.terms) {
        term.amplitude = std::exp(parameters[at++]);
        for (double& length : term.lengths) length = std::exp(parameters[at++]);
        term.task_correlation = share(parameters[at++]);
    }
    model.noise = std::exp(parameters[at]);
    return model;
}

Objective objective(std::span<const TrainingSet> sets, const Covariance& model, const std::optional<Covariance>& kin) {
    const std::vector<double> values = parameters(model);
    Objective sum{0, std::vector<double>(values.size())};
    for (const TrainingSet& set : sets) add_likelihood(set, model, sum);
    const Covariance guess = first_guess(model.smoothness, model.terms[0].lengths.size());
    add_prior(values, parameters(guess), prior_deviations(model), sum);
    if (kin) add_prior(values, parameters(*kin), std::vector<double>(values.size(), kin_prior), sum);
    return sum;
}

Covariance learn(std::span<const TrainingSet> sets, const Covariance& start, const std::optional<Covariance>& kin,
                 int rounds) {
    constexpr double least = -6, most = 5;       // of a parameter: beyond, a feature is ignored or all there is
    const double least_noise = std::log(0.006);  // two cards of one chip differ by as much (docs/device_prices.md)
    std::vector<double> values = parameters(start), best = values;
    std::vector<double> step(values.size(), 0.1), before(values.size());
    double lowest = INFINITY;
    for (int round = 0; round < rounds; ++round) {
        const Objective now = objective(sets, with_parameters(start, values), kin);
        if (now.value < lowest) {
            lowest = now.value;
            best = values;
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double agreement = now.gradient[i] * before[i];
            if (agreement > 0) step[i] = std::min(step[i] * 1.2, 0.5);
            if (agreement < 0) step[i] = std::max(step[i] * 0.5, 1e-4);
            before[i] = agreement < 0 ? 0 : now.gradient[i];
            const double lowest_value = i + 1 == values.size() ? least_noise : least;
            if (before[i] != 0)
                values[i] = std::clamp(values[i] - std::copysign(step[i], before[i]), lowest_value, most);
        }
    }
    return with_parameters(start, best);
}

Family learn_family(std::span<const MeasuredKernels> sets, const std::optional<Family>& kin, int rounds) {
    Family family{first_experts(sets.front().kind, sets.front().sheet), 1};
    for (std::size_t e = 0; e < family.experts.size(); ++e) {
        Expert& expert = family.experts[e];
        std::vector<TrainingSet> training;
        for (const MeasuredKernels& set : sets) training.push_back(training_set(set, expert));
        std::optional<Covariance> model;
        if (kin) model = kin->experts[e].covariance;
        expert.covariance = learn(training, model ? *model : expert.covariance, model, rounds);
    }
    std::vector<Judged> judged;
    for (MeasuredKernels set : sets) {
        set.experts = family.experts;
        set.band = 1;
        const std::vector<Judged> some = cross_validate(set, Leave::shape);
        judged.insert(judged.end(), some.begin(), some.end());
    }
    family.band = unseen_factor(sets.front().kind) * band_of(judged);
    return family;
}

void learn_all(std::span<FamilyMember> members) {
    std::map<std::string, Family> first;  // by kind: what the family with most data learned
    std::set<std::pair<std::string, std::string>> done;
    for (const FamilyMember& member : members) {
        const std::string kind = member.kernels.kind, name = member.family;
        if (!done.emplace(name, kind).second) continue;
        const auto same = [&](const FamilyMember& m) { return m.family == name && m.kernels.kind == kind; };
        std::vector<MeasuredKernels> teachers;
        for (const FamilyMember& m : members) {
            if (same(m) && m.teaches) teachers.push_back(m.kernels);
        }
        require(!teachers.empty(), "a family has a teacher");
        const auto kin = first.find(kind);
        const Family family = learn_family(teachers, kin == first.end() ? std::nullopt : std::optional{kin->second});
        first.emplace(kind, family);
        for (FamilyMember& m : members) {
            if (!same(m)) continue;
            m.kernels.experts = family.experts;
            m.kernels.band = family.band;
        }
    }
}

}  // namespace rehearse::calibrate
