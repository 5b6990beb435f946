// SPDX-License-Identifier: Apache-2.0
#include "core/methods/curvature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"

namespace rehearse {

namespace {

double cost(const MatMul& dense) {
    return std::pow(static_cast<double>(input_rows(dense)), 3) + std::pow(static_cast<double>(dense.n), 3);
}

/// Buckets, the costliest first.
std::vector<int> by_cost(const Part& part) {
    std::vector<int> order;
    for (std::size_t b = 0; b < part.buckets.size(); ++b) {
        // The gradient of a table that another stage has, too, is of both its uses.
        if (part.buckets[b].tie < 0 && is_preconditioned(op_of(part, static_cast<int>(b))))
            order.push_back(static_cast<int>(b));
    }
    std::ranges::stable_sort(order, [&](int a, int b) { return cost(dense_of(part, a)) > cost(dense_of(part, b)); });
    return order;
}

}  // namespace

std::int64_t factor_elements(const MatMul& dense) {
    const std::int64_t inputs = dense.k + (dense.bias ? 1 : 0);
    return (inputs * (inputs + 1) + dense.n * (dense.n + 1)) / 2;
}

std::optional<MatMul> as_dense(const Op& op) {
    if (const Conv* conv = as_conv2d(op); conv != nullptr && conv->groups == 1 && !conv->relu) {
        const Shape out = output_shape(op);
        return MatMul{
            .m = out[1] * out[2], .n = conv->filters, .k = conv->channels * conv->window.taps(), .bias = conv->bias};
    }
    const auto* dense = std::get_if<MatMul>(&op);
    if (dense == nullptr || dense->tied || dense->activation) return std::nullopt;
    return *dense;
}

bool is_preconditioned(const Op& op) { return as_dense(op).has_value(); }

std::int64_t losses_of_sample(const Op& op) {
    const auto* dense = std::get_if<MatMul>(&op);
    return dense == nullptr ? 1 : dense->m;
}

std::vector<int> preconditioned_alone(const Network& network) {
    std::vector<int> begins;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        if (!is_preconditioned(network.layers[i].op)) continue;
        begins.push_back(static_cast<int>(i));
        begins.push_back(static_cast<int>(i) + 1);
    }
    return begins;
}

const Op& op_of(const Part& part, int bucket) {
    return part.network.layers[at(part.buckets[at(bucket)].layers.front())].op;
}

MatMul dense_of(const Part& part, int bucket) {
    const std::optional<MatMul> dense = as_dense(op_of(part, bucket));
    require(dense.has_value(), "a bucket with factors is of a layer that is as a dense one");
    return *dense;
}

std::int64_t shards_with_factors(const Schedule& schedule) {
    if (schedule.methods.get<Averaging>().period > 0) return 1;
    const std::int64_t all = shards(schedule.mesh);
    if (schedule.methods.get<Servers>().count == 0) return all;
    const int groups = axis_index(schedule.mesh, "groups");
    return groups < 0 ? 1 : all / size_of(schedule.mesh, groups);
}

std::vector<std::int64_t> owners_of(const Part& part, std::int64_t shards) {
    const std::vector<int> order = by_cost(part);
    std::vector<double> load(at(shards));
    std::vector<std::int64_t> owners(part.buckets.size(), -1);
    for (const int bucket : order) {
        if (part.buckets[at(bucket)].axis < 0) {  // each its own
            owners[at(bucket)] = every_shard;
            continue;
        }
        const auto least = std::ranges::min_element(load);
        *least += cost(dense_of(part, bucket));
        owners[at(bucket)] = least - load.begin();
    }
    return owners;
}

std::vector<int> owned_by(const Part& part, const std::vector<std::int64_t>& owners, std::int64_t shard) {
    std::vector<int> owned = by_cost(part);
    std::erase_if(owned, [&](int bucket) { return owners[at(bucket)] != shard && owners[at(bucket)] != every_shard; });
    return owned;
}

std::vector<int> most_owned(const Part& part, const std::vector<std::int64_t>& owners) {
    std::vector<int> most;
    double highest = 0;
    const std::int64_t shards = owners.empty() ? 0 : std::max<std::int64_t>(*std::ranges::max_element(owners), 0) + 1;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
        std::vector<int> owned = owned_by(part, owners, shard);
        double sum = 0;
        for (const int bucket : owned) sum += cost(dense_of(part, bucket));
        if (sum <= highest) continue;
        highest = sum;
        most = std::move(owned);
    }
    return most;
}

Problem factor_problem(const MatMul& dense, Precondition::Side side, std::int64_t batch) {
    const std::int64_t size = side == Precondition::Side::inputs ? dense.k : dense.n;
    return {MatMul{.m = dense.m, .n = size, .k = size, .bias = false}, Pass::backward_weights, batch, DataType::f32};
}

Problem inverse_problem(const MatMul& dense, Precondition::Side side) {
    const std::int64_t size = side == Precondition::Side::inputs ? input_rows(dense) : dense.n;
    const MatMul as_many{.m = size, .n = size, .k = (size + 1) / 2, .bias = false};
    return {as_many, Pass::forward, 1, DataType::f32};
}

Problem direction_problem(const MatMul& dense, Precondition::Side side) {
    const std::int64_t rows = input_rows(dense);
    const std::int64_t inner = side == Precondition::Side::inputs ? rows : dense.n;
    return {MatMul{.m = rows, .n = dense.n, .k = inner, .bias = false}, Pass::forward, 1, DataType::f32};
}

}  // namespace rehearse
