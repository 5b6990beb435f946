// SPDX-License-Identifier: Apache-2.0
// What rounding does to a training of one rank: how far it reaches in the layers, and what it leaves of what the
// optimizer keeps.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/half.hpp"
#include "core/precision.hpp"
#include "kernels/convert.hpp"
#include "run/random.hpp"
#include "run/reference/single_rank.hpp"

namespace rehearse::run {

namespace {

std::int64_t output_channels(const Op& op) {
    const Shape shape = output_shape(op);
    return std::max<std::int64_t>(shape.size() >= 3 ? shape.front() : shape.back(), 1);
}

}  // namespace

// Steps below half a unit of a weight, and squares of gradients below 2^-25, vanish where these are kept in f16.
void SingleRank::round_kept(Program& program) const {
    const DataType type = update_type(schedule_.precision);
    if (type == DataType::f32) return;
    std::vector<std::byte> room;
    const auto round = [&](kernels::View kept) {
        room.resize(2 * kept.size());
        const kernels::View rounded{room.data(), kept.size(), type};
        kernels::convert(kept, rounded);
        kernels::convert(rounded, kept);
    };
    round(program.tensors().weights());
    for (std::size_t b = 0; b < single_.classes.front().part.buckets.size(); ++b) {
        const BucketTensors& bucket = program.tensors().bucket(static_cast<int>(b));
        round(bucket.momentum);
        if (!bucket.second_moment.empty()) round(bucket.second_moment);
    }
}

void SingleRank::perturb(Program& program, std::uint64_t seed) const {
    Uniform random{key(seed, 0x5EED)};
    for (std::size_t i = 0; i < single_.network.layers.size(); ++i) {
        const Op& op = single_.network.layers[i].op;
        const std::int64_t inner = parameters(op) == 0 ? 1 : parameters(op) / output_channels(op);
        const DataType type = compute_type(schedule_.precision);
        const double reach = type == DataType::f32
                                 ? std::sqrt(static_cast<double>(std::max<std::int64_t>(inner, 1))) * 0x1p-24
                                 : 3 * unit_roundoff(type);
        for (float& weight : program.tensors().layer(static_cast<int>(i)).weights) {
            weight *= static_cast<float>(1 + reach * (2 * random.next() - 1));
        }
    }
}

}  // namespace rehearse::run
