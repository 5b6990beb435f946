// SPDX-License-Identifier: Apache-2.0
#include "run/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/error.hpp"
#include "core/gathered_again.hpp"
#include "core/index.hpp"
#include "core/methods/lag.hpp"
#include "core/precision.hpp"
#include "kernels/convert.hpp"
#include "kernels/memory.hpp"
#include "run/fed_inputs.hpp"
#include "run/pieces.hpp"

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
        wanted[i] = wanted[i] || parameters(op) > 0 || network.layers[i].weights_of >= 0 ||
                    (moves(op, Movement::receive) && std::get<Communication>(op).gradient);
    }
    return wanted;
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
        const std::shared_ptr<std::byte> memory =
            kernels::allocate_zeros(static_cast<std::size_t>(size_) * sizeof(float));
        memory_ = {memory, reinterpret_cast<float*>(memory.get())};
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

const SoftmaxLoss* labelled_loss(const Network& network) {
    bool other = false;
    for (const Layer& layer : network.layers) {
        if (const auto* loss = std::get_if<SoftmaxLoss>(&layer.op)) return loss;
        other = other || is_loss(layer.op);
    }
    if (other) return nullptr;
    throw InputError(
        fmt::format("network '{}' does not end in a loss: there is nothing to train for; scripts/export_onnx.py "
                    "exports one with it (--loss mse|l1|bce|cross-entropy)",
                    network.name));
}

