// SPDX-License-Identifier: Apache-2.0
// The tensors of one operator and batch, filled with small whole numbers, and a way to run each pass on them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// Whole numbers from -4 to 4, the same for the same seed.
inline std::vector<float> whole_numbers(std::int64_t count, std::uint64_t seed) {
    std::vector<float> values;
    std::uint64_t state = seed * 7919 + 12345;
    for (std::int64_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        values.push_back(static_cast<float>(static_cast<std::int64_t>((state >> 33) % 9) - 4));
    }
    return values;
}

/// Outputs start as NaN, so that a value which a kernel forgets to write is never equal to anything.
struct Tensors {
    Op op;
    std::int64_t batch = 1;
    std::vector<std::vector<float>> src, diff_src;
    std::vector<float> dst, diff_dst, weights, diff_weights, momentum, workspace, state;
    std::vector<std::int32_t> labels;
    std::uint64_t seed = 1;
    std::int64_t first_sample = 0;

    Tensors(const Op& o, std::int64_t n, const Backend& backend) : op(o), batch(n) {
        const float unset = std::numeric_limits<float>::quiet_NaN();
        for (const Shape& shape : input_shapes(op)) {
            src.push_back(whole_numbers(batch * elements(shape), 1 + src.size()));
            diff_src.emplace_back(src.back().size(), unset);
        }
        const bool update = std::holds_alternative<SgdUpdate>(op);
        dst.assign(update ? 0 : batch * elements(output_shape(op)), unset);
        diff_dst = whole_numbers(static_cast<std::int64_t>(dst.size()), 100);
        weights = whole_numbers(update ? std::get<SgdUpdate>(op).count : parameters(op), 200);
        diff_weights.assign(weights.size(), unset);
        momentum.assign(weights.size(), 0.0F);
        workspace.assign(backend.workspace(op, batch), unset);
        if (const auto* norm = std::get_if<BatchNorm>(&op)) {
            state.assign(2 * norm->channels, 1.0F);
        }
        if (const auto* loss = std::get_if<SoftmaxLoss>(&op)) {
            for (std::int64_t i = 0; i < batch * elements(loss->image); ++i)
                labels.push_back(static_cast<std::int32_t>(3 * i % loss->classes));
        }
    }

    Buffers buffers() {
        Buffers b;
        for (const auto& tensor : src) b.src.emplace_back(tensor);
        for (auto& tensor : diff_src) b.diff_src.emplace_back(tensor);
        b.dst = dst;
        b.dst_in = dst;
        b.weights = weights;
        b.diff_dst = diff_dst;
        b.diff_weights = diff_weights;
        b.momentum = momentum;
        b.workspace = workspace;
        b.state = state;
        b.labels = labels;
        b.loss_batch = batch;
        b.seed = seed;
        b.first_sample = first_sample;
        return b;
    }

    void run(const Backend& backend, Pass pass) { backend.prepare({op, pass, batch, DataType::f32})->run(buffers()); }

    /// Forward, then every backward pass that the operator has.
    void run_forward_and_backward(const Backend& backend) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            if (has_pass(op, pass)) run(backend, pass);
        }
    }
};

}  // namespace rehearse::kernels
