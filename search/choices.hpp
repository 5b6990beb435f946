// SPDX-License-Identifier: Apache-2.0
// One point of the space of plans, and the points that a mesh allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/steps.hpp"

namespace rehearse::search {

/// Ranks along the axes; `data_outside`: the order is data, pipe, tensor, else pipe, data, tensor (the last lies inside
/// the node first).
struct Shape {
    std::int64_t data = 1, tensor = 1, pipe = 1;
    bool data_outside = false;
    auto operator<=>(const Shape&) const = default;
};
std::int64_t devices(const Shape& shape);

struct Choices {
    Shape shape;
    std::int64_t micro_batch = 1;  // samples
    std::int64_t micro_batches = 1;
    int chunks = 1;         // of each stage; more than 1: interleaved
    int zero = 0;           // ZeRO's stage
    bool sequence = false;  // sequence parallelism beside tensor parallelism
    schedule::Recompute recompute = schedule::Recompute::none;
    std::string all_reduce{};  // of the gradients; empty: the plan language's default
    bool operator==(const Choices&) const = default;
};

/// In the plan language: "pipe=4:microbatches=8,data=8:zero=1,tensor=2".
std::string plan_text(const Choices& choices);

/// Every (data, tensor, pipe) whose product is `devices`, tensor and pipe at most as large as given; both placements
/// where they differ. In no special order.
struct Extent {
    std::int64_t tensor = 1, pipe = 1;
};
std::vector<Shape> shapes(std::int64_t devices, Extent most);

/// All choices for a shape but the all-reduce: none where the batch cannot be divided among the copies.
/// `chunks`: the largest number tried (1, 2, 4, ...); `sequence`: whether it is tried.
struct Variety {
    int chunks = 4;
    bool sequence = true;
    bool adaptive_updates = true;  // false: the optimizer cannot update pieces of tensors (LAMB), so no ZeRO
};
std::vector<Choices> choices_of(const Shape& shape, std::int64_t global_batch, const Variety& variety);

}  // namespace rehearse::search
