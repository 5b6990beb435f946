// SPDX-License-Identifier: Apache-2.0
// Single steps of layers: what they do, what they wait for.
#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ring_attention.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

class LayerSteps {
public:
    /// `slots`: micro-batches that there is memory for.
    LayerSteps(StepContext& context, int slots) : context_(context), slots_(slots) {}

    void begin_item() { started_ = false; }
    void end_item() { ends_.push_back(context_.last_compute); }
    /// What collectives of [begin, end) have made again is overwritten by the next micro-batch, whether the backward
    /// pass needs it or not: that waits for all of them.
    void wait_for_outputs(Chunk chunk);

    /// `again`: the backward pass computes once more what was not kept.
    void compute(int i, Pass pass, bool again = false);
    /// Attention whose keys and values travel around a ring: each block computed beside the coming of the next
    /// (core/ring_attention.hpp). Returns the step that brings the gradients of its inputs; of a forward pass `none`.
    int attend_in_turns(int i, Pass pass, bool again);
    int collective(int i, CollectiveKind kind, Pass pass, int needs, std::string_view suffix);
    int send(int i, const Communication& op, Stream stream, std::string_view what, int needs);
    /// While the item before is computed, not earlier.
    int receive(int i, const Communication& op, Stream stream, std::string_view what);
    /// Layer i's output is gathered once more, which the next gradient of weights reads.
    void gather_again(int i);

private:
    int gradients_home_ = none;  // the step with which the last ring's gradients came home
    /// What a layer's computation waits for.
    std::vector<int> before(int i, Pass pass);
    int computed_step(int i, Pass pass, std::string_view suffix, bool again, std::vector<int> after);
    int handed_on(int i, Pass pass, RingTurn turn, bool again, std::vector<int> after);
    /// The last of this item's micro-batch that was sent to the next stage.
    int last_output_sent() const;
    /// The gradient that lies in the slot of this item's micro-batch, until it is sent.
    int last_gradient_sent() const;
    int last_sum_of_gradients(int i) const;
    void after_gradients_of_inputs(int i, std::vector<int>& after) const;
    /// Elements of the memory that a layer's collective works on, of one sample.
    std::int64_t elements_of(int i, Pass pass) const;
    Algorithm algorithm_of(int i, CollectiveKind kind, Pass pass) const;
    Bytes bytes_of(const Communication& op) const;

    StepContext& context_;
    int slots_;
    bool started_ = false;                             // this item has computed something
    std::vector<int> ends_;                            // the last compute step of each item
    std::map<std::pair<int, int>, int> outputs_sent_;  // by chunk and micro-batch, the last send
    std::vector<std::pair<Item, int>> sent_gradients_;
    std::vector<int> made_again_;  // collectives of a forward pass for recomputation that nobody has waited for
    int gathered_again_ = none;    // what the next gradient of weights reads
};

}  // namespace rehearse::schedule
