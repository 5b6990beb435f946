// SPDX-License-Identifier: Apache-2.0
#include "run/reference/single_rank.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/lag.hpp"
#include "core/weight_versions.hpp"
#include "run/methods/method.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"

namespace rehearse::run {

Trained SingleRank::train(RankIndex rank, int perturbation) const {
    const std::vector<const MethodRow*> used = methods_of(schedule_);
    for (auto row = used.rbegin(); row != used.rend(); ++row) {  // servers know what they do to models
        if ((*row)->reference != nullptr) return (*row)->reference(*this, rank, perturbation);
    }
    return train_together(perturbation);
}

std::unique_ptr<Program> SingleRank::model(int perturbation) const {
    auto program = std::make_unique<Program>(single_, RankIndex{0}, options_.selection, options_.weights_seed,
                                             options_.hyperparameters);
    if (options_.begun != nullptr) take(single_, RankIndex{0}, *options_.begun, *program);
    round_kept(*program);
    if (perturbation > 0) perturb(*program, static_cast<std::uint64_t>(perturbation));
    return program;
}

Trained SingleRank::train_together(int perturbation) const {
    const std::unique_ptr<Program> model = this->model(perturbation);
    Program& program = *model;
    Trained trained;
    std::vector<float> before = floats_of(program.tensors().gradients());  // of the step before
    BySize others;
    for (int step = options_.first_step(); step < options_.steps; ++step) {
        if (!schedule_.shares.samples.empty()) {
            sum_gradients_of_shares(program, step, others);
        } else {
            sum_gradients(program, step, 0, global_batch(schedule_), micro_batch_size(schedule_));
        }
        if (schedule_.methods.get<Lag>().steps > 0) {
            std::vector<float> made = floats_of(program.tensors().gradients());
            assign(program.tensors().gradients(), before);
            before = std::move(made);
        }
        if (last(step)) trained.gradients = result(program).gradients;
        const bool skipped = options_.skipped.size() > at(step) && options_.skipped[at(step)];
        if (step >= schedule_.methods.get<Lag>().steps && !skipped) update(program);
    }
    trained.weights = result(program).weights;
    return trained;
}

void SingleRank::update(Program& program) const {
    std::map<int, std::vector<float>> kept;  // of layers whose rows are updated as soon as their gradients are made
    for (const RankClass& rank_class : schedule_.classes) {
        for (std::size_t i = 0; i < rank_class.part.network.layers.size(); ++i) {
            const int whole = rank_class.part.origins[i].layer;
            if (!updates_directly(rank_class.part.network.layers[i].op)) continue;
            kept[whole] = floats_of(program.tensors().layer(whole).weights);
        }
    }
    for (ReadyStep& ready : program.steps()) {
        if (std::holds_alternative<Update>(ready.step->action)) program.compute(ready, 0, 0);
    }
    for (auto& [layer, weights] : kept) {
        const std::vector<float> gradients = floats_of(program.tensors().layer(layer).gradients);
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] -= options_.hyperparameters.learning_rate * gradients[i];
        assign(program.tensors().layer(layer).weights, weights);
    }
    program.end_step();  // the weights are read now
    round_kept(program);
}

bool SingleRank::asynchronous() const {
    return std::ranges::any_of(schedule_.classes, [](const RankClass& c) { return updates_each_micro_batch(c); });
}

void SingleRank::put_stale_weights(Program& program, const std::vector<std::vector<float>>& after, int m) const {
    const int pipe = axis_index(schedule_.mesh, "pipe");
    const auto stages = static_cast<int>(pipe < 0 ? 1 : size_of(schedule_.mesh, pipe));
    for (RankIndex rank{0}; rank < ranks(schedule_.mesh); ++rank) {
        const StageIndex stage{pipe < 0 ? 0 : place_on(schedule_.mesh, pipe, rank)};
        const std::vector<float>& version = after[at(std::max(0, m - (stages - 1 - stage)))];
        for (const Origin& origin : schedule_.classes[at(class_of(schedule_, rank))].part.origins) {
            if (origin.layer < 0) continue;
            const std::span<float> own = program.tensors().layer(origin.layer).weights;
            if (own.empty()) continue;
            const auto from = version.begin() + (own.data() - program.tensors().weights().data());
            std::copy_n(from, own.size(), own.begin());
        }
    }
}

void SingleRank::sum_gradients(Program& program, int step, std::int64_t first, std::int64_t end,
                               std::int64_t apart) const {
    const std::span<float> gradients = program.tensors().gradients();
    std::vector<double> sum(gradients.size());
    int count = 0;
    for (; first < end; first += apart, ++count) {
        options_.load(step, first, program);
        program.compute_gradients(options_.dropout_seed(step), first);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[i];
    }
    // Each micro-batch's loss was a mean over its own samples.
    std::ranges::transform(sum, gradients.begin(), [&](double value) { return static_cast<float>(value / count); });
}

