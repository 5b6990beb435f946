// SPDX-License-Identifier: Apache-2.0
#include "run/part_check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
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
        for (int step = 0; step < options_.steps; ++step) {
            sum_gradients(program, step);
            if (step + 1 == options_.steps) trained.gradients = of_layers(program, layers, &LayerTensors::gradients);
            for (ReadyStep& ready : program.steps()) {
                if (std::holds_alternative<Update>(ready.step->action)) program.compute(ready, 0, 0);
            }
        }
        trained.weights = of_layers(program, layers, &LayerTensors::weights);
        return trained;
    }

private:
    void sum_gradients(Program& program, int step) const {
        const std::span<float> gradients = program.tensors().gradients();
        std::vector<double> sum(gradients.size());
        const std::int64_t size = micro_batch_size(schedule_);
        for (std::int64_t first = 0; first < global_batch(schedule_); first += size) {
            options_.load(step, first, program);
            program.compute_gradients(options_.dropout_seed(step), first);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[i];
        }
        // Each micro-batch's loss was a mean over its own samples.
        const double share = static_cast<double>(size) / static_cast<double>(global_batch(schedule_));
        std::ranges::transform(sum, gradients.begin(), [&](double value) { return static_cast<float>(share * value); });
    }

    void perturb(Program& program, std::uint64_t seed) const {
        Uniform random{key(seed, 0x5EED)};
        for (std::size_t i = 0; i < alone_.network.layers.size(); ++i) {
            const Op& op = alone_.network.layers[i].op;
            const std::int64_t inner = parameters(op) == 0 ? 1 : parameters(op) / output_channels(op);
            const double reach = std::sqrt(static_cast<double>(std::max<std::int64_t>(inner, 1))) * 0x1p-24;
            for (float& weight : program.tensors().layer(static_cast<int>(i)).weights) {
                weight *= static_cast<float>(1 + reach * (2 * random.next() - 1));
            }
        }
    }

    static std::int64_t output_channels(const Op& op) {
        const Shape shape = output_shape(op);
        return std::max<std::int64_t>(shape.size() >= 3 ? shape.front() : shape.back(), 1);
    }

    static std::vector<std::vector<float>> of_layers(Program& program, int layers,
                                                     std::span<float> LayerTensors::*which) {
        std::vector<std::vector<float>> all;
        for (int i = 0; i < layers; ++i) {
            const LayerTensors tensors = program.tensors().layer(i);
            const std::span<float> values = tensors.*which;
            all.emplace_back(values.begin(), values.end());
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
           schedule.classes[0].part.network.layers.size() == schedule.network.layers.size();
}

GradientCheck check_part(const Schedule& schedule, std::int64_t rank, Program& own, const Schedule& alone,
                         const AloneOptions& options) {
    const Alone whole{schedule, alone, options};
    const Trained expected = whole.train(0);
    std::vector<Trained> changed;
    for (int i = 1; i <= perturbations; ++i) changed.push_back(whole.train(i));
    const std::vector<std::int64_t> coordinates = rehearse::coordinates(schedule.mesh, rank);
    GradientCheck worst{0, least};
    const auto compare = [&](std::vector<std::vector<float>> Trained::*which, std::span<const float> mine, int layer,
                             std::span<const std::int64_t> places) {
        const std::vector<float>& right = (expected.*which)[at(layer)];
        double reach = 0;
        for (const Trained& other : changed) {
            reach = std::max(reach, distance(taken((other.*which)[at(layer)], places), right, places));
        }
        const double error = distance(mine, right, places), tolerance = std::max(least, allowance * reach);
        if (error / tolerance > worst.error / worst.tolerance) worst = {error, tolerance};
    };
    for (std::size_t i = 0; i < own.part().network.layers.size(); ++i) {
        const Origin& origin = own.part().origins[i];
        const std::vector<std::int64_t> places =
            indices_of_weights(schedule, origin, own.part().network.layers[i].op, coordinates);
        if (places.empty()) continue;
        const LayerTensors mine = own.tensors().layer(static_cast<int>(i));
        compare(&Trained::gradients, mine.gradients, origin.layer, places);
        compare(&Trained::weights, mine.weights, origin.layer, places);
    }
    return worst;
}

}  // namespace rehearse::run
