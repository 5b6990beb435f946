// SPDX-License-Identifier: Apache-2.0
#include "prices/price_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/error.hpp"
#include "prices/host_point.hpp"
#include "prices/library_point.hpp"
#include "prices/product_bound.hpp"

namespace rehearse {

namespace {

// Of a board's kernels those most like the problem: more of them change no price by more than its noise
// (docs/kernel_prices.md).
constexpr std::size_t nearest_of_board = 150;
// Of its prior variance a price that knows its neighbours has little left; above this share it is called beyond them.
constexpr double beyond_share = 0.5;

KernelPoint point_of(const Problem& problem, const DeviceSheet& sheet) {
    const auto point = kernel_point(problem, sheet);
    require(point.has_value(), "a measured kernel can be priced");
    return *point;
}

std::vector<GaussianProcess> condition(const MeasuredKernels& kernels) {
    std::vector<GaussianProcess> processes;
    for (const Expert& expert : kernels.experts) {
        TrainingSet set = training_set(kernels, expert);
        processes.emplace_back(expert.covariance, std::move(set.points), set.values, set.errors,
                               kernels.sheet.board ? nearest_of_board : SIZE_MAX);
    }
    return processes;
}

// The algorithm that the library is expected to choose, where that is known of the board.
std::string expected_family(const Problem& problem, const MeasuredKernels& kernels, const KernelPrices& prices) {
    if (!kernels.sheet.board) return {};
    if (const auto product = prices::product_shape(problem)) {
        const prices::ProductTime best = prices::product_bound(*product, *kernels.sheet.board);
        return fmt::format(", in tiles of {} x {}{}", best.rows, best.columns,
                           best.parts > 1 ? fmt::format(", k in {} parts", best.parts) : "");
    }
    const auto family = prices.family_at(problem);
    return family ? fmt::format(", by {}", prices::families()[*family].name) : std::string{};
}

// The widest covariance: of all features.
std::optional<FamilyVote> vote_of(const MeasuredKernels& kernels) {
    if (kernels.ran.empty() || kernels.experts.empty()) return std::nullopt;
    return FamilyVote{kernels.experts.back().covariance, kernels.ran};
}

}  // namespace

namespace {

bool speak_for(const MeasuredKernels& kernels, const Problem& problem) {
    const std::string_view kind = kernels.sheet.host ? host_group(problem.op) : kind_of(problem.op);
    return kernels.kind == kind && kernels.type == problem.type;
}

}  // namespace

KernelPrice combine(std::span<const Estimate> estimates, double band, double prior_variance) {
    const auto count = static_cast<double>(estimates.size());
    double mean = 0, square = 0, variance = 0;
    for (const Estimate& e : estimates) {
        mean += e.mean / count;
        square += e.mean * e.mean / count;
        variance += e.variance / count;
    }
    const double disagreement = std::max(0.0, square - mean * mean);
    return {mean, std::min(band_limit, band * std::sqrt(variance + disagreement)),
            variance > beyond_share * prior_variance};
}

double log_bound(const KernelPoint& point, const Expert& expert) {
    switch (expert.bound) {
        case LowerBound::overlapped:
            return std::log(point.bounds.overlapped().value);
        case LowerBound::in_turn:
            return std::log(point.bounds.in_turn().value);
        case LowerBound::library:
            return std::log(point.bounds.library.value);
    }
    require(false, "a bound is one of three");
    return 0;
}

TrainingSet training_set(const MeasuredKernels& kernels, const Expert& expert) {
    TrainingSet set;
    for (const KernelSample& sample : kernels.samples) {
        KernelPoint point = point_of(sample.problem, kernels.sheet);
        set.log_bounds.push_back(log_bound(point, expert));
        set.values.push_back(std::log(sample.time.value) - set.log_bounds.back());
        set.errors.push_back(sample.error);
        set.points.push_back(std::move(point.point));
    }
    return set;
}

KernelPrices::KernelPrices(const MeasuredKernels& kernels)
    : sheet_(kernels.sheet),
      experts_(kernels.experts),
      processes_(condition(kernels)),
      vote_(vote_of(kernels)),
      band_(kernels.band) {}

std::optional<std::size_t> KernelPrices::family_at(const Problem& problem) const {
    const auto shape = prices::convolution_shape(problem);
    if (!sheet_.board || !shape) return std::nullopt;
    const auto point = vote_ ? library_point(problem, *sheet_.board) : std::nullopt;
    return point ? vote_->at(point->point) : prices::library_choice(*shape, *sheet_.board).chosen;
}

std::optional<KernelPrice> KernelPrices::at(const Problem& problem) const {
    const auto point = kernel_point(problem, sheet_);
    if (!point) return std::nullopt;
    std::vector<Estimate> estimates;
    double prior = 0;
    for (std::size_t i = 0; i < experts_.size(); ++i) {
        estimates.push_back(processes_[i].at(point->point));
        estimates.back().mean += log_bound(*point, experts_[i]);
        prior += processes_[i].prior_variance() / static_cast<double>(experts_.size());
    }
    return combine(estimates, band_, prior);
}

PriceModel::PriceModel(std::string name, std::vector<MeasuredKernels> kernels, std::string board,
                       std::vector<KernelFactor> factors)
    : name_(std::move(name)),
      board_(std::move(board)),
      kernels_(std::move(kernels)),
      factors_(std::move(factors)),
      conditioned_(kernels_.size()) {}

std::shared_ptr<const PriceModel> PriceModel::with_factors(std::vector<KernelFactor> factors) const {
    auto model = std::make_shared<PriceModel>(name_, kernels_, board_, std::move(factors));
    model->volumes_by_sample_ = volumes_by_sample_;
    return model;
}

std::shared_ptr<const PriceModel> PriceModel::with_volumes_by_sample(bool by_sample) const {
    auto model = std::make_shared<PriceModel>(name_, kernels_, board_, factors_);
    model->volumes_by_sample_ = by_sample;
    return model;
}

std::optional<PriceModel::Answer> PriceModel::answer(const Problem& problem) const {
    const std::string name = to_string(problem);
    const std::scoped_lock lock{mutex_};
    const auto known = answers_.find(name);
    if (known != answers_.end()) return known->second;
    std::optional<Answer> found = first_answer(problem);
    answers_.emplace(name, found);
    return found;
}

std::optional<PriceModel::Answer> PriceModel::first_answer(const Problem& problem) const {
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
        if (!speak_for(kernels_[i], problem)) continue;
        std::optional<Answer> found = answer(problem, i);
        if (!found) continue;
        if (!kernels_[i].at_most_as_in_f32) return found;
        // Matrix units multiply whatever there is to multiply; f32 may be transformed.
        const std::optional<KernelPoint> point = kernel_point(problem, kernels_[i].sheet);
        if (point) found->time = std::max(found->time, point->bounds.overlapped());
        Problem in_f32 = problem;
        in_f32.type = DataType::f32;
        std::optional<Answer> slowest = first_answer(in_f32);
        if (!slowest || slowest->time >= found->time) return found;
        slowest->error = std::max(slowest->error, found->error);
        slowest->source = fmt::format("no longer than in f32: {}", slowest->source);
        slowest->sampled = false;
        return slowest;
    }
    return std::nullopt;
}

std::optional<PriceModel::Answer> PriceModel::answer(const Problem& problem, std::size_t kernels) const {
    const MeasuredKernels& known = kernels_[kernels];
    auto& prices = conditioned_[kernels];
    if (prices == nullptr) prices = std::make_unique<const KernelPrices>(known);
    const auto price = prices->at(problem);
    if (!price) return std::nullopt;
    const bool known_shape = std::ranges::find(known.samples, problem, &KernelSample::problem) != known.samples.end();
    return Answer{
        Seconds{std::exp(price->log_time)}, price->deviation,
        fmt::format("{} {} {}: {}{}", price->beyond ? "beyond the shapes of" : "between the shapes of",
                    known.samples.size(), known.sheet.host ? std::string_view{known.kind} : kind_of(problem.op),
                    known.source, expected_family(problem, known, *prices)),
        known_shape && !known.transferred, known.sheet.host};
}

}  // namespace rehearse
