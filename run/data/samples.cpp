// SPDX-License-Identifier: Apache-2.0
#include "run/data/samples.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "run/random.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

Samples::Samples(const Network& network, std::uint64_t seed, const std::string& source)
    : loss_(loss_of(network)), seed_(seed) {
    if (source == "synthetic") {
        make_up(network);
        return;
    }
    const auto* input = std::get_if<Input>(&network.layers.front().op);
    if (input == nullptr || input->vocabulary > 0) {
        throw InputError(
            fmt::format("--data {}: network '{}' takes integers; these data are numbers", source, network.name));
    }
    open(source, input->shape);
}

void Samples::open(const std::string& source, const Shape& sample) {
    if (source == "climate") {
        climate_.emplace(sample, seed_);
        if (loss_.image == Shape{sample[1], sample[2]} && loss_.classes == 3) return;
        throw InputError(
            "--data climate: labels each pixel with one of 3 classes: choose deeplabv3plus-small or "
            "tiramisu-small");
    }
    if (source.starts_with("idx:")) {
        file_ = open_idx(source.substr(4), sample, loss_);
    } else if (source.ends_with(".h5") || source.ends_with(".hdf5")) {
        file_ = open_h5(source, sample, loss_);
    } else {
        throw InputError(fmt::format("--data {}: there are synthetic, climate, idx:FOLDER and FILE.h5", source));
    }
    shuffle_.emplace(file_->count, seed_);
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
    if (climate_) return climate_->fill(sample, input, labels);
    if (file_) return file_->read(shuffle_->place(sample), input, labels);
    if (pictures_ && !input.empty()) pictures_->fill(sample, input);
    if (loss_.rows > 1) return tokens_->fill(sample, ids.empty() ? std::span{ids_} : ids, labels);
    if (pictures_) pictures_->fill_labels(sample, labels);
    if (!pictures_) labels.front() = synthetic_label(sample, loss_.classes, seed_);
    if (tokens_ && !ids.empty()) tokens_->fill_class(sample, labels.front(), ids);
}

}  // namespace rehearse::run
