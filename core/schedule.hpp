// SPDX-License-Identifier: Apache-2.0
// What happens, in which order, on which rank: no clock, no cost. Stored per rank class, so that its size does not grow
// with the machine.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/collectives/collective.hpp"
#include "core/index.hpp"
#include "core/mesh.hpp"
#include "core/methods/method_data.hpp"
#include "core/network.hpp"
#include "core/op.hpp"
#include "core/stream.hpp"

namespace rehearse {

/// One pass of one layer of the rank class's part over one micro-batch.
struct Compute {
    LayerIndex layer{0};
    Problem problem;
    int micro_batch = 0;
};

/// What of a bucket ranks bring together.
enum class Content {
    usual,        // by the kind: gradients of all_reduce and reduce_scatter, weights of all_gather
    weights,      // of models that each rank trains by itself, to their mean
    differences,  // of these models from the average one, to their sum (elastic averaging)
    compressed,   // gradients in fewer bits, as a method has them, those of all ranks beside each other
    factors,      // of K-FAC (Curvature), the lower triangles of both, to their sum
    directions,   // gradients times K-FAC's inverses, from the rank that has made them to all
    norms         // squares of LAMB's weights and directions, two a tensor of each bucket whose update waits for them
};

/// Something computed `times` times.
struct Work {
    Problem problem;
    std::int64_t times = 1;
};

/// All ranks along `axis` work on one tensor together. Of a bucket: its gradients (all_reduce, reduce_scatter) or its
/// weights (all_gather), or what `content` says. Of a layer, a Communication: its output (forward) or the gradient of
/// its input (backward_data) of one micro-batch.
struct Communicate {
    CollectiveKind kind = CollectiveKind::all_reduce;
    AxisIndex axis{0};
    std::int64_t elements = 0;  // of the whole: what all_reduce sums, what all_gather ends with
    DataType type = DataType::f32;
    Algorithm algorithm;
    std::variant<BucketIndex, LayerIndex> of{};
    Pass pass = Pass::forward;
    int micro_batch = 0;
    Content content = Content::usual;
    std::int64_t root = 0;  // of a broadcast: its place along the axis
    /// What each rank computes around it, one after the other: what a method chooses, packs and adds up.
    std::vector<Work> beside{};

    bool of_bucket() const { return std::holds_alternative<BucketIndex>(of); }
    /// What it is of; a bug where it is of the other.
    BucketIndex bucket() const { return std::get<BucketIndex>(of); }
    LayerIndex layer() const { return std::get<LayerIndex>(of); }
};

/// To or from the rank `offset` further along `axis`; the n-th Send to a rank meets its n-th Recv on the stream of the
/// same tensors (activations or gradients).
struct Send {
    AxisIndex axis{0};
    std::int64_t offset = 1;
    Bytes bytes;
    LayerIndex layer{};  // a Communication of Part::network; its output (forward) or its input's gradient
    int micro_batch = 0;
};
struct Recv {
    AxisIndex axis{0};
    std::int64_t offset = -1;
    Bytes bytes;
    LayerIndex layer{};
    int micro_batch = 0;
};

/// Reads the samples of one step from a storage tier of the machine.
struct Load {
    std::string tier;
    Bytes bytes;
};

/// The optimizer's step on the weights of one bucket, or on this rank's piece of them.
struct Update {
    BucketIndex bucket{0};
    Problem problem;      // an SgdUpdate, AdamUpdate (also of LAMB's pieces, whose norms are known) or LambUpdate
    AxisIndex sharded{};  // along which each rank updates its piece alone; of none: every rank updates all
};

/// With the server of a bucket, which serves whoever comes first: the bucket's gradients, for the weights as they are
/// after the server's update by them. Nobody else is waited for. Along `group` only the first rank trades (of none: all
/// do).
struct PushPull {
    BucketIndex bucket{0};
    int server = 0;  // of Schedule::servers
    AxisIndex group{};
    std::int64_t sent = 0, received = 0;  // elements
    DataType type = DataType::f32;
    std::vector<Problem> work;  // what the server computes in between
};

/// K-FAC (Curvature) of dense layers, each alone in its bucket: one of its two factors made, inverted, or its inverse
/// multiplied with the gradient, in `problem`'s time.
struct Precondition {
    enum class Work { factor, invert, multiply } work = Work::factor;
    enum class Side { inputs, errors } side = Side::inputs;
    BucketIndex bucket{};  // factor: of this layer, by all ranks
    int place = 0;         // else: of the so many-th of the layers that a rank owns; who owns fewer does nothing
    int micro_batch = 0;
    Problem problem;  // that of the rank which has most to do
};

using AnyAction = std::variant<Compute, Communicate, Send, Recv, Load, Update, PushPull, Precondition>;

/// What a step does. It copies, moves and ends in schedule.cpp, as Op does in op.cpp.
struct Action : AnyAction {
    using AnyAction::AnyAction;
    using AnyAction::operator=;
    Action();
    Action(const Action& other);
    Action(Action&& other) noexcept;
    Action& operator=(const Action& other);
    Action& operator=(Action&& other) noexcept;
    ~Action();
};

struct Step {
    std::string name;  // "conv1:forward", "bucket0:allreduce", "bucket0:update"; the key by which timelines are matched
    Stream stream = Stream::compute;
    Action action;
    std::vector<int> after;   // earlier steps of the same class that must have ended
    bool recomputed = false;  // a part of a forward pass that is done again, for the backward pass that follows
};

/// Layers whose gradients lie together in one buffer, in the order in which the backward pass makes them.
struct Bucket {
    std::vector<int> layers;
    std::int64_t elements = 0;
    int axis = -1;  // of the mesh, perhaps joined: along it ranks have the same weights; -1: nobody else has them
    int tie =
        -1;  // a pair of places: the other one has the first `tied` elements, too, in another layer, and each makes
             // a part of their gradient (a table of words that the first and the last stage of a pipeline share)
    std::int64_t tied = 0;
};

/// A rank holds, of dimension `dim` of a weight tensor, the piece at its coordinate on `axis`; of `blocks` tensors that
/// lie one after the other along `dim`, the piece of each (queries, keys and values in one).
struct Cut {
    int tensor = 0;  // index into weights(op) of the whole's layer
    int dim = 0;
    int axis = 0;  // of the mesh
    std::int64_t blocks = 1;
    std::vector<std::int64_t> sizes{};  // of these along `dim`, where they are not alike (fewer heads of keys)
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
    bool transposed = false;  // the matrix lies {columns, rows}
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
    int in_flight = 1;       // micro-batches that are between their forward and backward passes at the same time
    int slots = 1;           // that there is memory for: one more where a stage receives the next one meanwhile
    std::int64_t batch = 0;  // samples of a step; 0: Schedule::batch_per_rank
    /// Of a pipeline's stage that several ranks have: every so many-th micro-batch is this class's, from `copy` on.
    int copies = 1, copy = 0;
};

/// Copies along data that work on unlike numbers of samples, as they are on unlike devices (uneven batches).
struct Shares {
    std::vector<std::int64_t> samples;  // of a step, by place along data; empty: all have batch_per_rank
    std::vector<int> kind;              // by place: equal shares are of one kind, numbered as they come
};
/// With the kinds that these samples make. Empty where all are equal.
Shares shares_of(std::vector<std::int64_t> samples);

/// What each part of a step is computed, kept and sent in: core/precision.hpp.
enum class Precision { fp32, tf32, fp16, pure_bf16, mixed, mixed_bf16, autocast, bf16, fp8 };
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

/// It copies, moves and ends in schedule.cpp: files that hand it on are compiled sooner.
struct Schedule {
    Network network;   // the whole
    std::string plan;  // as the user wrote it, axes inferred
    Precision precision = Precision::fp32;
    Mesh mesh;
    /// Samples of one step that a rank works on, in all its micro-batches; the largest share where they are unlike.
    std::int64_t batch_per_rank = 1;
    int micro_batches = 1;
    std::vector<int> class_axes;     // axes along which ranks have different programs; none: one class
    std::vector<RankClass> classes;  // row-major over class_axes; along data one for each kind of share
    Shares shares{};
    std::vector<int> stage_copies{};  // places along "pipe" that each stage of it has; empty: one each
    Bytes memory_peak;                // of the fullest rank class
    Optimizer optimizer = Optimizer::sgd;
    MethodData methods{};  // of methods of training: what each keeps here