std::vector<float> SingleRank::gradients_of_some(Program& program, int step, std::int64_t shard, std::int64_t first,
                                                 std::int64_t end, std::int64_t apart) const {
    const std::int64_t size = samples_of(schedule_, shard) / schedule_.micro_batches;
    BySize others;
    const bool usual = schedule_.shares.samples.empty();
    Program& own = usual ? program : of_size(size, others);
    if (!usual) assign(own.tensors().weights(), floats_of(program.tensors().weights()));
    const std::int64_t begin = first_sample(schedule_, shard);
    sum_gradients(own, step, begin + first * size, begin + end * size, apart * size);
    return floats_of(own.tensors().gradients());
}

std::vector<float> SingleRank::gradients_of_shard(Program& program, int step, std::int64_t shard,
                                                  std::optional<int> micro_batch) const {
    const std::int64_t first = micro_batch.value_or(0);
    return gradients_of_some(program, step, shard, first, micro_batch ? first + 1 : schedule_.micro_batches, 1);
}

std::int64_t SingleRank::turns() const {
    std::int64_t all = 1;
    for (const int copies : schedule_.stage_copies) all = std::lcm(all, std::int64_t{copies});
    return all;
}

std::vector<float> SingleRank::gradients_of_part(Program& program, int step, std::int64_t part) const {
    return gradients_of_some(program, step, part / turns(), part % turns(), schedule_.micro_batches, turns());
}

std::set<std::int64_t> SingleRank::parts_in(int axis, RankIndex rank) const {
    const StagePlace place = stage_of(schedule_, rank);
    std::set<std::int64_t> found;
    for (const std::int64_t shard : shards_in(schedule_.mesh, axis, rank)) {
        for (std::int64_t turn = place.copy; turn < turns(); turn += place.copies) found.insert(shard * turns() + turn);
    }
    return found;
}

BatchGradients SingleRank::gradients_of_parts(Program& program, int step, std::optional<int> micro_batch,
                                              int perturbation) const {
    require(!micro_batch || turns() == 1, "copies of a stage have no micro-batches that weights are updated after");
    const auto of_all = [&] {
        std::vector<std::vector<float>> made;
        for (std::int64_t part = 0; part < parts(); ++part)
            made.push_back(micro_batch ? gradients_of_shard(program, step, part, micro_batch)
                                       : gradients_of_part(program, step, part));
        return made;
    };
    BatchGradients gradients{of_all()};
    const bool turned = !options_.sent.empty() && perturbation == 0 && rounds_apart(schedule_);
    const std::vector<float> weights = floats_of(program.tensors().weights());
    for (int i = 1; i <= perturbations && turned; ++i) {
        perturb(program, key(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(i)));
        gradients.changed.push_back(of_all());
        assign(program.tensors().weights(), weights);
    }
    return gradients;
}

Program& SingleRank::of_size(std::int64_t size, BySize& others) const {
    std::unique_ptr<Sized>& sized = others[size];
    if (sized != nullptr) return *sized->program;
    sized = std::make_unique<Sized>(single_);
    sized->schedule.batch_per_rank = size;
    for (Step& step : sized->schedule.classes.front().steps) {
        if (auto* compute = std::get_if<Compute>(&step.action)) compute->problem.batch = size;
    }
    sized->program = std::make_unique<Program>(sized->schedule, RankIndex{0}, options_.selection, options_.weights_seed,
                                               options_.hyperparameters);
    return *sized->program;
}

void SingleRank::sum_gradients_of_shares(Program& program, int step, BySize& others) const {
    const std::span<float> gradients = program.tensors().gradients();
    std::vector<double> sum(gradients.size());
    for (std::int64_t shard = 0; shard < shards(schedule_.mesh); ++shard) {
        const std::int64_t size = samples_of(schedule_, shard) / schedule_.micro_batches;
        Program& own = of_size(size, others);
        assign(own.tensors().weights(), program.tensors().weights());
        for (int m = 0; m < schedule_.micro_batches; ++m) {
            const std::int64_t first = first_sample(schedule_, shard) + m * size;
            options_.load(step, first, own);
            own.compute_gradients(options_.dropout_seed(step), first);
            const std::span<const float> made = own.tensors().gradients();
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(size) * made[i];
        }
    }
    const auto all = static_cast<double>(global_batch(schedule_));
    std::ranges::transform(sum, gradients.begin(), [&](double value) { return static_cast<float>(value / all); });
}

Trained SingleRank::result(Program& program) const {
    Trained trained;
    for (int i = 0; i < static_cast<int>(single_.network.layers.size()); ++i) {
        trained.gradients.push_back(floats_of(program.tensors().layer(i).gradients));
        trained.weights.push_back(floats_of(program.tensors().layer(i).weights));
    }
    return trained;
}

}  // namespace rehearse::run
