// SPDX-License-Identifier: Apache-2.0
#include "run/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numbers>

#include "core/error.hpp"
#include "core/gathered_again.hpp"
#include "core/index.hpp"
#include "core/precision.hpp"
#include "kernels/convert.hpp"
#include "kernels/memory.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

constexpr std::int64_t line = 64 / sizeof(float);

bool moves(const Op& op, Movement movement) {
    const auto* communication = std::get_if<Communication>(&op);
    return communication != nullptr && communication->movement == movement;
}

bool is_integers(const Op& op) {
    const auto* input = std::get_if<Input>(&op);
    return input != nullptr && input->vocabulary > 0;
}

// Whether the gradient of a layer's output is needed: it, or a layer before it (on any rank), has weights.
std::vector<bool> wanted_gradients(const Network& network) {
    std::vector<bool> wanted = needs_input_gradient(network);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const Op& op = network.layers[i].op;
        wanted[i] =
            wanted[i] || parameters(op) > 0 || (moves(op, Movement::receive) && std::get<Communication>(op).gradient);
    }
    return wanted;
}

std::int64_t fan_in(const Op& op) {
    if (const auto* conv = std::get_if<Conv>(&op)) return conv->channels / conv->groups * conv->window.taps();
    if (const auto* conv = std::get_if<ConvTranspose>(&op)) {  // of a pixel that meets no more taps than most
        const Window& w = conv->window;
        const std::int64_t met = w.taps() / (w.stride_d * w.stride_h * w.stride_w);
        return conv->channels / conv->groups * std::max<std::int64_t>(1, met);
    }
    if (const auto* dense = std::get_if<MatMul>(&op)) return dense->k;
    if (const auto* experts = std::get_if<GroupedMatMul>(&op)) return experts->k;
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

Slice Arena::reserve(std::int64_t count, DataType type) {
    const Slice slice{size_, count, type};
    const std::int64_t floats = type == DataType::f32 ? count : (count + 1) / 2;
    size_ += (floats + line - 1) / line * line;
    return slice;
}

void Arena::allocate(kernels::Device* device) {
    if (device != nullptr) {
        const kernels::Device::Memory memory = device->allocate(static_cast<std::size_t>(size_) * sizeof(float));
        memory_ = {memory, reinterpret_cast<float*>(memory.get())};
        return;
    }
    try {
        const auto bytes = static_cast<std::size_t>(size_) * sizeof(float);
        const std::shared_ptr<std::byte> memory = kernels::allocate_host(bytes);
        memory_ = {memory, reinterpret_cast<float*>(memory.get())};
        std::fill_n(memory_.get(), size_, 0.0F);
    } catch (const std::bad_alloc&) {
        throw InfeasibleError(
            fmt::format("this rank needs {} for weights and activations, more than there is: "
                        "use a smaller batch",
                        to_string(Bytes{static_cast<double>(size_) * sizeof(float)})));
    }
}

std::span<float> Arena::at(Slice slice) const {
    return {memory_.get() + slice.offset, static_cast<std::size_t>(slice.count)};
}

kernels::View Arena::view(Slice slice) const {
    return {memory_.get() + slice.offset, static_cast<std::size_t>(slice.count), slice.type};
}

std::vector<float> floats_of(kernels::ConstView values) {
    if (values.type() == DataType::f32) return {values.begin(), values.end()};
    std::vector<float> floats(values.size());
    kernels::convert(values, floats);
    return floats;
}

const SoftmaxLoss& loss_of(const Network& network) {
    for (const Layer& layer : network.layers) {
        if (const auto* loss = std::get_if<SoftmaxLoss>(&layer.op)) return *loss;
    }
    throw InputError(fmt::format("network '{}' does not end in a loss: there is nothing to train for", network.name));
}

void initialise(const Op& op, std::uint64_t seed, std::span<float> weights) {
    constexpr double table_deviation = 0.02;
    if (reads_integers(op)) return fill_normal(seed, table_deviation, weights);
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

void Tensors::find_views(const Network& network) {
    const std::vector<std::vector<int>> readers = consumers(network);
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        const bool handed = moves(layer.op, Movement::copy) || moves(layer.op, Movement::send);
        const bool view = handed || std::holds_alternative<Flatten>(layer.op) || moves(layer.op, Movement::sum);
        stored_as_.push_back(view ? stored_as_[at(layer.inputs.front())] : static_cast<int>(i));
        const bool shared = handed && readers[at(layer.inputs.front())].size() > 1;
        diff_stored_as_.push_back(view && !shared ? diff_stored_as_[at(layer.inputs.front())] : static_cast<int>(i));
    }
}

Tensors::Tensors(const Schedule& schedule, const RankClass& rank_class, std::int64_t rank,
                 const std::vector<const kernels::Backend*>& backends, std::uint64_t seed, kernels::Device* device)
    : slots_(rank_class.slots), micro_batches_(schedule.micro_batches), count_(rank_class.part.network.layers.size()) {
    const Network& network = rank_class.part.network;
    const std::int64_t batch = micro_batch_size(schedule, rank_class);
    const DataType type = compute_type(schedule.precision), update = update_type(schedule.precision);
    const std::vector<bool> wanted = wanted_gradients(network);
    find_views(network);
    reserve_integers(schedule, network, batch_of(schedule, rank_class));
    const bool has_input = std::holds_alternative<Input>(network.layers.front().op);
    const bool has_numbers = has_input && !is_integers(network.layers.front().op);
    const Slice input =
        arena_.reserve(has_numbers ? elements(network.layers.front().output) * batch_of(schedule, rank_class) : 0);
    const Slice read_input = type == DataType::f32 ? input : arena_.reserve(input.count, type);
    std::int64_t most_gathered = 0;
    for (const Layer& layer : network.layers) {
        if (gathers_again(layer)) most_gathered = std::max(most_gathered, elements(layer.output) * batch);
    }
    const Slice gathered = arena_.reserve(most_gathered, type);  // of each layer in turn: one is read at a time
    std::vector<Place> places;
    for (int slot = 0; slot < slots_; ++slot) {
        const std::size_t first = places.size();
        for (std::size_t i = 0; i < count_; ++i) {
            const Layer& layer = network.layers[i];
            const std::int64_t count = is_integers(layer.op) ? 0 : elements(layer.output) * batch;
            const auto* norm = std::get_if<BatchNorm>(&layer.op);
            const bool own_output = stored_as_[i] == static_cast<int>(i);
            const bool own_diff = diff_stored_as_[i] == static_cast<int>(i);
            Place place;
            if (gathers_again(layer)) {
                place.output = {gathered.offset, count, type};
            } else if (i > 0 || !has_input) {
                place.output = own_output ? arena_.reserve(count, compute_type(schedule.precision, layer.op))
                                          : places[first + at(stored_as_[i])].output;
            }
            if (wanted[i]) {
                place.diff = own_diff ? arena_.reserve(count, compute_type(schedule.precision, layer.op))
                                      : places[first + at(diff_stored_as_[i])].diff;
            }
            place.workspace = arena_.reserve(backends[i] == nullptr ? 0 : backends[i]->workspace(layer.op, batch));
            place.state = slot > 0 ? places[i].state : arena_.reserve(norm == nullptr ? 0 : 2 * norm->channels);
            if (slot > 0) place.tied_gradient = places[i].tied_gradient;
            if (slot == 0 && layer.weights_of >= 0)
                place.tied_gradient = arena_.reserve(weights_read(layer.op), wire_type(schedule.precision));
            places.push_back(place);
        }
    }
    const std::int64_t all = parameters(network);
    const Slice weights = arena_.reserve(all, update), momentum = arena_.reserve(all, update);
    const Slice gradients = arena_.reserve(all, wire_type(schedule.precision));
    const Slice second_moment = arena_.reserve(moments(schedule.optimizer) > 1 ? all : 0, update);
    const Slice applied = schedule.lag == 0 ? gradients : arena_.reserve(all, wire_type(schedule.precision));
    const Slice copy = update == type ? weights : arena_.reserve(all, type);
    arena_.allocate(device);
    labels_ = integers(label_slice_);
    indices_ = integers(index_slice_);

    for (const Place& place : places) {
        layers_.push_back({.output = arena_.view(place.output),
                           .diff = arena_.view(place.diff),
                           .workspace = arena_.at(place.workspace),
                           .state = arena_.at(place.state),
                           .gradients = arena_.view(place.tied_gradient)});
        // Running mean 0, running variance 1.
        const std::span<float> state = layers_.back().state;
        std::ranges::fill(state.subspan(state.size() / 2), 1.0F);
    }
    weights_ = arena_.view(weights);
    copy_ = arena_.view(copy);
    gradients_ = arena_.view(gradients);
    applied_ = arena_.view(applied);
    momentum_ = arena_.view(momentum);
    second_moment_ = arena_.view(second_moment);
    input_ = arena_.at(input);
    read_input_ = arena_.view(read_input);
    place_parameters(rank_class.part);
    initialise_parameters(schedule, rank_class.part, rank, seed);
    share_weights(network);
    round_weights();
}

void Tensors::round_input() const {
    if (read_input_.type() != DataType::f32) kernels::convert(input_, read_input_);
}

void Tensors::round_weights() const {
    if (copy_.bytes() != weights_.bytes()) kernels::convert(weights_, copy_);
}

// Labels are wherever the loss may be, ids where they are read.
void Tensors::reserve_integers(const Schedule& schedule, const Network& network, std::int64_t batch) {
    static_assert(sizeof(std::int32_t) == sizeof(float), "an arena's unit");
    SoftmaxLoss loss = loss_of(schedule.network);
    for (const Layer& layer : network.layers) {
        if (const auto* own = std::get_if<SoftmaxLoss>(&layer.op)) loss.image = own->image;  // this rank's block
    }
    label_slice_ = arena_.reserve(batch * loss.rows * elements(loss.image));
    for (const Layer& layer : network.layers) {
        if (is_integers(layer.op)) index_slice_ = arena_.reserve(batch * elements(layer.output));
    }
}

std::span<std::int32_t> Tensors::integers(Slice slice) const {
    return {reinterpret_cast<std::int32_t*>(arena_.at(slice).data()), at(slice.count)};
}

void Tensors::share_weights(const Network& network) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const Layer& layer = network.layers[i % count_];
        if (layer.weights_of < 0) continue;
        layers_[i].weights = layers_[at(layer.weights_of)].weights.first(at(weights_read(layer.op)));
    }
}

