// SPDX-License-Identifier: Apache-2.0
// Makes a rank class's steps, item after item of its order: steps.cpp says what follows on what, step_actions.cpp what
// a step is and waits for.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "core/schedule.hpp"
#include "schedule/steps.hpp"

namespace rehearse::schedule {

class StepMaker {
public:
    StepMaker(const Schedule& schedule, const std::vector<Chunk>& chunks, const StepOptions& options, RankClass& made);

    void run(const Order& order, int slots);

private:
    static constexpr int none = -1;

    /// What is summed while the backward pass goes on has been by now.
    void sum_and_update();
    /// `again`: the backward pass computes once more what was not kept.
    void forward(Chunk chunk, bool again);
    void communicate_forward(int i, const Communication& op, bool again);

    void backward(Chunk chunk);
    void forward_again(Chunk chunk);
    void backward_of(Chunk chunk);
    bool is_halo(int i) const;
    /// The halo right before a layer with weights, that nobody else reads.
    int own_halo(int i, Chunk chunk) const;
    /// Of one dimension after the other: gradients of the rows that were lent.
    void send_halos(int halo, Chunk chunk);
    /// An exchange that one layer alone reads.
    bool is_own_exchange(int input) const;
    bool exchanges_input(int i) const;
    /// What only layer i reads of other ranks' tables, slots or rows: its gradients leave before those of layers in
    /// between, or of its weights, are made.
    void exchange_gradients(int i);
    /// What sequence parallelism does not keep comes once more, beside the gradient of the inputs, for that of the
    /// weights.
    void gather_again(int i);
    void communicate_backward(int i, const Communication& op);
    /// The gradient of the inputs is there when that of the output is.
    void pass_on(int i);
    void give(int i, int step);

    std::string name_of(int i, std::string_view what, std::string_view suffix) const;
    int append(std::string name, Stream stream, Action action, std::vector<int> after);
    void compute(int i, Pass pass, bool again = false);
    /// The last of this item's micro-batch that was sent to the next stage.
    int last_sum_of_gradients(int i) const;
    int last_output_sent() const;
    void after_gradients_of_inputs(int i, std::vector<int>& after) const;
    /// The gradient that lies in the slot of this item's micro-batch, until it is sent.
    int last_gradient_sent() const;
    /// Elements of the memory that a layer's collective works on, of one sample.
    std::int64_t elements_of(int i, Pass pass) const;
    Algorithm algorithm_of(int i, CollectiveKind kind, Pass pass) const;
    int collective(int i, CollectiveKind kind, Pass pass, int needs, std::string_view suffix);
    Bytes bytes_of(const Communication& op) const;
    int send(int i, const Communication& op, Stream stream, std::string_view what, int needs);
    /// While the item before is computed, not earlier.
    int receive(int i, const Communication& op, Stream stream, std::string_view what);

    /// After the backward pass (lag: before it): what another stage has, too; of `all` buckets where nothing is sent
    /// earlier.
    void sum_late(bool all);
    bool waits_for_tie(int b) const;
    void sum_gradients(int b);
    void sum_ties(int b);
    /// In the name of a step that a bucket has once a micro-batch.
    std::string which_time() const;
    /// Ranks that have the weights of a bucket.
    std::int64_t sharing(int b) const;
    std::int64_t elements_on_wire(int b) const;
    int micro_batch_of_sum() const;
    int bucket_collective(int b, CollectiveKind kind, std::vector<int> after);
    void update();
    /// All together: an average that servers keep is pulled at rank by rank.
    bool elastic() const { return schedule_.averaging.elastic > 0 && options_.server_of.empty(); }
    bool averages() const { return schedule_.averaging.period > 0; }
    void bring_together(int b, Content content, std::vector<int> after);
    bool sends_vectors(int b) const { return !options_.vectors.empty() && options_.vectors[at(b)]; }
    /// What a bucket's server computes for one trade.
    std::vector<Problem> served(int b) const;
    void trade(int b);
    void hand_on(int b);
    // step_curvature.cpp
    bool preconditioned(int b) const;
    /// Of a layer whose inputs and errors are there: both factors, and their sums over the ranks.
    void make_factors(int b);
    /// After all sums: each rank's own layers, then what has become of their gradients, to all.
    void precondition();
    void precondition(std::string_view what, Precondition::Work work, std::vector<int> after);

    const Schedule& schedule_;
    const std::vector<Chunk>& chunks_;
    const StepOptions& options_;
    const Part& part_;
    const Network& network_;
    const std::vector<Layer>& layers_;
    const std::vector<Bucket>& buckets_;
    std::vector<Step>& steps_;
    std::vector<bool> needed_;
    std::vector<std::vector<int>> readers_;
    int sent_from_ = none, sent_down_to_ = none;  // halos whose gradients are on their way
    std::set<int> exchanged_;                     // the same of exchanges
    Item item_;
    int slots_ = 1;
    bool started_ = false;                                                    // this item has computed something
    const bool sums_beside_ = options_.sum.overlap && options_.sum.lag == 0;  // the backward pass that makes them
    int last_compute_ = none;                                                 // step
    std::vector<int> ends_;                                                   // the last compute step of each item
    std::map<std::pair<int, int>, int> outputs_sent_;                         // by chunk and micro-batch, the last send
    std::vector<int> made_again_;  // collectives of a forward pass for recomputation that nobody has waited for
    int gathered_again_ = none;    // what the next gradient of weights reads
    // Of this item, by layer: steps of other streams that give the output, or a part of its gradient.
    std::vector<int> output_by_;
    std::vector<std::vector<int>> gradient_by_;
    std::vector<int> bucket_of_;   // by layer
    std::vector<int> closes_;      // by layer: the bucket whose last gradient it makes
    std::vector<int> ready_by_;    // by bucket: the step that sums its gradients
    std::vector<int> traded_by_;   // by bucket: the step that brings its new weights
    std::vector<int> factors_by_;  // steps that sum factors
    std::int64_t samples_;         // of a micro-batch
    std::vector<std::pair<Item, int>> sent_gradients_;
};

}  // namespace rehearse::schedule
