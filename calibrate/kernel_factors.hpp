// SPDX-License-Identifier: Apache-2.0
// A few measured kernels of a board in, one factor a kind of operator and type out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "prices/kernel_factor.hpp"
#include "prices/price_model.hpp"

namespace rehearse::calibrate {

/// Fewer kernels of a kind say nothing of the others.
inline constexpr std::size_t fewest_kernels = 3;

/// How far one kernel is from its price.
struct KernelRatio {
    double logarithm = 0;  // natural, of measured over priced
    double deviation = 0;  // of the price: relative, one standard deviation, what all kernels have in common included
};

/// The factor is the median of the ratios, drawn towards one as far as prices are surer than the kernels: a mean of
/// both, weighted by the inverse squares of the prices' usual deviation and of the median's. The scale is how far
/// single kernels lie from it, in units of their prices' deviations, as if four more lay as far as expected. `kind`,
/// `type` and `source` are left as they are. At least one ratio, each with a deviation above zero.
KernelFactor kernel_factor(std::span<const KernelRatio> ratios);

/// What was found of one kind, and what its kernels said before and after.
struct FactorFit {
    KernelFactor factor;
    double error_before = 0, error_after = 0;  // median of |priced - measured| / measured
};
struct Factors {
    std::vector<FactorFit> fits;
    std::vector<std::string> too_few;  // kinds and types with fewer than fewest_kernels
};

/// Kernels against what `device` says of them without having measured them; several runs of one problem count as one,
/// their median. InputError, which names the kernel, where
/// one takes a hundred times its price or a hundredth of it (another unit?), and where no kind has enough of them.
Factors fit_factors(std::span<const KernelSample> runs, const DeviceClass& device, std::string_view source);

/// `device` with these factors; other kinds and types keep theirs.
DeviceClass with_factors(DeviceClass device, std::span<const FactorFit> fits);

}  // namespace rehearse::calibrate
