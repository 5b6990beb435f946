// SPDX-License-Identifier: Apache-2.0
// Labelled samples that lie in files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/network.hpp"
#include "core/op.hpp"

namespace rehearse::run {

/// In which order `count` samples are taken: each once an epoch, each epoch shuffled anew (Fisher and Yates 1938).
class Shuffle {
public:
    Shuffle(std::int64_t count, std::uint64_t seed);
    /// Of the `index`-th sample of the training. Cheap within one epoch.
    std::int64_t place(std::int64_t index);

private:
    std::int64_t epoch_ = -1;
    std::uint64_t seed_;
    std::vector<std::int32_t> order_;
};

/// An IDX file, as the MNIST database has them: a big-endian header with its sizes, then bytes.
struct IdxFile {
    Shape shape;
    std::vector<std::uint8_t> values;
};
/// InputError: no such file, not of unsigned bytes, or not as long as its header says.
IdxFile read_idx(const std::filesystem::path& file);

/// A block of a sample: from `first` on, `size` in each dimension.
struct SampleBlock {
    Shape first, size;
};
/// The block whose numbers are those at `places` of a sample of this shape, in their order; nothing where these are no
/// block.
std::optional<SampleBlock> block_of(const Shape& sample, std::span<const std::int64_t> places);

/// Samples that can be read one by one.
struct LabelledFile {
    std::int64_t count = 0;
    /// A sample's input, in place of what was there, and its labels. `input` may be empty.
    std::function<void(std::int64_t place, std::span<float> input, std::span<std::int32_t> labels)> read;
    /// The same of a block of the input alone, with all labels; absent where only whole samples can be read.
    std::function<void(std::int64_t place, const SampleBlock& block, std::span<float> input,
                       std::span<std::int32_t> labels)>
        read_block{};
};

/// train-images-idx3-ubyte and train-labels-idx1-ubyte of a folder; numbers from 0 to 1. Images smaller than the
/// network's are framed by zeros, as LeCun et al. 1998 do. InputError where files and network do not fit.
LabelledFile open_idx(const std::filesystem::path& folder, const Shape& sample, const SoftmaxLoss& loss);

/// Data sets "data" {samples, ...} and "labels" {samples} or {samples, height, width} of an HDF5 file, read as they are
/// needed; labels that are `left_out` ask for nothing. InputError where file and network do not fit; BackendError where
/// this build has no HDF5.
LabelledFile open_h5(const std::filesystem::path& file, const Shape& sample, const SoftmaxLoss& loss,
                     std::int64_t left_out);

/// Sequences of integers that can be read one by one.
struct TokenFile {
    std::int64_t count = 0;
    std::function<void(std::int64_t place, std::span<std::int32_t> ids, std::span<std::int32_t> labels)> read;
};

/// Data set "tokens" of an HDF5 file: {samples, tokens}, with "labels" {samples} or {samples, tokens}; or without
/// labels, of a network whose loss asks for what follows each token, {samples, tokens + 1}, or one text {any number}
/// that is cut into samples. InputError where file and network do not fit, or an id is none of the vocabulary's.
TokenFile open_tokens(const std::filesystem::path& file, const Input& input, const SoftmaxLoss& loss,
                      std::int64_t left_out);

/// Those that are `left_out` become -1. InputError unless each other one is one of the classes.
void settle_labels(std::span<std::int32_t> labels, std::int64_t classes, std::int64_t left_out,
                   const std::string& where);

/// Samples of several inputs, each with all inputs of its kind one after the other; any may be empty.
struct InputFile {
    std::int64_t count = 0;
    std::function<void(std::int64_t place, std::span<float> input, std::span<std::int32_t> ids,
                       std::span<std::int32_t> labels)>
        read;
};

/// A data set {samples, sizes of one sample...} for each input of the network, called as its layer is, and "labels"
/// where its loss has labels (of which those that are `left_out` ask for nothing); the first input of numbers may be
/// "data", the first of integers "tokens". InputError where file and network do not fit, or an id is none of the
/// vocabulary's.
InputFile open_inputs(const std::filesystem::path& file, const Network& network, std::int64_t left_out);

}  // namespace rehearse::run