    Schedule();
    Schedule(const Schedule& other);
    Schedule(Schedule&& other) noexcept;
    Schedule& operator=(const Schedule& other);
    Schedule& operator=(Schedule&& other) noexcept;
    ~Schedule();
};
/// Ranks along `groups`, `data` and `expert` have samples of their own: how many sets of samples there are, and whose
/// is a rank's.
std::int64_t shards(const Mesh& mesh);
std::int64_t shard_of(const Mesh& mesh, RankIndex rank);
/// Samples of a step that a shard has, and where they begin in the batch.
std::int64_t samples_of(const Schedule& schedule, std::int64_t shard);
std::int64_t first_sample(const Schedule& schedule, std::int64_t shard);
/// Stages of the pipeline; 1 without one.
int stages(const Schedule& schedule);
/// A place along "pipe" as one of the copies of a stage.
struct StagePlace {
    StageIndex stage{0};
    int copies = 1, copy = 0;
    std::int64_t first = 0;  // the place of the stage's first copy
};
StagePlace stage_at(const Schedule& schedule, std::int64_t place);
/// That of a rank; stage 0 without a pipeline.
StagePlace stage_of(const Schedule& schedule, RankIndex rank);
/// Whether a class has no micro-batch of a step after this one.
bool is_last(const Schedule& schedule, const RankClass& rank_class, int micro_batch);
/// The micro-batch is the so many-th of its class.
inline int turn_of(const RankClass& rank_class, int micro_batch) { return micro_batch / rank_class.copies; }
/// Programs along one of class_axes.
std::int64_t classes_along(const Schedule& schedule, int axis);
int class_of(const Schedule& schedule, RankIndex rank);
/// What a Compute, Update or Precondition takes the time of; else none.
const Problem* problem_of(const Step& step);
std::int64_t global_batch(const Schedule& schedule);
std::int64_t micro_batch_size(const Schedule& schedule);
/// Of the ranks of a class.
std::int64_t batch_of(const Schedule& schedule, const RankClass& rank_class);
std::int64_t micro_batch_size(const Schedule& schedule, const RankClass& rank_class);

/// Whether ranks keep their pieces of the weights only and gather them for each use (ZeRO 3).
bool gathers_weights(const RankClass& rank_class);

/// Whether gradients are combined by Adasum, each rank's own mean with the others', and not summed.
bool combines_gradients(const RankClass& rank_class);

/// Bug check: dependencies point backwards, layers, buckets and axes exist, no step waits for itself.
void check(const Schedule& schedule);

}  // namespace rehearse
