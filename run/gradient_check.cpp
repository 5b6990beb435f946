// SPDX-License-Identifier: Apache-2.0
#include "run/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"

namespace rehearse::run {

double summation_tolerance(std::int64_t terms, DataType wire) {
    constexpr double f64 = 0x1p-53;
    const double unit = unit_roundoff(wire);
    const auto additions = static_cast<double>(terms - 1);
    const double roundings = wire == DataType::f32 ? additions : additions + 1;
    return roundings * unit / (1 - roundings * unit) + additions * f64;
}

GradientCheck check_gradients(Program& program, std::int64_t shards, std::int64_t batch_per_shard, std::uint64_t seed,
                              const std::function<void(std::int64_t shard)>& load, std::span<const float> gradients,
                              DataType wire) {
    const kernels::ConstView shard_gradients = program.tensors().gradients();
    require(shard_gradients.size() == gradients.size(), "gradients of the same program");
    std::vector<double> sum(gradients.size()), magnitude(gradients.size());
    for (std::int64_t shard = 0; shard < shards; ++shard) {
        load(shard);
        program.compute_gradients(seed, shard * batch_per_shard);
        for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += shard_gradients[i];
            magnitude[i] += std::abs(static_cast<double>(shard_gradients[i]));
        }
    }
    GradientCheck check{0, summation_tolerance(shards, wire)};
    const double vanishing = wire == DataType::f16 ? static_cast<double>(shards) * 0x1p-25 : 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
        const double difference = std::abs(static_cast<double>(gradients[i]) - sum[i]) - vanishing;
        if (difference <= 0) continue;
        // Something where there should be nothing, or not a number: as wrong as it can be.
        const double error = magnitude[i] > 0 && std::isfinite(difference) ? difference / magnitude[i] : 1;
        check.error = std::max(check.error, error);
    }
    return check;
}

}  // namespace rehearse::run
