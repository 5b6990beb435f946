// SPDX-License-Identifier: Apache-2.0
#include "run/data/samples.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "run/data/labels.hpp"
#include "run/fed_inputs.hpp"
#include "run/random.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

namespace {

// Whether samples are one input, all of it, and labels of their own.
bool one_input(const Network& network) {
    const std::vector<FedInput> inputs = fed_inputs(network);
    const auto labels = labels_of(network);
    return inputs.size() == 1 && inputs.front().places.empty() && labels && labels->places.empty();
}

}  // namespace

Samples::Samples(const Network& network, std::uint64_t seed, const std::string& source, bool shuffle,
                 std::int64_t left_out)
    : left_out_(left_out), seed_(seed) {
    if (source == "synthetic") {
        made_up_.emplace(network, seed);
        return;
    }
    if (!std::holds_alternative<Input>(network.layers.front().op))
        throw InputError(fmt::format("--data {}: network '{}' reads nothing", source, network.name));
    open(source, network);
    if (shuffle && count_ > 0) shuffle_.emplace(count_, seed_);
}

void Samples::open(const std::string& source, const Network& network) {
    if (source == "graphs") {
        graphs_.emplace(network, seed_);
        return;
    }
    const bool h5 = source.ends_with(".h5") || source.ends_with(".hdf5");
    const auto& input = std::get<Input>(network.layers.front().op);
    const SoftmaxLoss* const loss = labelled_loss(network);
    if (h5 && (loss == nullptr || !one_input(network))) {
        inputs_ = open_inputs(source, network, left_out_);
        count_ = inputs_->count;
        return;
    }
    if (loss == nullptr) {
        throw InputError(fmt::format(
            "--data {}: the network asks for numbers, not labels: give them as FILE.h5, a data set an input", source));
    }
    loss_ = *loss;
    if (input.vocabulary > 0 && !h5) {
        throw InputError(fmt::format(
            "--data {}: the network takes integers: give them as FILE.h5 with a data set 'tokens'", source));
    }
    if (source == "climate") return open_climate(input.shape);
    if (input.vocabulary > 0) {
        text_ = open_tokens(source, input, loss_, left_out_);
        count_ = text_->count;
    } else if (source.starts_with("idx:") || h5) {
        file_ = h5 ? open_h5(source, input.shape, loss_, left_out_) : open_idx(source.substr(4), input.shape, loss_);
        count_ = file_->count;
    } else {
        throw InputError(
            fmt::format("--data {}: there are synthetic, climate, graphs, idx:FOLDER and FILE.h5", source));
    }
}

void Samples::open_climate(const Shape& sample) {
    climate_.emplace(sample, seed_);
    if (loss_.image == Shape{sample[1], sample[2]} && loss_.classes == 3) return;
    boxes_ = box_grid(loss_, sample[1], sample[2]);
    map_.resize(static_cast<std::size_t>(sample[1] * sample[2]));
    if (boxes_) return;
    throw InputError(
        "--data climate: labels each pixel with one of 3 classes, or boxes: choose deeplabv3plus-small, "
        "tiramisu-small or climatenet-small");
}

// Which of the file's samples the training's is.
std::int64_t Samples::place(std::int64_t sample) { return shuffle_ ? shuffle_->place(sample) : sample % count_; }

void Samples::fill(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids,
                   std::span<std::int32_t> labels) {
    if (graphs_) return graphs_->fill(sample, input, ids, labels);
    if (boxes_) {
        climate_->fill(sample, input, map_);
        return box_labels(boxes_of(map_, boxes_->height, boxes_->width), *boxes_, labels);
    }
    if (climate_) return climate_->fill(sample, input, labels);
    if (file_) return file_->read(place(sample), input, labels);
    if (text_) return text_->read(place(sample), ids, labels);
    if (inputs_) return inputs_->read(place(sample), input, ids, labels);
    made_up_->fill(sample, input, ids, labels);
}

}  // namespace rehearse::run
