// SPDX-License-Identifier: Apache-2.0
// All memory of one rank: made once, so that a training step allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/backend.hpp"
#include "kernels/device.hpp"

namespace rehearse::run {

struct Slice {
    std::int64_t offset = 0, count = 0;  // offset in floats, count in elements of its type
    DataType type = DataType::f32;
};

/// Memory of many tensors, each at the start of a cache line.
class Arena {
public:
    /// Where the tensor will lie; spans may be asked for after `allocate`.
    Slice reserve(std::int64_t count, DataType type = DataType::f32);
    /// All zero; the host's where there is no device, whose pages are taken when they are first written to.
    void allocate(kernels::Device* device = nullptr);
    std::span<float> at(Slice slice) const;
    kernels::View view(Slice slice) const;

private:
    std::int64_t size_ = 0;
    std::shared_ptr<float> memory_;
};

struct LayerTensors {
    kernels::View output;                  // of one micro-batch; a view's is its input's
    kernels::View diff;                    // d loss / d output; empty when nobody needs it
    std::span<float> workspace;            // from forward to backward
    std::span<float> state;                // of a BatchNorm
    kernels::View weights{}, gradients{};  // tied: another layer's weights, but gradients of its own
};

/// `weights` are what the optimizer changes. Where they are of another type than what layers compute with, `copy` is
/// what these read.
struct BucketTensors {
    kernels::View weights, gradients, momentum;
    kernels::View applied{};                   // what is summed and updated by: the gradients, or the last step's
    kernels::View second_moment{}, copy{};     // empty unless the optimizer has one, unless types differ
    std::vector<std::int64_t> tensor_sizes{};  // of its tensors, one after the other
    kernels::View read() const { return copy.empty() ? weights : copy; }
};

/// The weights of a bucket's layers lie one after the other in the bucket's order, so do their gradients; buckets too.
/// What belongs to a micro-batch is there RankClass::slots times: micro-batch m uses slot m % slots. The samples that a
/// step begins with are all there.
/// Large: a rank's memory is one allocation, of which each kind of tensor is asked for by a method.
class Tensors {
public:
    /// `backends` of each layer of the part; nullptr where nothing is computed. Weights are drawn from `seed` for the
    /// whole network, of which this rank keeps its part.
    Tensors(const Schedule& schedule, const RankClass& rank_class, RankIndex rank,
            const std::vector<const kernels::Backend*>& backends, std::uint64_t seed,
            kernels::Device* device = nullptr);

    LayerTensors layer(int index, int micro_batch = 0) const;
    const BucketTensors& bucket(int index) const { return buckets_[static_cast<std::size_t>(index)]; }
    /// The layer whose output `index` shares: itself, but for a view like Flatten.
    int stored_as(int index) const { return stored_as_[static_cast<std::size_t>(index)]; }
    /// Likewise of gradients. A `copy` or `send` whose input others read too has a gradient of its own.
    int diff_stored_as(int index) const { return diff_stored_as_[static_cast<std::size_t>(index)]; }
    kernels::View weights() const { return all_.weights; }  // of all buckets, as the optimizer has them
    kernels::View gradients() const { return all_.gradients; }
    /// What the schedule sums and updates by: with lag=1 the gradients that the last step had made.
    kernels::View applied() const { return all_.applied; }
    void keep_gradients() const;  // for the next step
    /// Writes zeros to what no step has written to, so that the first step does not wait for its pages: what the
    /// optimizer keeps, and gradients. Of the host's memory, before anything is in them.
    void touch() const;
    /// Of one layer that has weights of its own: what the optimizer has; round_weights() makes the layers read it.
    struct Parameters {
        kernels::View weights, momentum, second_moment, gradients, applied;
    };
    Parameters parameters_of(int layer) const;
    /// Samples of the whole step, each with all inputs of numbers one after the other; empty where the part has none.
    std::span<float> input() const { return input_; }
    /// What is in input() and indices(), as the layers read it: each input by itself, numbers in the layers' type. A
    /// whole input is rounded by the device, where there is one, and is under way then.
    void spread_inputs(kernels::Device* device);
    /// What layers read of the weights, from what the optimizer has.
    void round_weights() const;
    std::span<std::int32_t> labels() { return integers_.labels; }
    std::span<std::int32_t> labels(int micro_batch);
    std::span<std::int32_t> indices() { return integers_.indices; }  // as input(), of integers
    /// Of one Input layer.
    std::span<std::int32_t> indices(int layer, int micro_batch);

private:
    struct Place {
        Slice output, diff, workspace, state, tied_gradient;
    };
    /// Of all buckets, one after the other; `copy` is what layers read.
    struct All {
        kernels::View weights, copy, gradients, applied, momentum, second_moment;
    };
    /// Of the whole step.
    struct Integers {
        Slice label_slice, index_slice;
        std::span<std::int32_t> labels, indices;
    };
    /// An Input layer as layers read it, of the whole step: the same memory as input() or indices() where it is the
    /// only one of its kind, in a type that needs no other.
    struct Fed {
        int layer = 0;
        std::int64_t first = 0, of = 0;  // where a sample has it, among so many values
        bool integers = false;
        Slice slice{};
        kernels::View read{};
        std::span<std::int32_t> ids{};
        bool own = false;  // memory of its own
    };
    void reserve_inputs(const Network& network, std::int64_t batch, DataType type);
    void place_inputs();
    const Fed* fed_by(int layer) const;
    void find_views(const Network& network);
    void reserve_labels(const Schedule& schedule, const Network& network, std::int64_t batch);
    std::span<std::int32_t> integers(Slice slice) const;
    void share_weights(const Network& network);
    void place_parameters(const Part& part);
    void initialise_parameters(const Schedule& schedule, const Part& part, RankIndex rank, std::uint64_t seed);

    Arena arena_;
    int slots_, copies_;
    std::vector<LayerTensors> layers_;  // by micro-batch (of the input) or slot, then by layer
    std::vector<BucketTensors> buckets_;
    std::vector<int> stored_as_, diff_stored_as_;
    All all_;
    Slice input_slice_;
    std::span<float> input_;
    std::vector<Fed> fed_;
    Integers integers_;
    int micro_batches_;
    std::size_t count_;  // of layers
};

/// Any type as f32, and f32 as any type.
std::vector<float> floats_of(kernels::ConstView values);
void assign(kernels::View to, std::span<const float> values);

/// The loss that the network is trained for, the first one of labels; InputError when it has none.
const SoftmaxLoss& loss_of(const Network& network);
/// The same; null where the network is trained for a MeanLoss, which has no labels.
const SoftmaxLoss* labelled_loss(const Network& network);

/// He et al. 2015: normal with variance 2 / fan-in; tables normal with deviation 0.02 (Devlin et al. 2018, Radford et
/// al. 2019), as are what an imported network adds or multiplies by; biases and betas 0, gammas 1. Depends on the
/// layer's name and the seed alone, not on buckets, ranks or fusion.
void initialise(const Op& op, std::uint64_t seed, std::span<float> weights);

}  // namespace rehearse::run
