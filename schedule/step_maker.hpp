// SPDX-License-Identifier: Apache-2.0
// Makes a rank class's steps, item after item of its order: what follows on what. What a layer's step is and waits for
// is in layer_steps.hpp, what becomes of gradients in bucket_steps.hpp and methods/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "schedule/bucket_steps.hpp"
#include "schedule/layer_steps.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

class StepMaker {
public:
    StepMaker(StepContext& context, const std::vector<Chunk>& chunks, int slots);

    void run(const Order& order);

private:
    /// `again`: the backward pass computes once more what was not kept.
    void forward(Chunk chunk, bool again);
    void communicate_forward(int i, const Communication& op, bool again);

    void backward(Chunk chunk);
    void forward_again(Chunk chunk);
    void backward_of(Chunk chunk);
    void gradients_of(int i, Chunk chunk);
    bool is_halo(int i) const;
    bool in_ring(int i) const;
    /// The halo right before a layer with weights, that nobody else reads.
    int own_halo(int i, Chunk chunk) const;
    /// Whether layer i works on rows that need no exchange, behind one (a convolution whose edges are apart): all who
    /// read the halo come later, so that its gradient leaves before layer i's is made.
    bool precedes(int i, Chunk chunk) const;
    /// Of one dimension after the other: gradients of the rows that were lent.
    void send_halos(int halo, Chunk chunk);
    /// An exchange that one layer alone reads.
    bool is_own_exchange(int i, int input) const;
    bool exchanges_input(int i) const;
    /// What only layer i reads of other ranks' tables, slots or rows: its gradients leave before those of layers in
    /// between, or of its weights, are made.
    void exchange_gradients(int i);
    /// What sequence parallelism does not keep comes once more, beside the gradient of the inputs, for that of the
    /// weights.
    void gather_again(int i);
    void communicate_backward(int i, const Communication& op);
    bool makes_gradient_of_weights(int i) const;
    /// The gradient of the inputs is there when that of the output is.
    void pass_on(int i);
    void give(int i, int step);

    StepContext& context_;
    const std::vector<Chunk>& chunks_;
    LayerSteps steps_;
    BucketSteps buckets_;
    std::vector<bool> needed_;                    // by layer: the gradient of its input
    std::vector<std::vector<int>> readers_;       // by layer
    int sent_from_ = none, sent_down_to_ = none;  // halos whose gradients are on their way
    std::set<int> exchanged_;                     // the same of exchanges
};

}  // namespace rehearse::schedule
