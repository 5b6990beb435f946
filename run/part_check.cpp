// SPDX-License-Identifier: Apache-2.0
#include "run/part_check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/precision.hpp"
#include "core/weight_versions.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

constexpr int perturbations = 3;
constexpr double allowance = 8, least = 0x1p-18;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Gradients of the last step and weights after it, layer by layer of the whole network.
struct Trained {
    std::vector<std::vector<float>> gradients, weights;
};

class Alone {
public:
    Alone(const Schedule& schedule, const Schedule& alone, const AloneOptions& options)
        : schedule_(schedule), alone_(alone), options_(options) {}

    Trained train(int perturbation) const {
        Program program{alone_, 0, options_.wish, options_.weights_seed, options_.hyperparameters};
        const auto layers = static_cast<int>(alone_.network.layers.size());
        if (perturbation > 0) perturb(program, static_cast<std::uint64_t>(perturbation));
        Trained trained;
        std::vector<float> before(program.tensors().gradients().size());  // of the step before
        for (int step = 0; step < options_.steps; ++step) {
            if (asynchronous()) {
                train_asynchronously(program, step);
            } else {
                sum_gradients(program, step, 0, global_batch(schedule_), micro_batch_size(schedule_));
            }
            if (schedule_.lag > 0) {
                std::vector<float> made = floats_of(program.tensors().gradients());
                assign(program.tensors().gradients(), before);
                before = std::move(made);
            }
            if (step + 1 == options_.steps) trained.gradients = of_layers(program, layers, &LayerTensors::gradients);
            const bool skipped = options_.skipped.size() > at(step) && options_.skipped[at(step)];
            if (!asynchronous() && step >= schedule_.lag && !skipped) update(program);
        }
        trained.weights = of_layers(program, layers, &LayerTensors::weights);
        return trained;
    }

private:
    static void update(Program& program) {
        for (ReadyStep& ready : program.steps()) {
            if (std::holds_alternative<Update>(ready.step->action)) program.compute(ready, 0, 0);
        }
        program.end_step();  // the weights are read now
    }

    bool asynchronous() const {
        return std::ranges::any_of(schedule_.classes, [](const RankClass& c) { return updates_each_micro_batch(c); });
    }

    // What PipeDream means, written out (Narayanan et al. 2019, section 3.3): the gradients of micro-batch m, on the
    // samples that all copies of the network take as their m-th, are those at the weights that stage s has after
    // max(0, m - (stages - 1 - s)) updates; they are the next update of every stage.
    void train_asynchronously(Program& program, int step) const {
        const std::span<float> weights = program.tensors().weights();
        std::vector<std::vector<float>> after;  // so many updates, all latest weights
        after.emplace_back(weights.begin(), weights.end());
        const std::int64_t size = micro_batch_size(schedule_);
        for (int m = 0; m < schedule_.micro_batches; ++m) {
            put_stale_weights(program, after, m);
            sum_gradients(program, step, m * size, global_batch(schedule_), schedule_.batch_per_rank);
            std::ranges::copy(after.back(), weights.begin());
            update(program);
            after.emplace_back(weights.begin(), weights.end());
        }
    }

