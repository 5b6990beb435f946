// SPDX-License-Identifier: Apache-2.0
// What happens, in which order, on which rank: no clock, no cost. Stored per rank class, so that its size does not grow
// with the machine.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/collective.hpp"
#include "core/mesh.hpp"
#include "core/network.hpp"
#include "core/op.hpp"

namespace rehearse {

/// A rank works on its streams at the same time, and on the steps of one stream in their order. Each direction in which
/// a pipeline's neighbours send to each other is a stream of its own, as they are independent of each other.
enum class Stream {
    compute,
    communication,
    io,
    send_activations,
    receive_activations,
    send_gradients,
    receive_gradients
};
inline constexpr int stream_count = 7;
std::string_view to_string(Stream stream);

/// One pass of one layer of the rank class's part over one micro-batch.
struct Compute {
    int layer = 0;  // index into Part::network
    Problem problem;
    int micro_batch = 0;
};

/// All ranks along `axis` work on one tensor together. Of a bucket: its gradients (all_reduce, reduce_scatter) or its
/// weights (all_gather). Of a layer, a Communication: its output (forward) or the gradient of its input (backward_data)
/// of one micro-batch.
struct Communicate {
    CollectiveKind kind = CollectiveKind::all_reduce;
    int axis = 0;
    std::int64_t elements = 0;  // of the whole: what all_reduce sums, what all_gather ends with
    DataType type = DataType::f32;
    Algorithm algorithm;
    int bucket = -1;  // or
    int layer = -1;   // index into Part::network
    Pass pass = Pass::forward;
    int micro_batch = 0;
};

/// To or from the rank `offset` further along `axis`; the n-th Send to a rank meets its n-th Recv on the stream of the
/// same tensors (activations or gradients).
struct Send {
    int axis = 0;
    std::int64_t offset = 1;
    Bytes bytes;
    int layer = -1;  // a Communication of Part::network; its output (forward) or its input's gradient
    int micro_batch = 0;
};
struct Recv {
    int axis = 0;
    std::int64_t offset = -1;
    Bytes bytes;
    int layer = -1;
    int micro_batch = 0;
};

/// Reads the samples of one step from a storage tier of the machine.
struct Load {
    std::string tier;
    Bytes bytes;
};

/// The optimizer's step on the weights of one bucket, or on this rank's piece of them.
struct Update {
    int bucket = 0;
    Problem problem;   // an SgdUpdate, AdamUpdate or LambUpdate
    int sharded = -1;  // the mesh axis along which each rank updates its piece alone; -1: every rank updates all
};

using Action = std::variant<Compute, Communicate, Send, Recv, Load, Update>;

struct Step {
    std::string name;  // "conv1:forward", "bucket0:allreduce", "bucket0:update"; the key by which timelines are matched
    Stream stream = Stream::compute;
    Action action;
    std::vector<int> after;  // earlier steps of the same class that must have ended
};

/// Layers whose gradients lie together in one buffer, in the order in which the backward pass makes them.
struct Bucket {
    std::vector<int> layers;
    std::int64_t elements = 0;
    int axis = -1;  // of the mesh, perhaps joined: along it ranks have the same weights; -1: nobody else has them
};

/// A rank holds, of dimension `dim` of a weight tensor, the piece at its coordinate on `axis`; of `blocks` tensors that
/// lie one after the other along `dim`, the piece of each (queries, keys and values in one).
struct Cut {
    int tensor = 0;  // index into weights(op) of the whole's layer
    int dim = 0;
    int axis = 0;  // of the mesh
    std::int64_t blocks = 1;
    bool operator==(const Cut&) const = default;
};

/// Where a layer of a part comes from.
struct Origin {
    int layer = -1;         // of the whole network; -1: what the whole has not: a Communication, ChannelSums
    int tensor = 0;         // its first weight tensor is this one of that layer's
    std::vector<Cut> cuts;  // of its weights
    /// Axes, besides data's, along which ranks have the same weights and each computes a part of their gradient. (Along
    /// other axes than these and data's, ranks with the same weights compute the same gradient.)
    std::vector<int> summed{};
    bool operator==(const Origin&) const = default;
};

/// What a rank class computes of the whole network: the same layers, with sizes of the rank's share, and Communications
/// where it needs what others have.
struct Part {
    Network network;
    std::vector<Origin> origins;  // of each layer
    std::vector<Bucket> buckets;
};

/// One program, run by every rank whose coordinates on Schedule::class_axes are this class's.
struct RankClass {
    std::string name;
    Part part;
    std::vector<Step> steps;
    int slots = 1;  // micro-batches whose activations are held at the same time
};

enum class Precision { fp32, fp16, bf16, mixed };  // mixed: f16 compute and wire, f32 master weights
std::string_view to_string(Precision precision);

/// Adam with decoupled weight decay (AdamW); LAMB adds a trust ratio a tensor.
enum class Optimizer { sgd, adam, lamb };
std::string_view to_string(Optimizer optimizer);
/// Numbers that the optimizer keeps of each parameter: momentum, or both moments.
std::int64_t moments(Optimizer optimizer);
/// The operator that updates `count` weights, which lie in so many tensors.
Op update_op(Optimizer optimizer, std::int64_t count, std::int64_t tensors);
/// Tensors of weights of a bucket's layers.
std::int64_t tensors(const Network& network, const Bucket& bucket);

struct Schedule {
    Network network;   // the whole
    std::string plan;  // as the user wrote it, axes inferred
    Precision precision = Precision::fp32;
    Mesh mesh;
    std::int64_t batch_per_rank = 1;  // samples of one step that a rank works on, in all its micro-batches
    int micro_batches = 1;
    std::vector<int> class_axes;     // axes along which ranks have different programs; none: one class
    std::vector<RankClass> classes;  // row-major over class_axes
    Bytes memory_peak;               // of the fullest rank class
    Optimizer optimizer = Optimizer::sgd;
    int lag = 0;  // 1: a step sums the gradients of the step before it, and updates by these (Kurth et al. 2018)
};
int class_of(const Schedule& schedule, std::int64_t rank);
std::int64_t global_batch(const Schedule& schedule);
std::int64_t micro_batch_size(const Schedule& schedule);

/// Whether ranks keep their pieces of the weights only and gather them for each use (ZeRO 3).
bool gathers_weights(const RankClass& rank_class);

/// Whether gradients are combined by Adasum, each rank's own mean with the others', and not summed.
bool combines_gradients(const RankClass& rank_class);

/// Bug check: dependencies point backwards, layers, buckets and axes exist, no step waits for itself.
void check(const Schedule& schedule);

}  // namespace rehearse
