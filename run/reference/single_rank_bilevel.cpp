// SPDX-License-Identifier: Apache-2.0
// What it means that weights and shares of mixed operators are trained in turn, written out for one rank.
#include "core/index.hpp"
#include "core/methods/bilevel.hpp"
#include "core/methods/combined_updates.hpp"
#include "core/methods/curvature.hpp"
#include "run/reference/by_buckets.hpp"

namespace rehearse::run {

Reference train_by_combined_updates;  // single_rank_combined_updates.cpp

namespace {

using Numbers = std::vector<std::vector<float>>;

/// What the optimizer has of a layer's weights.
Numbers kept_of(Program& program, int layer) {
    const Tensors::Parameters own = program.tensors().parameters_of(layer);
    return {floats_of(own.weights), floats_of(own.momentum), floats_of(own.second_moment)};
}
void put_back(Program& program, int layer, const Numbers& kept) {
    const Tensors::Parameters own = program.tensors().parameters_of(layer);
    assign(own.weights, kept[0]);
    assign(own.momentum, kept[1]);
    if (!own.second_moment.empty()) assign(own.second_moment, kept[2]);
}

}  // namespace

void update_half(const SingleRank& single, Program& program, int step, int half) {
    std::map<int, Numbers> others;
    for (std::size_t i = 0; i < single.layers().size(); ++i) {
        const Op& op = single.layers()[i].op;
        if (parameters(op) > 0 && is_architecture(op) != (half == 0))
            others[static_cast<int>(i)] = kept_of(program, static_cast<int>(i));
    }
    ProgramState counted = program.state();
    counted.updates = step;
    program.set_state(counted);
    single.update(program);
    for (const auto& [layer, kept] : others) put_back(program, layer, kept);
}

void take_half(const SingleRank& single, Program& program, int half, std::vector<std::vector<float>>& gradients) {
    std::vector<std::vector<float>> now = single.result(program).gradients;
    gradients.resize(now.size());
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (is_architecture(single.layers()[i].op) == (half == 0)) gradients[i] = std::move(now[i]);
    }
}

// A single rank's update is of all weights: those whose turn it is not are put back as they were. Each has been updated
// once when both halves are through, so its count is that of the steps.
Trained train_bilevel(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    if (schedule.methods.get<CombinedUpdates>().on) return train_by_combined_updates(single, rank, perturbation);
    const std::unique_ptr<Program> program = single.model(perturbation);
    const Combined by = combined_by(single, perturbation);
    Trained trained;
    for (int step = single.options().first_step(); step < single.options().steps; ++step) {
        for (const int half : {0, 1}) {
            const BatchGradients made = single.gradients_of_parts(*program, step, half, perturbation);
            const Combine in_turn = [&](std::span<const RankIndex> ranks, int bucket, const Own& own) {
                const Part& part = schedule.classes[at(class_of(schedule, ranks.front()))].part;
                return is_architecture(op_of(part, bucket)) == (half == 0) ? by.combine(ranks, bucket, own)
                                                                           : summing()(ranks, bucket, own);
            };
            assign(program->tensors().gradients(), brought_together(single, *program, made, in_turn, by.of));
            take_half(single, *program, half, trained.gradients);
            update_half(single, *program, step, half);
        }
    }
    trained.weights = single.result(*program).weights;
    return trained;
}

}  // namespace rehearse::run
