// SPDX-License-Identifier: Apache-2.0
// In which order a pipeline's stage takes its micro-batches: forward (F) and backward (B), chunk by chunk.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index.hpp"

namespace rehearse::schedule {

struct PipelineShape {
    int stages = 1;
    int micro_batches = 1;  // of one of the ranks that have the stage
    int chunks = 1;         // parts of the network a stage holds: part c of stage s is number c * stages + s of all
    /// Ranks that have each stage, in turns over the micro-batches; empty: one each.
    std::span<const int> copies{};
    /// Whether the ranks of a stage take their turns together, as they have to where they gather weights for each use.
    bool together = false;
};

/// One micro-batch through one chunk.
struct Item {
    bool forward = true;
    int micro_batch = 0;
    int chunk = 0;
    bool operator==(const Item&) const = default;
};
using Order = std::vector<Item>;

/// All forwards, then all backwards in the same order (Huang et al. 2019, "GPipe").
Order gpipe(StageIndex stage, PipelineShape shape);

/// 1F1B, also called PipeDream-flush (Narayanan et al. 2021, figure 3): stage s keeps at most stages - s micro-batches,
/// so memory does not grow with their number. Where stages have copies, each of stage s keeps as many as make one for
/// each rank of it and the stages behind it: all of these, over its copies, rounded up (Narayanan et al. 2019, section
/// 3.2, "NUM_OPT_ACTIVE_MINIBATCHES"). Where these take turns together, as many micro-batches as are whole turns of all
/// stages go through the pipeline as one: a copy that waits for its others then never waits for what waits for it.
Order one_f_one_b(StageIndex stage, PipelineShape shape);

/// Interleaved 1F1B (Narayanan et al. 2021, figure 4): each stage holds `chunks` parts that lie apart, micro-batches go
/// round in groups of `stages`. The bubble shrinks by the number of chunks.
Order interleaved(StageIndex stage, PipelineShape shape);

/// PipeDream (Narayanan et al. 2019): the order of 1F1B, but each stage updates its weights after each backward. The
/// backward pass of a micro-batch uses the weights that its forward pass used ("weight stashing"): those after
/// max(0, m - (stages - 1 - stage)) updates, for micro-batch m. A step still begins with an empty pipeline.
Order pipedream(StageIndex stage, PipelineShape shape);

/// One micro-batch after the other through all chunks, forward and back, where each updates the weights that the next
/// one starts from: the pipeline is empty in between.
Order one_by_one(PipelineShape shape);

struct PipelineStrategy {
    std::string_view name, summary;
    Order (*order)(StageIndex stage, PipelineShape shape);
    bool asynchronous = false;  // each micro-batch updates the weights
};
std::span<const PipelineStrategy> pipeline_strategies();

/// The most micro-batches of one chunk that are forward but not yet backward.
int most_in_flight(const Order& order, int chunks);

/// "F0 F1 B0 B1"; with chunks "F0a F0b": the chunk as a letter.
std::string draw(const Order& order, int chunks = 1);

}  // namespace rehearse::schedule
