// SPDX-License-Identifier: Apache-2.0
// The samples that a network is trained on, by their number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/network.hpp"
#include "run/checkpoint/files.hpp"
#include "run/data/climate.hpp"
#include "run/data/climate_boxes.hpp"
#include "run/data/graphs.hpp"
#include "run/data/synthetic_inputs.hpp"

namespace rehearse::run {

class Samples {
public:
    /// What the network takes and what its loss asks for, from `source`: "synthetic", "climate", "graphs",
    /// "idx:FOLDER" or "FILE.h5". InputError where there is no such source, or it has not that. Samples of files come shuffled, or as
    /// they lie, over and over; their labels that are `left_out` ask for nothing.
    Samples(const Network& network, std::uint64_t seed, const std::string& source = "synthetic", bool shuffle = true,
            std::int64_t left_out = -100);

    /// Of several inputs of one kind, `input` and `ids` have them one after the other; they are empty where nobody
    /// reads them, and `labels` where there are none.
    void fill(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids, std::span<std::int32_t> labels);

    /// Whether a block of a sample can be read by itself.
    bool has_blocks() const { return file_ && file_->read_block; }
    /// Of a sample whose blocks can be read: one of the input, and all labels.
    void fill_block(std::int64_t sample, const SampleBlock& block, std::span<float> input,
                    std::span<std::int32_t> labels) {
        file_->read_block(place(sample), block, input, labels);
    }

private:
    void open(const std::string& source, const Network& network);
    void open_climate(const Shape& sample);
    std::int64_t place(std::int64_t sample);

    SoftmaxLoss loss_{};
    std::int64_t left_out_;
    std::uint64_t seed_;
    std::optional<SyntheticInputs> made_up_;
    std::optional<Graphs> graphs_;
    std::optional<Climate> climate_;
    std::optional<BoxGrid> boxes_;   // of which the network is asked for
    std::vector<std::int32_t> map_;  // labels of the pixels that they are put round
    std::optional<LabelledFile> file_;
    std::optional<TokenFile> text_;
    std::optional<InputFile> inputs_;
    std::optional<Shuffle> shuffle_;
    std::int64_t count_ = 0;  // of the file's samples
};

}  // namespace rehearse::run