// Each layer of the whole network is drawn as a whole, then cut.
void Tensors::initialise_parameters(const Schedule& schedule, const Part& part, std::int64_t rank, std::uint64_t seed) {
    const std::vector<std::int64_t> coordinates = rehearse::coordinates(schedule.mesh, rank);
    for (std::size_t i = 0; i < count_; ++i) {
        const Origin& origin = part.origins[i];
        if (origin.layer < 0 || layers_[i].weights.empty()) continue;
        const Layer& whole = schedule.network.layers[at(origin.layer)];
        const std::uint64_t own = key(seed, layer_key(whole.name));
        if (origin.cuts.empty() && origin.tensor == 0 && whole.op == part.network.layers[i].op) {
            std::vector<float> drawn(layers_[i].weights.size());
            initialise(whole.op, own, drawn);
            assign(parameters_of(static_cast<int>(i)).weights, drawn);
            continue;
        }
        std::vector<float> drawn(at(parameters(whole.op))), kept;
        initialise(whole.op, own, drawn);
        for (const std::int64_t index : indices_of_weights(schedule, origin, part.network.layers[i].op, coordinates)) {
            kept.push_back(index == padding ? 0 : drawn[at(index)]);
        }
        assign(parameters_of(static_cast<int>(i)).weights, kept);
    }
}

