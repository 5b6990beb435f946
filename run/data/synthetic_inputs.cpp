// SPDX-License-Identifier: Apache-2.0
#include "run/data/synthetic_inputs.hpp"

#include <algorithm>
#include <cmath>

#include "core/index.hpp"
#include "core/op_general_visitors.hpp"
#include "run/random.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

namespace {

// Of how many rows the layer's numbers name some, where that is what reads them.
std::int64_t rows_named_by(const Network& network, int layer) {
    std::int64_t rows = 0;
    for (const Layer& reader : network.layers) {
        const auto* op = std::get_if<Rearrangement>(&reader.op);
        if (op == nullptr || !general::of_rows(*op) || reader.inputs[1] != layer) continue;
        const std::int64_t there = (op->kind == "takerows" ? op->inputs[0] : op->output).front();
        rows = rows == 0 ? there : std::min(rows, there);
    }
    return rows;
}

}  // namespace

SyntheticInputs::SyntheticInputs(const Network& network, std::uint64_t seed)
    : seed_(seed),
      labels_(labels_of(network)),
      numbers_(fed_inputs(network, false)),
      integers_(fed_inputs(network, true)) {
    for (const FedInput& input : numbers_) rows_named_.push_back(rows_named_by(network, input.layer));
    const SoftmaxLoss* const loss = labelled_loss(network);
    if (loss != nullptr) rows_ = loss->rows;
    constexpr std::int64_t some = 10;
    const std::int64_t classes = loss != nullptr ? loss->classes : some;
    if (!numbers_.empty() && numbers_.front().layer == 0)
        pictures_.emplace(numbers_.front().op.shape, classes, seed, loss != nullptr ? loss->image : Shape{});
    std::int64_t first = 0, vocabulary = 0;
    for (const FedInput& input : integers_) {
        if (vocabulary == 0 || (input.size() == rows_ && tokens_size_ != rows_)) {
            tokens_first_ = first, tokens_size_ = input.size(), vocabulary = input.op.vocabulary;
        }
        first += input.size();
    }
    if (integers_.empty()) return;
    const bool next_is_label = loss != nullptr && rows_ > 1 && tokens_size_ == rows_;
    tokens_.emplace(next_is_label ? std::min(vocabulary, classes) : vocabulary, seed);
    ids_.resize(at(tokens_size_));
    next_.resize(at(tokens_size_));
}

void SyntheticInputs::fill(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids,
                           std::span<std::int32_t> labels) {
    if (pictures_ && !input.empty()) pictures_->fill(sample, input.first(at(numbers_.front().size())));
    fill_others(sample, input, ids);
    const std::span<std::int32_t> told = ids.empty() ? ids : ids.subspan(at(tokens_first_), at(tokens_size_));
    if (labels_) return fill_labels(sample, told, labels);
    if (tokens_ && !told.empty()) tokens_->fill(sample, told, next_);
}

void SyntheticInputs::fill_labels(std::int64_t sample, std::span<std::int32_t> ids, std::span<std::int32_t> labels) {
    if (follows()) return tokens_->fill(sample, ids.empty() ? std::span{ids_} : ids, labels);
    if (rows_ > 1) {
        for (std::int64_t row = 0; row < rows_; ++row)
            labels[at(row)] = synthetic_label(sample * rows_ + row, labels_->classes, seed_);
    } else if (pictures_) {
        pictures_->fill_labels(sample, labels);
    } else {
        labels.front() = synthetic_label(sample, labels_->classes, seed_);
    }
    if (tokens_ && !ids.empty()) tokens_->fill_class(sample, labels.front(), ids);
}

void SyntheticInputs::fill_others(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < numbers_.size() && !input.empty(); begin += at(numbers_[i++].size())) {
        Uniform random{key(key(seed_, i), static_cast<std::uint64_t>(sample))};
        const std::span<float> own = input.subspan(begin, at(numbers_[i].size()));
        if (i == 0 && pictures_) continue;
        const auto rows = static_cast<double>(rows_named_[i]);
        for (float& value : own)
            value = static_cast<float>(rows > 0 ? std::floor(random.next() * rows) : random.next());
    }
    begin = 0;
    for (std::size_t i = 0; i < integers_.size() && !ids.empty(); begin += at(integers_[i++].size())) {
        Uniform random{key(key(seed_, numbers_.size() + i), static_cast<std::uint64_t>(sample))};
        const auto many = static_cast<double>(integers_[i].op.vocabulary);
        for (std::int32_t& id : ids.subspan(begin, at(integers_[i].size())))
            id = static_cast<std::int32_t>(random.next() * many);
    }
}

}  // namespace rehearse::run
