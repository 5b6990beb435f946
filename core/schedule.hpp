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

/// A rank works on its streams at the same time, and on the steps of one stream in their order.
enum class Stream { compute, communication, io };
std::string_view to_string(Stream stream);

/// One pass of one layer over one micro-batch.
struct Compute {
    int layer = 0;  // index into Schedule::network
    Problem problem;
    int micro_batch = 0;
};

/// All ranks along `axis` sum bucket `bucket` (sent as `type`).
struct AllReduceBucket {
    int bucket = 0;
    int axis = 0;
    std::int64_t elements = 0;
    DataType type = DataType::f32;
    Algorithm algorithm;
};

/// To or from the rank `offset` further along `axis`; the n-th Send to a rank meets its n-th Recv.
struct Send {
    int axis = 0;
    std::int64_t offset = 1;
    Bytes bytes;
};
struct Recv {
    int axis = 0;
    std::int64_t offset = -1;
    Bytes bytes;
};

/// Reads the samples of one step from a storage tier of the machine.
struct Load {
    std::string tier;
    Bytes bytes;
};

/// The optimizer's step on the weights of one bucket.
struct Update {
    int bucket = 0;
    Problem problem;  // an SgdUpdate
};

using Action = std::variant<Compute, AllReduceBucket, Send, Recv, Load, Update>;

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
};

/// One program, run by every rank whose coordinates on Schedule::class_axes are this class's.
struct RankClass {
    std::string name;
    std::vector<Step> steps;
};

enum class Precision { fp32, fp16, bf16, mixed };  // mixed: f16 compute and wire, f32 master weights
std::string_view to_string(Precision precision);

struct Schedule {
    Network network;
    std::string plan;  // as the user wrote it, axes inferred
    Precision precision = Precision::fp32;
    Mesh mesh;
    std::int64_t batch_per_rank = 1;  // samples of one step on one rank
    std::vector<Bucket> buckets;
    std::vector<int> class_axes;     // axes along which ranks have different programs; none: one class
    std::vector<RankClass> classes;  // row-major over class_axes
    Bytes memory_peak;               // of the fullest rank class
};
int class_of(const Schedule& schedule, std::int64_t rank);
std::int64_t global_batch(const Schedule& schedule);

/// Bug check: dependencies point backwards, buckets and axes exist, no step waits for itself.
void check(const Schedule& schedule);

}  // namespace rehearse
