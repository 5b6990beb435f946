// SPDX-License-Identifier: Apache-2.0
// How far a price model is from kernels that it has not been fitted on.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "prices/price_model.hpp"

namespace rehearse::calibrate {

/// What is held out together: one kernel alone (its other passes are known), a shape with its batch (all passes of a
/// convolution; all transpositions of a product of the same m, n and k), or also all batches of it. A device is left
/// out by calibrate/boards.hpp alone.
enum class Leave { problem, shape, family, device };
std::string held_out_with(const Problem& problem, Leave leave);

struct Judged {
    Problem problem;
    Seconds measured;
    KernelPrice predicted;
};
/// A kernel beside a price whose relative standard deviation is `error`.
Judged judge(const KernelSample& sample, Seconds predicted, double error);
/// |predicted - measured| / measured.
double error_of(const Judged& judged);
/// Whether the measured time is in the band that should hold 90 % of them (prices/interval.hpp).
bool in_band(const Judged& judged);

/// Each kernel priced by a model that has seen nothing of its group; the covariance is given, not learned anew.
std::vector<Judged> cross_validate(const MeasuredKernels& kernels, Leave leave);

/// A model, and the problems that it was fitted on.
struct KnownPrices {
    explicit KnownPrices(const MeasuredKernels& kernels);
    KernelPrices prices;
    std::set<std::string> problems;  // to_string(Problem)
};

/// The kernels that the model can price, priced by it.
std::vector<Judged> judge(const KernelPrices& prices, std::span<const KernelSample> samples);

/// The steps of a recurrent layer alone, as DeepBench times them, whose layers skip the product with their input, on a
/// device of which only its data sheet, what a kernel's start takes and its price model are known. `backward`: both
/// backward passes together.
Judged judge_steps(const KernelSample& sample, bool backward, const DeviceClass& device);

struct ErrorSummary {
    std::size_t rows = 0;
    double median = 0, p90 = 0, in_band = 0;  // of error_of; share of rows
};
/// Of at least one row. Quantiles by linear interpolation between ranks.
ErrorSummary summarize(std::span<const Judged> rows);

/// What deviations must be multiplied by so that the band holds 90 % of `rows`, whose deviations are unscaled.
double band_of(std::span<const Judged> rows);

}  // namespace rehearse::calibrate
