// SPDX-License-Identifier: Apache-2.0
#include "run/data/samples.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "run/random.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

Samples::Samples(const Network& network, std::uint64_t seed, const std::string& source, bool shuffle)
    : loss_(loss_of(network)), seed_(seed) {
    if (source == "synthetic") {
        make_up(network);
        return;
    }
    const auto* input = std::get_if<Input>(&network.layers.front().op);
    if (input == nullptr) throw InputError(fmt::format("--data {}: network '{}' reads nothing", source, network.name));
    open(source, *input, shuffle);
}

void Samples::open(const std::string& source, const Input& input, bool shuffle) {
    const bool h5 = source.ends_with(".h5") || source.ends_with(".hdf5");
    if (input.vocabulary > 0 && !h5) {
        throw InputError(fmt::format(
            "--data {}: the network takes integers: give them as FILE.h5 with a data set 'tokens'", source));
    }
    const Shape& sample = input.shape;
    if (source == "climate") {
        climate_.emplace(sample, seed_);
        if (loss_.image == Shape{sample[1], sample[2]} && loss_.classes == 3) return;
        boxes_ = box_grid(loss_, sample[1], sample[2]);
        map_.resize(static_cast<std::size_t>(sample[1] * sample[2]));
        if (boxes_) return;
        throw InputError(
            "--data climate: labels each pixel with one of 3 classes, or boxes: choose deeplabv3plus-small, "
            "tiramisu-small or climatenet-small");
    }
    std::int64_t count = 0;
    if (input.vocabulary > 0) {
        text_ = open_tokens(source, input, loss_);
        count = text_->count;
    } else if (source.starts_with("idx:") || h5) {
        file_ = h5 ? open_h5(source, sample, loss_) : open_idx(source.substr(4), sample, loss_);
        count = file_->count;
    } else {
        throw InputError(fmt::format("--data {}: there are synthetic, climate, idx:FOLDER and FILE.h5", source));
    }
    if (shuffle) shuffle_.emplace(count, seed_);
}

// Which of the file's samples the training's is.
std::int64_t Samples::place(std::int64_t sample) {
    return shuffle_ ? shuffle_->place(sample) : sample % (text_ ? text_->count : file_->count);
}

void Samples::make_up(const Network& network) {
    const std::uint64_t seed = seed_;
    for (const Layer& layer : network.layers) {
        const auto* input = std::get_if<Input>(&layer.op);
        if (input == nullptr) continue;
        if (input->vocabulary == 0) {
            pictures_.emplace(input->shape, loss_.classes, seed, loss_.image);
            continue;
        }
        const bool next_is_label = loss_.rows > 1;
        tokens_.emplace(next_is_label ? std::min(input->vocabulary, loss_.classes) : input->vocabulary, seed);
        ids_.resize(static_cast<std::size_t>(elements(input->shape)));
    }
    if (loss_.rows == 1 || loss_.rows == static_cast<std::int64_t>(ids_.size())) return;
    throw InputError(
        fmt::format("network '{}' has a loss of {} rows a sample: the synthetic data have one label a "
                    "sample, a pixel or a token",
                    network.name, loss_.rows));
}

void Samples::fill(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids,
                   std::span<std::int32_t> labels) {
    if (boxes_) {
        climate_->fill(sample, input, map_);
        return box_labels(boxes_of(map_, boxes_->height, boxes_->width), *boxes_, labels);
    }
    if (climate_) return climate_->fill(sample, input, labels);
    if (file_) return file_->read(place(sample), input, labels);
    if (text_) return text_->read(place(sample), ids, labels);
    if (pictures_ && !input.empty()) pictures_->fill(sample, input);
    if (loss_.rows > 1) return tokens_->fill(sample, ids.empty() ? std::span{ids_} : ids, labels);
    if (pictures_) pictures_->fill_labels(sample, labels);
    if (!pictures_) labels.front() = synthetic_label(sample, loss_.classes, seed_);
    if (tokens_ && !ids.empty()) tokens_->fill_class(sample, labels.front(), ids);
}

}  // namespace rehearse::run
