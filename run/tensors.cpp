// SPDX-License-Identifier: Apache-2.0
#include "run/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numbers>

#include "core/error.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

constexpr std::int64_t line = 64 / sizeof(float);
constexpr std::align_val_t alignment{64};

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Whether the gradient of a layer's output is needed: it, or a layer before it, has weights.
std::vector<bool> wanted_gradients(const Network& network) {
    std::vector<bool> wanted = needs_input_gradient(network);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        wanted[i] = wanted[i] || parameters(network.layers[i].op) > 0;
    }
    return wanted;
}

std::int64_t fan_in(const Op& op) {
    if (const auto* conv = std::get_if<Conv2d>(&op)) {
        return conv->channels / conv->groups * conv->window.kernel_h * conv->window.kernel_w;
    }
    if (const auto* dense = std::get_if<MatMul>(&op)) return dense->k;
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

Slice Arena::reserve(std::int64_t count) {
    const Slice slice{size_, count};
    size_ += (count + line - 1) / line * line;
    return slice;
}

void Arena::allocate() {
    try {
        memory_.reset(new (alignment) float[static_cast<std::size_t>(size_)]());
    } catch (const std::bad_alloc&) {
        throw InfeasibleError(
            fmt::format("this rank needs {} for weights and activations, more than there is: "
                        "use a smaller batch",
                        to_string(Bytes{static_cast<double>(size_) * sizeof(float)})));
    }
}

void Arena::Free::operator()(float* memory) const { ::operator delete[](memory, alignment); }

std::span<float> Arena::at(Slice slice) const {
    return {memory_.get() + slice.offset, static_cast<std::size_t>(slice.count)};
}

void initialise(const Op& op, std::uint64_t seed, std::span<float> weights) {
    std::size_t begin = 0;
    for (const WeightTensor& tensor : rehearse::weights(op)) {
        const std::span<float> values = weights.subspan(begin, at(elements(tensor.shape)));
        if (tensor.name == "weights") {
            fill_normal(seed, std::sqrt(2.0 / static_cast<double>(fan_in(op))), values);
        } else {
            std::ranges::fill(values, tensor.name == "gamma" ? 1.0F : 0.0F);
        }
        begin += values.size();
    }
}

Tensors::Tensors(const Schedule& schedule, const std::vector<const kernels::Backend*>& backends, std::uint64_t seed)
    : labels_(at(schedule.batch_per_rank)) {
    const Network& network = schedule.network;
    const std::vector<bool> wanted = wanted_gradients(network);
    std::vector<Place> places;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        const bool view = std::holds_alternative<Flatten>(layer.op);
        stored_as_.push_back(view ? stored_as_[at(layer.inputs.front())] : static_cast<int>(i));
        const std::int64_t count = elements(layer.output) * schedule.batch_per_rank;
        const auto* norm = std::get_if<BatchNorm>(&layer.op);
        Place place;
        place.output = view ? places[at(stored_as_[i])].output : arena_.reserve(count);
        place.diff = !wanted[i] ? Slice{} : view ? places[at(stored_as_[i])].diff : arena_.reserve(count);
        place.workspace =
            arena_.reserve(backends[i] == nullptr ? 0 : backends[i]->workspace(layer.op, schedule.batch_per_rank));
        place.state = arena_.reserve(norm == nullptr ? 0 : 2 * norm->channels);
        places.push_back(place);
    }
    const std::int64_t all = parameters(network);
    const Slice weights = arena_.reserve(all), gradients = arena_.reserve(all), momentum = arena_.reserve(all);
    arena_.allocate();

    for (const Place& place : places) {
        layers_.push_back({.output = arena_.at(place.output),
                           .diff = arena_.at(place.diff),
                           .workspace = arena_.at(place.workspace),
                           .state = arena_.at(place.state)});
        // Running mean 0, running variance 1.
        const std::span<float> state = layers_.back().state;
        std::ranges::fill(state.subspan(state.size() / 2), 1.0F);
    }
    weights_ = arena_.at(weights);
    gradients_ = arena_.at(gradients);
    place_parameters(schedule, arena_.at(momentum));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        initialise(network.layers[i].op, key(seed, layer_key(network.layers[i].name)), layers_[i].weights);
    }
}

void Tensors::place_parameters(const Schedule& schedule, std::span<float> momentum) {
    std::size_t begin = 0;
    for (const Bucket& bucket : schedule.buckets) {
        const auto size = at(bucket.elements);
        require(begin + size <= weights_.size(), "buckets hold each layer once");
        buckets_.push_back(
            {weights_.subspan(begin, size), gradients_.subspan(begin, size), momentum.subspan(begin, size)});
        std::size_t next = begin;
        for (const int index : bucket.layers) {
            const auto count = at(parameters(schedule.network.layers[at(index)].op));
            layers_[at(index)].weights = weights_.subspan(next, count);
            layers_[at(index)].gradients = gradients_.subspan(next, count);
            next += count;
        }
        begin += size;
        require(next == begin, "a bucket is as large as its layers");
    }
    require(begin == weights_.size(), "every layer with weights is in a bucket");
}

}  // namespace rehearse::run
