// SPDX-License-Identifier: Apache-2.0
#include "run/reference/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"
#include "run/tensors.hpp"

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

namespace {

double product(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

std::vector<double> combined(const std::vector<double>& a, const std::vector<double>& b) {
    const double ab = product(a, b), aa = product(a, a), bb = product(b, b);
    const double first = aa > 0 ? 1 - ab / (2 * aa) : 1, second = bb > 0 ? 1 - ab / (2 * bb) : 1;
    std::vector<double> result(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) result[i] = first * a[i] + second * b[i];
    return result;
}

}  // namespace

std::vector<double> adasum_of(std::vector<std::vector<double>> vectors) {
    require(!vectors.empty(), "a vector");
    std::size_t power = 1;
    while (2 * power <= vectors.size()) power *= 2;
    const std::size_t surplus = vectors.size() - power;
    std::vector<std::vector<double>> players;
    for (std::size_t i = 0; i < surplus; ++i) players.push_back(combined(vectors[2 * i + 1], vectors[2 * i]));
    players.insert(players.end(), vectors.begin() + static_cast<std::ptrdiff_t>(2 * surplus), vectors.end());
    while (players.size() > 1) {
        std::vector<std::vector<double>> next;
        for (std::size_t i = 0; i < players.size(); i += 2) next.push_back(combined(players[i], players[i + 1]));
        players = std::move(next);
    }
    return players.front();
}

GradientCheck check_combined(Program& program, std::int64_t shards, std::int64_t batch_per_shard, std::uint64_t seed,
                             const std::function<void(std::int64_t shard)>& load, std::span<const float> gradients) {
    const kernels::ConstView made = program.tensors().gradients();
    require(made.size() == gradients.size(), "gradients of the same program");
    std::vector<std::vector<float>> of_shards;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
        load(shard);
        program.compute_gradients(seed, shard * batch_per_shard);
        of_shards.push_back(floats_of(made));
    }
    const double levels = std::ceil(std::log2(static_cast<double>(shards)));
    GradientCheck check{0, std::max(1.0, std::pow(3, levels) * (levels + 8)) * 0x1p-24};
    for (std::size_t b = 0; b < program.part().buckets.size(); ++b) {
        const kernels::View bucket = program.tensors().bucket(static_cast<int>(b)).gradients;
        const std::ptrdiff_t first = bucket.data() - program.tensors().gradients().data();
        const auto size = static_cast<std::ptrdiff_t>(bucket.size());
        std::vector<std::vector<double>> vectors;
        double magnitude = 0, apart = 0;
        for (const std::vector<float>& all : of_shards) {
            vectors.emplace_back(all.begin() + first, all.begin() + first + size);
            magnitude += std::sqrt(product(vectors.back(), vectors.back()));
        }
        const std::vector<double> expected = adasum_of(std::move(vectors));
        for (std::ptrdiff_t i = 0; i < size; ++i) {
            apart +=
                std::pow(gradients[static_cast<std::size_t>(first + i)] - expected[static_cast<std::size_t>(i)], 2);
        }
        const double error = apart == 0 ? 0 : std::sqrt(apart) / magnitude;
        check.error = std::max(check.error, std::isfinite(error) ? error : 1);
    }
    return check;
}

}  // namespace rehearse::run