    void put_stale_weights(Program& program, const std::vector<std::vector<float>>& after, int m) const {
        const int pipe = axis_index(schedule_.mesh, "pipe");
        const auto stages = static_cast<int>(pipe < 0 ? 1 : size_of(schedule_.mesh, pipe));
        for (std::int64_t rank = 0; rank < ranks(schedule_.mesh); ++rank) {
            const int stage = pipe < 0 ? 0 : static_cast<int>(place_on(schedule_.mesh, pipe, rank));
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

    // Of as many samples as a micro-batch has, from `first` and every `apart` further on, to the end of the batch.
    void sum_gradients(Program& program, int step, std::int64_t first, std::int64_t end, std::int64_t apart) const {
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

    void perturb(Program& program, std::uint64_t seed) const {
        Uniform random{key(seed, 0x5EED)};
        for (std::size_t i = 0; i < alone_.network.layers.size(); ++i) {
            const Op& op = alone_.network.layers[i].op;
            const std::int64_t inner = parameters(op) == 0 ? 1 : parameters(op) / output_channels(op);
            const DataType type = compute_type(schedule_.precision);
            const double reach = type == DataType::f32
                                     ? std::sqrt(static_cast<double>(std::max<std::int64_t>(inner, 1))) * 0x1p-24
                                     : 3 * unit_roundoff(type);
            for (float& weight : program.tensors().layer(static_cast<int>(i)).weights) {
                weight *= static_cast<float>(1 + reach * (2 * random.next() - 1));
            }
        }
    }

    static std::int64_t output_channels(const Op& op) {
        const Shape shape = output_shape(op);
        return std::max<std::int64_t>(shape.size() >= 3 ? shape.front() : shape.back(), 1);
    }

    static std::vector<std::vector<float>> of_layers(Program& program, int layers, kernels::View LayerTensors::*which) {
        std::vector<std::vector<float>> all;
        for (int i = 0; i < layers; ++i) {
            all.push_back(floats_of(program.tensors().layer(i).*which));
        }
        return all;
    }

    const Schedule& schedule_;
    const Schedule& alone_;
    const AloneOptions& options_;
};

double distance(std::span<const float> a, std::span<const float> b, std::span<const std::int64_t> places) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const double expected = b[at(places[i])];
        apart += std::pow(a[i] - expected, 2);
        size += expected * expected;
    }
    if (apart == 0) return 0;
    return size > 0 && std::isfinite(apart) ? std::sqrt(apart / size) : 1;
}

std::vector<float> taken(std::span<const float> from, std::span<const std::int64_t> places) {
    std::vector<float> piece;
    for (const std::int64_t place : places) piece.push_back(from[at(place)]);
    return piece;
}

}  // namespace

bool is_whole(const Schedule& schedule) {
    return schedule.classes.size() == 1 && !gathers_weights(schedule.classes[0]) &&
           !updates_each_micro_batch(schedule.classes[0]) &&
           std::ranges::equal(schedule.classes[0].part.network.layers, schedule.network.layers, {}, &Layer::op,
                              &Layer::op);
}

GradientCheck check_part(const Schedule& schedule, std::int64_t rank, Program& own, const Schedule& alone,
                         const AloneOptions& options) {
    const Alone whole{schedule, alone, options};
    const Trained expected = whole.train(0);
    std::vector<Trained> changed;
    for (int i = 1; i <= perturbations; ++i) changed.push_back(whole.train(i));
    const std::vector<std::int64_t> coordinates = rehearse::coordinates(schedule.mesh, rank);
    // What is sent in 16 bits is rounded once by each rank, and by each of their additions.
    double rounding = 0;
    for (const Step& step : schedule.classes[at(class_of(schedule, rank))].steps) {
        const auto* sum = std::get_if<Communicate>(&step.action);
        if (sum == nullptr || sum->bucket < 0 || sum->type == DataType::f32) continue;
        rounding = static_cast<double>(size_of(schedule.mesh, sum->axis)) * unit_roundoff(sum->type);
    }
    const double floor = std::max(least, rounding);
    GradientCheck worst{0, floor};
    const auto compare = [&](std::vector<std::vector<float>> Trained::*which, std::span<const float> mine, int layer,
                             std::span<const std::int64_t> places) {
        const std::vector<float>& right = (expected.*which)[at(layer)];
        double reach = 0;
        for (const Trained& other : changed) {
            reach = std::max(reach, distance(taken((other.*which)[at(layer)], places), right, places));
        }
        const double error = distance(mine, right, places), tolerance = std::max(floor, allowance * reach);
        if (error / tolerance > worst.error / worst.tolerance) worst = {error, tolerance};
    };
    for (std::size_t i = 0; i < own.part().network.layers.size(); ++i) {
        const Origin& origin = own.part().origins[i];
        const std::vector<std::int64_t> places =
            indices_of_weights(schedule, origin, own.part().network.layers[i].op, coordinates);
        if (places.empty()) continue;
        const LayerTensors mine = own.tensors().layer(static_cast<int>(i));
        std::vector<float> gradients = floats_of(own.tensors().parameters_of(static_cast<int>(i)).applied);
        for (float& gradient : gradients) gradient /= options.scale;
        const bool skipped = !options.skipped.empty() && options.skipped.back();  // then they are not finite
        if (!skipped) compare(&Trained::gradients, gradients, origin.layer, places);
        compare(&Trained::weights, floats_of(mine.weights), origin.layer, places);
    }
    return worst;
}

}  // namespace rehearse::run
