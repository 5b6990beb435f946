// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kernel_factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {

namespace {

constexpr double least_deviation = 0.01;  // no two boards of a chip are closer

double square(double value) { return value * value; }

struct Compared {
    Seconds measured;
    Price priced;
    KernelRatio ratio() const { return {std::log(measured / priced.time), std::max(priced.error, least_deviation)}; }
};

double median_error(std::span<const Compared> kernels, double factor) {
    std::vector<double> errors;
    for (const Compared& kernel : kernels)
        errors.push_back(std::abs(kernel.priced.time * factor / kernel.measured - 1));
    return median(std::move(errors));
}

// What the device would say if it had measured none of these, nor compared any before.
DeviceClass unmeasured(DeviceClass device) {
    device.measured.clear();
    if (device.model != nullptr) device.model = device.model->with_factors({});
    return device;
}

Compared compare(const KernelSample& kernel, const DeviceClass& device) {
    constexpr double absurd = 100;
    const Compared compared{kernel.time, price(kernel.problem, device)};
    if (const double ratio = compared.measured / compared.priced.time; ratio > absurd || ratio < 1 / absurd)
        throw InputError(
            fmt::format("{}: {:.4g} s is {:.3g} times its price on '{}', {:.4g} s: was it measured there, "
                        "and is the unit right?",
                        to_string(kernel.problem), kernel.time.value, ratio, device.name, compared.priced.time.value));
    return compared;
}

// Runs of one kernel are one measurement of it: their median.
std::vector<KernelSample> one_each(std::span<const KernelSample> runs) {
    std::map<std::string, std::pair<KernelSample, std::vector<double>>> by_problem;
    for (const KernelSample& run : runs)
        by_problem.try_emplace(to_string(run.problem), run, std::vector<double>{})
            .first->second.second.push_back(run.time.value);
    std::vector<KernelSample> kernels;
    for (auto& [name, kernel] : by_problem) {
        kernel.first.time = Seconds{median(std::move(kernel.second))};
        kernels.push_back(kernel.first);
    }
    return kernels;
}

}  // namespace

KernelFactor kernel_factor(std::span<const KernelRatio> ratios) {
    require(!ratios.empty(), "a factor needs a kernel");
    constexpr double as_expected = 4;  // kernels' worth of trust in the prices' own deviations
    constexpr double farthest = 3;     // deviations: beyond, a kernel is an outlier
    std::vector<double> logarithms, deviations;
    for (const KernelRatio& ratio : ratios) {
        logarithms.push_back(ratio.logarithm);
        deviations.push_back(ratio.deviation);
    }
    const auto count = static_cast<double>(ratios.size());
    const double middle = median(logarithms), usual = median(deviations);
    double far = 0;
    std::vector<double> distances;
    for (const KernelRatio& ratio : ratios) {
        distances.push_back(std::abs(ratio.logarithm - middle) / ratio.deviation);
        far += square(std::min(farthest, distances.back()));
    }
    // Where a few lie far out, the band must reach as far as nine in ten do, not as a normal's deviation would have it.
    far = std::max(far, count * square(conformal_deviation(std::move(distances))));
    KernelFactor result;
    result.kernels = static_cast<std::int64_t>(ratios.size());
    result.scale = std::sqrt((as_expected + far) / (as_expected + count));
    // A median is as sure as a mean of 2 / pi of the kernels.
    constexpr double of_median = 0.64;
    const double sure_of_prices = 1 / square(usual), sure_of_kernels = of_median * count / square(result.scale * usual);
    result.factor = std::exp(middle * sure_of_kernels / (sure_of_prices + sure_of_kernels));
    result.error = std::sqrt(1 / (sure_of_prices + sure_of_kernels));
    return result;
}

Factors fit_factors(std::span<const KernelSample> runs, const DeviceClass& device, std::string_view source) {
    const DeviceClass cold = unmeasured(device);
    std::map<std::pair<std::string, DataType>, std::vector<Compared>> by_kind;
    for (const KernelSample& kernel : one_each(runs))
        by_kind[{std::string{kind_of(kernel.problem.op)}, kernel.problem.type}].push_back(compare(kernel, cold));
    Factors result;
    for (const auto& [key, compared] : by_kind) {
        const auto& [kind, type] = key;
        if (compared.size() < fewest_kernels) {
            result.too_few.push_back(fmt::format("{} in {}", kind, to_string(type)));
            continue;
        }
        std::vector<KernelRatio> ratios;
        for (const Compared& kernel : compared) ratios.push_back(kernel.ratio());
        FactorFit fit{kernel_factor(ratios), median_error(compared, 1), 0};
        fit.factor.kind = kind;
        fit.factor.type = type;
        fit.factor.source = source;
        fit.error_after = median_error(compared, fit.factor.factor);
        result.fits.push_back(std::move(fit));
    }
    if (result.fits.empty())
        throw InputError(
            fmt::format("{}: no kind of operator has {} kernels of one type; about 20 of those that a training step "
                        "spends its time in say how a board differs from its price",
                        source, fewest_kernels));
    return result;
}

DeviceClass with_factors(DeviceClass device, std::span<const FactorFit> fits) {
    std::vector<KernelFactor> factors;
    if (device.model != nullptr) factors = device.model->factors();
    for (const FactorFit& fit : fits) {
        std::erase_if(factors, [&](const KernelFactor& known) {
            return known.kind == fit.factor.kind && known.type == fit.factor.type;
        });
        factors.push_back(fit.factor);
    }
    const PriceModel none{"", {}};
    device.model = (device.model == nullptr ? none : *device.model).with_factors(std::move(factors));
    return device;
}

}  // namespace rehearse::calibrate
