// SPDX-License-Identifier: Apache-2.0
// Every layer that is no convolution and no product, on an engine.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.hpp"
#include "kernels/cuda/engine.hpp"
#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// "cuda layers": activations, sums, concatenation, pooling, batch and layer normalization, softmax and its loss,
/// dropout, embeddings, attention, local response normalization, resizing, updates by SGD, Adam and LAMB. Buffers,
/// labels and ids lie in the engine's memory; `engine` outlives it.
std::unique_ptr<Backend> layers(Engine& engine);

/// The kernel of a problem that layers() supports.
std::unique_ptr<Kernel> layer_kernel(Engine& engine, const Problem& problem, std::int64_t workspace);
/// Of a normalization or a softmax; null of others.
std::unique_ptr<Kernel> row_kernel(Engine& engine, const Problem& problem, std::int64_t workspace);
std::unique_ptr<Kernel> attention_kernel(Engine& engine, const Problem& problem, std::int64_t workspace);
/// Empty, or why attention runs on ordinary cores, with heads of up to largest_head numbers.
std::string flash_refusal(const Engine& engine, const Attention& op, DataType type);
/// Of a local response normalization or a resizing; null of others.
std::unique_ptr<Kernel> image_kernel(Engine& engine, const Problem& problem);
std::unique_ptr<Kernel> lamb_kernel(Engine& engine, const Problem& problem);

inline Values values(ConstView view) { return {const_cast<void*>(view.bytes()), view.type()}; }
/// From element `first` on.
Values beyond(Values values, std::int64_t first);
inline std::int64_t count_of(ConstView view) { return static_cast<std::int64_t>(view.size()); }

template <typename Task>
Task points(std::int64_t count) {
    Task task;
    task.count = count;
    return task;
}

template <typename Task>
Task by_rows(std::int64_t rows) {
    Task task;
    task.rows = rows;
    return task;
}

}  // namespace rehearse::kernels::cuda
