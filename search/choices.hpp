// SPDX-License-Identifier: Apache-2.0
// One point of the space of plans, and the points that a mesh allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/network.hpp"
#include "schedule/steps.hpp"

namespace rehearse::search {

/// Ranks along the axes; `data_outside`: the order is data, pipe, tensor, else pipe, data, tensor or expert (the last
/// lies inside the node first). Ranks along `data` and `expert` have samples of their own; `context`, between data and
/// the others, shares their tokens.
struct Shape {
    std::int64_t data = 1, tensor = 1, pipe = 1;
    bool data_outside = false;
    std::int64_t expert = 1;
    std::int64_t context = 1;
    std::int64_t copies() const { return data * expert; }        // on samples of their own
    std::int64_t holders() const { return copies() * context; }  // of all weights that are no experts'
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
    bool ring = false;      // of context: keys and values travel
    bool overlap = true;    // of the sums of gradients with the backward pass
    schedule::Recompute recompute = schedule::Recompute::none;
    std::string all_reduce{};  // of the gradients; empty: the framework's, else the plan language's default
    bool operator==(const Choices&) const = default;
};

/// In the plan language: "pipe=4:microbatches=8,data=8:zero=1,tensor=2".
std::string plan_text(const Choices& choices);

/// Every (data, tensor, pipe, expert, context) whose product is `devices`, none but data larger than given; both
/// placements where they differ. In no special order. `experts`: of each mixture of the network, evenly shared along
/// expert; 1: there are none. `tokens`: of each attention, evenly shared along context, which is no longer than tensor
/// may be; 1: there is none. One of tensor, expert and context at a time.
struct Extent {
    std::int64_t tensor = 1, pipe = 1, expert = 1024;
};
struct Divisible {
    std::int64_t experts = 1, tokens = 1;
};
std::vector<Shape> shapes(std::int64_t devices, Extent most, Divisible of = {});
/// The largest number that divides the tokens of all attention, if these are of whole sequences; 1: there is none.
std::int64_t tokens_of(const Network& network);
/// The largest number that divides the experts of all mixtures; 1: the network has none.
std::int64_t experts_of(const Network& network);

/// All choices for a shape but the all-reduce: none where the batch cannot be divided among the copies.
/// `chunks`: the largest number tried (1, 2, 4, ...); `sequence`: whether it is tried; `overlap`: whether plans
/// without it are, too (with ZeRO 3 gathers overlap in any case).
struct Variety {
    int chunks = 4;
    bool sequence = true;
    bool overlap = true;  // without it, too
    // What the framework has settled for gradients that several ranks share:
    std::optional<int> zero{};          // ZeRO's stage
    std::optional<bool> overlapping{};  // of their sums with the backward pass
    bool own_all_reduce = false;        // it has its own
};
std::vector<Choices> choices_of(const Shape& shape, std::int64_t global_batch, const Variety& variety);

}  // namespace rehearse::search