const SoftmaxLoss& loss_of(const Network& network) {
    const SoftmaxLoss* const loss = labelled_loss(network);
    if (loss == nullptr) throw InputError(fmt::format("network '{}' has no loss of labels", network.name));
    return *loss;
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

Tensors::Tensors(const Schedule& schedule, const RankClass& rank_class, RankIndex rank,
                 const std::vector<const kernels::Backend*>& backends, std::uint64_t seed, kernels::Device* device)
    : slots_(rank_class.slots),
      copies_(rank_class.copies),
      micro_batches_(schedule.micro_batches),
      count_(rank_class.part.network.layers.size()) {
    const Network& network = rank_class.part.network;
    const std::int64_t batch = micro_batch_size(schedule, rank_class);
    const DataType type = compute_type(schedule.precision), update = update_type(schedule.precision);
    const std::vector<bool> wanted = wanted_gradients(network);
    find_views(network);
    reserve_labels(schedule, network, batch_of(schedule, rank_class));
    reserve_inputs(network, batch_of(schedule, rank_class), type);
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
            const auto* norm = std::get_if<BatchNorm>(&computed(layer.op));
            const bool own_output = stored_as_[i] == static_cast<int>(i);
            const bool own_diff = diff_stored_as_[i] == static_cast<int>(i);
            Place place;
            if (gathers_again(layer)) {
                place.output = {gathered.offset, count, type};
            } else if (fed_by(static_cast<int>(i)) == nullptr) {
                place.output = own_output ? arena_.reserve(count, compute_type(schedule.precision, layer.op))
                                          : places[first + at(stored_as_[i])].output;
            }
            if (wanted[i]) {
                place.diff = own_diff ? arena_.reserve(count, compute_type(schedule.precision, layer.op))
                                      : places[first + at(diff_stored_as_[i])].diff;
            }
            place.workspace =
                arena_.reserve(backends[i] == nullptr ? 0 : backends[i]->workspace(computed(layer.op), batch));
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
    const Slice applied =
        schedule.methods.get<Lag>().steps == 0 ? gradients : arena_.reserve(all, wire_type(schedule.precision));
    const Slice copy = update == type ? weights : arena_.reserve(all, type);
    arena_.allocate(device);
    integers_.labels = integers(integers_.label_slice);

    const std::vector<std::int64_t> along = places_on(schedule.mesh, rank);
    for (const Place& place : places) {
        layers_.push_back({.output = arena_.view(place.output),
                           .diff = arena_.view(place.diff),
                           .workspace = arena_.at(place.workspace),
                           .state = arena_.at(place.state),
                           .gradients = arena_.view(place.tied_gradient)});
        // Running mean 0, running variance 1.
        const std::span<float> state = layers_.back().state;
        std::ranges::fill(state.subspan(state.size() / 2), 1.0F);
        const Origin& origin = rank_class.part.origins[(layers_.size() - 1) % count_];
        if (origin.layer < 0 || state.empty()) continue;
        const auto& given = schedule.network.layers[at(origin.layer)].given;
        if (given == nullptr || given->state.empty()) continue;
        const auto own = indices_of_statistics(schedule, origin, std::ssize(state) / 2, along);
        for (std::size_t i = 0; i < own.size(); ++i)
            if (own[i] != padding) state[i] = given->state.at(at(own[i]));
    }
    all_.weights = arena_.view(weights);
    all_.copy = arena_.view(copy);
    all_.gradients = arena_.view(gradients);
    all_.applied = arena_.view(applied);
    all_.momentum = arena_.view(momentum);
    all_.second_moment = arena_.view(second_moment);
    place_inputs();
    place_parameters(rank_class.part);
    initialise_parameters(schedule, rank_class.part, rank, seed);
    share_weights(network);
    round_weights();
}

void Tensors::spread_inputs(kernels::Device* device) {
    for (Fed& fed : fed_) {
        if (!fed.own) continue;
        if (fed.integers) {
            gather_input<std::int32_t>(integers_.indices, fed.of, fed.first, fed.ids);
        } else if (fed.read.type() == DataType::f32) {
            gather_input<float>(input_, fed.of, fed.first, fed.read);
        } else if (fed.first == 0 && fed.read.size() == input_.size()) {
            if (device != nullptr) {
                device->copy(kernels::ConstView(input_), fed.read);
            } else {
                kernels::convert(input_, fed.read);
            }
        } else {
            std::vector<float> one(fed.read.size());
            gather_input<float>(input_, fed.of, fed.first, one);
            kernels::convert(one, fed.read);
        }
    }
}

void Tensors::round_weights() const {
    if (all_.copy.bytes() != all_.weights.bytes()) kernels::convert(all_.weights, all_.copy);
}

// Labels are wherever the loss may be.
void Tensors::reserve_labels(const Schedule& schedule, const Network& network, std::int64_t batch) {
    static_assert(sizeof(std::int32_t) == sizeof(float), "an arena's unit");
    const SoftmaxLoss* const asked = labelled_loss(schedule.network);
    if (asked == nullptr) return;
    SoftmaxLoss loss = *asked;
    for (const Layer& layer : network.layers) {
        // This rank's block, or rows.
        if (const auto* own = std::get_if<SoftmaxLoss>(&layer.op)) {
            loss.image = own->image;
            loss.rows = own->rows;
        }
        if (const auto* own = std::get_if<TermsLoss>(&layer.op)) loss.rows = own->rows;
    }
    integers_.label_slice = arena_.reserve(batch * loss.rows * elements(loss.image));
}

void Tensors::reserve_inputs(const Network& network, std::int64_t batch, DataType type) {
    for (const bool of_integers : {false, true}) {
        const std::vector<FedInput> inputs = fed_inputs(network, of_integers);
        std::int64_t all = 0;
        for (const FedInput& input : inputs) all += input.size();
        const Slice together = arena_.reserve(all * batch);
        (of_integers ? integers_.index_slice : input_slice_) = together;
        const bool converted = !of_integers && type != DataType::f32;
        std::int64_t first = 0;
        for (const FedInput& input : inputs) {
            Fed fed{.layer = input.layer, .first = first, .of = all, .integers = of_integers};
            fed.own = inputs.size() > 1 || converted;
            fed.slice = fed.own ? arena_.reserve(input.size() * batch, converted ? type : DataType::f32) : together;
            fed_.push_back(fed);
            first += input.size();
        }
    }
}

void Tensors::place_inputs() {
    input_ = arena_.at(input_slice_);
    integers_.indices = integers(integers_.index_slice);
    for (Fed& fed : fed_) {
        if (fed.integers) fed.ids = integers(fed.slice);
        if (!fed.integers) fed.read = arena_.view(fed.slice);
    }
}

const Tensors::Fed* Tensors::fed_by(int layer) const {
    const auto found = std::ranges::find(fed_, layer, &Fed::layer);
    return found == fed_.end() ? nullptr : &*found;
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

Tensors::Parameters Tensors::parameters_of(int layer) const {
    const kernels::View read = layers_[at(layer)].weights;
    const std::ptrdiff_t bytes = static_cast<std::byte*>(read.bytes()) - static_cast<std::byte*>(all_.copy.bytes());
    const auto first = static_cast<std::size_t>(bytes / static_cast<std::ptrdiff_t>(size_of(all_.copy.type()).value));
    const auto of = [&](kernels::View all) { return all.empty() ? all : all.subspan(first, read.size()); };
    return {of(all_.weights), of(all_.momentum), of(all_.second_moment), of(all_.gradients), of(all_.applied)};
}

void Tensors::touch() const {
    const auto zero = [](kernels::View view) {
        if (!view.empty()) std::memset(view.bytes(), 0, view.size_bytes());
    };
    for (const kernels::View& each : {all_.gradients, all_.applied, all_.momentum, all_.second_moment}) zero(each);
    for (const LayerTensors& layer : layers_) {
        zero(layer.output);
        zero(layer.diff);
        zero(layer.workspace);
    }
}

void Tensors::keep_gradients() const { copy(all_.gradients, all_.applied); }

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
        require(begin + size <= all_.weights.size(), "buckets hold each layer once");
        buckets_.push_back({all_.weights.subspan(begin, size), all_.gradients.subspan(begin, size),
                            all_.momentum.subspan(begin, size), all_.applied.subspan(begin, size)});
        if (!all_.second_moment.empty()) buckets_.back().second_moment = all_.second_moment.subspan(begin, size);
        if (all_.copy.bytes() != all_.weights.bytes()) buckets_.back().copy = all_.copy.subspan(begin, size);
        std::size_t next = begin;
        for (const int index : bucket.layers) {
            const Op& op = part.network.layers[at(index)].op;
            for (const WeightTensor& tensor : rehearse::weights(op)) {
                buckets_.back().tensor_sizes.push_back(elements(tensor.shape));
            }
            const auto count = at(parameters(op));
            for (int slot = 0; slot < slots_; ++slot) {
                LayerTensors& layer = layers_[at(slot) * count_ + at(index)];
                layer.weights = all_.copy.subspan(next, count);
                layer.gradients = all_.gradients.subspan(next, count);
            }
            next += count;
        }
        begin += size;
        require(next == begin, "a bucket is as large as its layers");
    }
    require(begin == all_.weights.size(), "every layer with weights is in a bucket");
}

LayerTensors Tensors::layer(int index, int micro_batch) const {
    LayerTensors found = layers_[at(micro_batch / copies_ % slots_) * count_ + at(index)];
    if (const Fed* const fed = fed_by(stored_as(index)); fed != nullptr && !fed->integers) {
        const std::size_t size = fed->read.size() / at(micro_batches_);
        found.output = fed->read.subspan(at(micro_batch) * size, size);
    }
    return found;
}

std::span<std::int32_t> Tensors::indices(int layer, int micro_batch) {
    const Fed* const fed = fed_by(layer);
    require(fed != nullptr && fed->integers, "ids are read where they are fed in");
    const std::size_t size = fed->ids.size() / at(micro_batches_);
    return fed->ids.subspan(at(micro_batch) * size, size);
}

std::span<std::int32_t> Tensors::labels(int micro_batch) {
    const std::size_t size = integers_.labels.size() / at(micro_batches_);
    return integers_.labels.subspan(at(micro_batch) * size, size);
}

}  // namespace rehearse::run
