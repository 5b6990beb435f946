// SPDX-License-Identifier: Apache-2.0
// The first weights of a training.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

namespace {

std::int64_t fan_in(const Op& op) {
    if (const auto* conv = std::get_if<Conv>(&op)) return conv->channels / conv->groups * conv->window.taps();
    if (const auto* conv = std::get_if<ConvTranspose>(&op)) {  // of a pixel that meets no more taps than most
        const Window& w = conv->window;
        const std::int64_t met = w.taps() / (w.stride_d * w.stride_h * w.stride_w);
        return conv->channels / conv->groups * std::max<std::int64_t>(1, met);
    }
    if (const auto* dense = std::get_if<MatMul>(&op)) return dense->k;
    if (const auto* experts = std::get_if<GroupedMatMul>(&op)) return experts->k;
    if (const auto* stack = std::get_if<BatchedMatMul>(&op)) return stack->a.back();
    if (const auto* cells = std::get_if<Recurrent>(&op)) return cells->inputs + cells->hidden;
    return 1;
}

// Box and Muller 1958.
void fill_normal(std::uint64_t seed, double deviation, std::span<float> values) {
    Uniform random{seed};
    for (float& value : values) {
        const double radius = std::sqrt(-2 * std::log(1 - random.next()));
        value = static_cast<float>(deviation * radius * std::cos(2 * std::numbers::pi * random.next()));
    }
}

}  // namespace

void initialise(const Op& op, std::uint64_t seed, std::span<float> weights) {
    constexpr double table_deviation = 0.02;
    const bool general = std::holds_alternative<Elementwise>(op) || std::holds_alternative<Gather>(op) ||
                         std::holds_alternative<Parameter>(op);
    if (reads_integers(op) || general) return fill_normal(seed, table_deviation, weights);
    std::size_t begin = 0;
    for (const WeightTensor& tensor : rehearse::weights(op)) {
        const std::span<float> values = weights.subspan(begin, at(elements(tensor.shape)));
        if (tensor.name == "weights" || tensor.name == "recurrence") {
            fill_normal(seed, std::sqrt(2.0 / static_cast<double>(fan_in(op))), values);
        } else {
            std::ranges::fill(values, tensor.name == "gamma" ? 1.0F : 0.0F);
        }
        begin += values.size();
    }
}

// Each layer of the whole network is drawn as a whole, then cut.
void Tensors::initialise_parameters(const Schedule& schedule, const Part& part, RankIndex rank, std::uint64_t seed) {
    const std::vector<std::int64_t> along = places_on(schedule.mesh, rank);
    for (std::size_t i = 0; i < count_; ++i) {
        const Origin& origin = part.origins[i];
        if (origin.layer < 0 || layers_[i].weights.empty()) continue;
        const Layer& whole = schedule.network.layers[at(origin.layer)];
        const std::uint64_t own = key(seed, layer_key(whole.name));
        const auto draw = [&](std::span<float> weights) {
            if (whole.given == nullptr || whole.given->weights.empty()) return initialise(whole.op, own, weights);
            require(whole.given->weights.size() == weights.size(), "given weights are all of the layer's");
            std::ranges::copy(whole.given->weights, weights.begin());
        };
        if (origin.cuts.empty() && origin.tensor == 0 && whole.op == part.network.layers[i].op) {
            std::vector<float> drawn(layers_[i].weights.size());
            draw(drawn);
            assign(parameters_of(static_cast<int>(i)).weights, drawn);
            continue;
        }
        std::vector<float> drawn(at(parameters(whole.op))), kept;
        draw(drawn);
        for (const std::int64_t index : indices_of_weights(schedule, origin, part.network.layers[i].op, along)) {
            kept.push_back(index == padding ? 0 : drawn[at(index)]);
        }
        assign(parameters_of(static_cast<int>(i)).weights, kept);
    }
}

}  // namespace rehearse::run
