// SPDX-License-Identifier: Apache-2.0
// A method of training as a rank's program sees it: the steps that are the method's, what it does around a training
// step, and what it keeps from one step to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "run/rank_context.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

/// What a program counts, as checkpoints have it.
struct ProgramState {
    float loss_scale = 1;
    bool scale_found = false;  // by steps that scaled
    std::int64_t good_steps = 0, updates = 0;
    std::int64_t begun = 0;  // steps, with lag=1
    float made_scale = 1;    // of the gradients that these have left
};

/// A rank's numbers, one span after the other: what is saved of them, and put there again.
using UseNumbers = std::function<void(std::span<float>)>;

/// What a rank has sent of each bucket, where that hangs on single bits of gradients: the words of each time.
using SentWords = std::map<int, std::vector<std::vector<float>>>;

class Method {
public:
    Method() = default;
    Method(const Method&) = delete;
    Method& operator=(const Method&) = delete;
    virtual ~Method() = default;

    /// Makes a step ready that is this method's; false where it is another one's. Called for each step of a bucket, in
    /// their order.
    virtual bool prepare(ReadyStep& ready) = 0;
    /// Called once, when all steps of the program are ready.
    virtual void complete(std::span<ReadyStep> /*steps*/) {}
    /// Returns the samples of which a loss is the mean, from those that the methods before this one take.
    virtual std::int64_t loss_batch(std::int64_t batch) const { return batch; }

    /// Before the first step of a training step.
    virtual void begin_step() {}
    /// After a training step whose messages have all come.
    virtual void end_step() {}
    /// Whether this training step has gradients to update by.
    virtual bool updates() const { return true; }

    /// Shows what the next training step reads of this rank's alone; not of ranks that have equal states.
    virtual void visit_state(const UseNumbers& /*use*/) {}
    virtual void save(ProgramState& /*state*/) const {}
    virtual void restore(const ProgramState& /*state*/) {}

    /// Of a method by bits: writes down in `sent`, which outlives it, what this rank sends from now on.
    virtual void write_down(SentWords& /*sent*/) {}
};

class SingleRank;
struct Trained;
/// What a training of `single` means for `rank`; from changed weights (check_part) where `perturbation` is not 0.
using Reference = Trained(const SingleRank& single, RankIndex rank, int perturbation);

/// One row a method, at the end of its file: all that is asked about methods is answered here.
struct MethodRow {
    std::string_view name;
    bool (*used)(const Schedule& schedule);
    std::unique_ptr<Method> (*make)(RankContext& rank);
    /// Whether all ranks update one model by the sum of all gradients, so that gradients are those of the whole batch.
    bool sums_gradients = true;
    /// Whether ranks have numbers of their own from step to step, so that only the same plan goes on from a checkpoint.
    bool own_state = false;
    /// Whether what is applied jumps with the last bit of a gradient (signs, the largest): a reference follows what was
    /// sent where rounding decided it (run/reference/followed.hpp).
    bool by_bits = false;
    /// What the method means, written out for one rank (run/reference); null: as the sum over the whole batch.
    Reference* reference = nullptr;
};

/// How most methods are made.
template <typename Made>
std::unique_ptr<Method> make_method(RankContext& rank) {
    return std::make_unique<Made>(rank);
}

/// Returns all rows, in the order in which their steps, and what they make of loss_batch, are asked for.
std::span<const MethodRow* const> methods();
/// Returns the rows that a schedule uses.
std::vector<const MethodRow*> methods_of(const Schedule& schedule);

/// Whether any method of the schedule has own_state.
bool keeps_own_states(const Schedule& schedule);
/// Whether all methods of the schedule have sums_gradients.
bool sums_gradients(const Schedule& schedule);

}  // namespace rehearse::run
