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
    std::vector<float> dst, diff_dst, weights, diff_weights, momentum, second_moment, workspace, state;
    std::vector<std::int32_t> labels, indices;
    std::vector<std::int64_t> tensor_sizes;
    std::vector<std::vector<float>> fixed;
    std::vector<std::vector<std::int32_t>> chosen;
    std::uint64_t seed = 1;
    std::int64_t first_sample = 0, first_row = 0;

    Tensors(const Op& o, std::int64_t n, const Backend& backend) : op(o), batch(n) {
        const float unset = std::numeric_limits<float>::quiet_NaN();
        for (const Shape& shape : input_shapes(op)) {
            if (reads_integers(op)) {
                make_indices(batch * elements(shape));
                continue;
            }
            src.push_back(whole_numbers(batch * elements(shape), 1 + src.size()));
            diff_src.emplace_back(src.back().size(), unset);
        }
        const bool update = updated(op).has_value();
        dst.assign(update ? 0 : batch * elements(output_shape(op)), unset);
        diff_dst = whole_numbers(static_cast<std::int64_t>(dst.size()), 100);
        weights = whole_numbers(updated(op).value_or(weights_read(op)), 200);
        diff_weights.assign(weights.size(), unset);
        momentum.assign(weights.size(), 0.0F);
        second_moment.assign(weights.size(), 0.0F);
        workspace.assign(backend.workspace(op, batch), unset);
        if (const auto* norm = std::get_if<BatchNorm>(&op)) {
            state.assign(2 * norm->channels, 1.0F);
        }
        if (const auto* loss = std::get_if<SoftmaxLoss>(&op)) {
            for (std::int64_t i = 0; i < batch * loss->rows * elements(loss->image); ++i) {
                labels.push_back(static_cast<std::int32_t>(3 * i % loss->classes));
            }
        }
        if (const auto* terms = std::get_if<SoftmaxTerms>(&op)) {
            for (std::int64_t i = 0; i < batch * terms->rows; ++i) {
                labels.push_back(static_cast<std::int32_t>(3 * i % (terms->classes * terms->parts)));
            }
        }
        if (const auto* lamb = std::get_if<LambUpdate>(&op)) {  // all but the last have one element
            tensor_sizes.assign(static_cast<std::size_t>(lamb->tensors), 1);
            tensor_sizes.back() = lamb->count - lamb->tensors + 1;
        }
    }

    /// Ids that repeat, the first and the last of the table among them.
    void make_indices(std::int64_t count) {
        const auto* table = std::get_if<Embedding>(&op);
        const std::int64_t rows = table != nullptr ? table->vocabulary : std::get<EmbeddingBag>(op).vocabulary;
        for (std::int64_t i = 0; i < count; ++i) {
            indices.push_back(static_cast<std::int32_t>(i % 3 == 0 ? rows - 1 : 5 * (i / 2) % rows));
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
        b.indices = indices;
        b.second_moment = second_moment;
        b.tensor_sizes = tensor_sizes;
        b.loss_batch = batch;
        b.seed = seed;
        b.fixed = fixed;
        b.chosen = chosen;
        b.first_sample = first_sample;
        b.first_row = first_row;
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

/// Those of the host that run the operator forward in f32.
inline std::vector<const Backend*> backends_of(const Op& op) {
    std::vector<const Backend*> found;
    for (const Backend* backend : backends()) {
        if (backend->supports({op, Pass::forward, 1, DataType::f32}).yes) {
            found.push_back(backend);
        }
    }
    return found;
}

}  // namespace rehearse::kernels
