// SPDX-License-Identifier: Apache-2.0
// Prices of convolutions and matrix products on a device that was measured on other shapes: the roofline first, then
// what measured kernels of like shape took beyond it (docs/device_prices.md).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.hpp"
#include "prices/family_vote.hpp"
#include "prices/kernel_factor.hpp"
#include "prices/kernel_point.hpp"

namespace rehearse {

struct KernelSample {
    Problem problem;
    Seconds time;
    double error = 0;  // relative, of this measurement, beside what is the same of all
};

enum class LowerBound {
    overlapped,  // compute and memory at the same time
    in_turn,     // one after the other
    library      // the least over the algorithms of a GPU library (DeviceSheet::image_blocks)
};

/// One of the processes whose mean is the model: which lower bound it starts from, how many features it sees.
struct Expert {
    LowerBound bound = LowerBound::overlapped;
    Covariance covariance;
};

/// All measured kernels of one kind ("conv2d", "matmul"; of a host, a host_group) and type on one device, and what
/// interpolates them.
struct MeasuredKernels {
    std::string kind;
    DataType type = DataType::f32;
    DeviceSheet sheet;
    std::vector<KernelSample> samples;
    std::vector<Expert> experts;
    double band = 1;     // what the experts' standard deviation is multiplied by, from their errors at shapes left out
    std::string source;  // "Baidu DeepBench (Apache-2.0) da81ba7, V100"
    bool transferred = false;  // from the device that they were measured on to another
    /// Of convolutions on boards: which algorithms ran, at the features on the board where they did; empty: not known.
    std::vector<RanFamily> ran = {};
    /// Whether a library does as well by its kernels in f32 where those are faster.
    bool at_most_as_in_f32 = false;
};

/// `log_time` is the natural logarithm of seconds, `deviation` one standard deviation of it, at most `band_limit`.
struct KernelPrice {
    double log_time = 0, deviation = 0;
    bool beyond = false;  // the measured shapes say little: mostly the roofline at the device's usual share
};
inline constexpr double band_limit = 1;

/// The mean of the experts; their variances averaged, more where they disagree, times the band.
KernelPrice combine(std::span<const Estimate> estimates, double band, double prior_variance);

/// The samples as what an expert learns from: points, and logarithms of time over the bound.
struct TrainingSet {
    std::vector<FeaturePoint> points;
    std::vector<double> values, log_bounds, errors;
};
TrainingSet training_set(const MeasuredKernels& kernels, const Expert& expert);
double log_bound(const KernelPoint& point, const Expert& expert);

/// One MeasuredKernels, conditioned.
class KernelPrices {
public:
    explicit KernelPrices(const MeasuredKernels& kernels);
    /// Nothing for a problem that kernel_point refuses.
    std::optional<KernelPrice> at(const Problem& problem) const;
    /// The algorithm that a library is expected to take (prices::families()): by those that ran at like shapes where
    /// that is known, else the one that would take least. Nothing without a board, and for other operators.
    std::optional<std::size_t> family_at(const Problem& problem) const;

private:
    DeviceSheet sheet_;
    std::vector<Expert> experts_;
    std::vector<GaussianProcess> processes_;
    std::optional<FamilyVote> vote_;
    double band_;
};

/// What a device class refers to. Conditioning is put off to the first question (milliseconds a kind and type), and
/// answers are kept, since a schedule asks for the same layers over and over; both behind a lock.
class PriceModel {
public:
    /// Of two kernel sets that know a problem, the earlier one answers. `board`: whose own kernels come first.
    /// `factors` are of all prices of the device, its answers among them; they are for who asks, and not in the
    /// answers.
    PriceModel(std::string name, std::vector<MeasuredKernels> kernels, std::string board = {},
               std::vector<KernelFactor> factors = {});
    /// The same with other factors.
    std::shared_ptr<const PriceModel> with_factors(std::vector<KernelFactor> factors) const;
    const std::string& name() const { return name_; }
    const std::string& board() const { return board_; }
    const std::vector<MeasuredKernels>& kernels() const { return kernels_; }
    const std::vector<KernelFactor>& factors() const { return factors_; }
    /// Whether a library cuts gradients of the weights of volumes between samples alone (`volumes` of a machine file).
    bool volumes_by_sample() const { return volumes_by_sample_; }
    std::shared_ptr<const PriceModel> with_volumes_by_sample(bool by_sample) const;

    struct Answer {
        Seconds time;
        double error = 0;  // relative, one standard deviation
        std::string source;
        bool sampled = false;  // this very problem was measured on this device class
        bool whole = false;    // with its bias and its start
    };
    /// Nothing when no kernel of the problem's kind and type was measured, or the problem is not of their sort.
    std::optional<Answer> answer(const Problem& problem) const;

private:
    std::optional<Answer> first_answer(const Problem& problem) const;
    std::optional<Answer> answer(const Problem& problem, std::size_t kernels) const;

    std::string name_, board_;
    std::vector<MeasuredKernels> kernels_;
    std::vector<KernelFactor> factors_;
    bool volumes_by_sample_ = false;
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<const KernelPrices>> conditioned_;  // beside kernels_, empty until asked
    mutable std::map<std::string, std::optional<Answer>, std::less<>> answers_;
};

}  // namespace rehearse