Tensors::Parameters Tensors::parameters_of(int layer) const {
    const kernels::View read = layers_[at(layer)].weights;
    const std::ptrdiff_t bytes = static_cast<std::byte*>(read.bytes()) - static_cast<std::byte*>(copy_.bytes());
    const auto first = static_cast<std::size_t>(bytes / static_cast<std::ptrdiff_t>(size_of(copy_.type()).value));
    const auto of = [&](kernels::View all) { return all.empty() ? all : all.subspan(first, read.size()); };
    return {of(weights_), of(momentum_), of(second_moment_), of(gradients_), of(applied_)};
}

void Tensors::keep_gradients() const { copy(gradients_, applied_); }

void assign(kernels::View to, std::span<const float> values) {
    if (to.type() == DataType::f32) {
        std::ranges::copy(values, to.begin());
    } else {
        kernels::convert(values, to);
    }
}

// The weights of layer i are those of every slot's.
void Tensors::place_parameters(const Part& part) {
    std::size_t begin = 0;
    for (const Bucket& bucket : part.buckets) {
        const auto size = at(bucket.elements);
        require(begin + size <= weights_.size(), "buckets hold each layer once");
        buckets_.push_back({weights_.subspan(begin, size), gradients_.subspan(begin, size),
                            momentum_.subspan(begin, size), applied_.subspan(begin, size)});
        if (!second_moment_.empty()) buckets_.back().second_moment = second_moment_.subspan(begin, size);
        if (copy_.bytes() != weights_.bytes()) buckets_.back().copy = copy_.subspan(begin, size);
        std::size_t next = begin;
        for (const int index : bucket.layers) {
            const Op& op = part.network.layers[at(index)].op;
            for (const WeightTensor& tensor : rehearse::weights(op)) {
                buckets_.back().tensor_sizes.push_back(elements(tensor.shape));
            }
            const auto count = at(parameters(op));
            for (int slot = 0; slot < slots_; ++slot) {
                LayerTensors& layer = layers_[at(slot) * count_ + at(index)];
                layer.weights = copy_.subspan(next, count);
                layer.gradients = gradients_.subspan(next, count);
            }
            next += count;
        }
        begin += size;
        require(next == begin, "a bucket is as large as its layers");
    }
    require(begin == weights_.size(), "every layer with weights is in a bucket");
}

LayerTensors Tensors::layer(int index, int micro_batch) const {
    LayerTensors found = layers_[at(micro_batch % slots_) * count_ + at(index)];
    if (stored_as(index) == 0 && !input_.empty()) {
        const std::size_t size = input_.size() / at(micro_batches_);
        found.output = read_input_.subspan(at(micro_batch) * size, size);
    }
    return found;
}

std::span<std::int32_t> Tensors::indices(int micro_batch) {
    const std::size_t size = indices_.size() / at(micro_batches_);
    return indices_.subspan(at(micro_batch) * size, size);
}

std::span<std::int32_t> Tensors::labels(int micro_batch) {
    const std::size_t size = labels_.size() / at(micro_batches_);
    return labels_.subspan(at(micro_batch) * size, size);
}

}  // namespace rehearse::run
