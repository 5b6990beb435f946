// SPDX-License-Identifier: Apache-2.0
// All memory of one rank: made once, so that a training step allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/backend.hpp"

namespace rehearse::run {

struct Slice {
    std::int64_t offset = 0, count = 0;
};

/// Memory of many tensors, each at the start of a cache line.
class Arena {
public:
    /// Where the tensor will lie; spans may be asked for after `allocate`.
    Slice reserve(std::int64_t count);
    void allocate();  // all zero
    std::span<float> at(Slice slice) const;

private:
    struct Free {
        void operator()(float* memory) const;
    };
    std::int64_t size_ = 0;
    std::unique_ptr<float, Free> memory_;
};

struct LayerTensors {
    std::span<float> output;     // of the whole batch of this rank; a Flatten's is its input's
    std::span<float> diff;       // d loss / d output; empty when nobody needs it
    std::span<float> workspace;  // from forward to backward
    std::span<float> state;      // of a BatchNorm
    std::span<float> weights{}, gradients{};
};

struct BucketTensors {
    std::span<float> weights, gradients, momentum;
};

/// The weights of a bucket's layers lie one after the other in the bucket's order, so do their gradients; buckets too.
class Tensors {
public:
    /// `backends` of each layer; nullptr where nothing is computed. Weights are drawn from `seed`.
    Tensors(const Schedule& schedule, const std::vector<const kernels::Backend*>& backends, std::uint64_t seed);

    const LayerTensors& layer(int index) const { return layers_[static_cast<std::size_t>(index)]; }
    const BucketTensors& bucket(int index) const { return buckets_[static_cast<std::size_t>(index)]; }
    /// The layer whose tensors `index` shares: itself, but for a view like Flatten.
    int stored_as(int index) const { return stored_as_[static_cast<std::size_t>(index)]; }
    std::span<float> weights() const { return weights_; }  // of all buckets
    std::span<float> gradients() const { return gradients_; }
    std::span<std::int32_t> labels() { return labels_; }

private:
    struct Place {
        Slice output, diff, workspace, state;
    };
    void place_parameters(const Schedule& schedule, std::span<float> momentum);

    Arena arena_;
    std::vector<LayerTensors> layers_;
    std::vector<BucketTensors> buckets_;
    std::vector<int> stored_as_;
    std::span<float> weights_, gradients_;
    std::vector<std::int32_t> labels_;
};

/// He et al. 2015: normal with variance 2 / fan-in; biases and betas 0, gammas 1. Depends on the layer's name and the
/// seed alone, not on buckets, ranks or fusion.
void initialise(const Op& op, std::uint64_t seed, std::span<float> weights);

}  // namespace rehearse::run
