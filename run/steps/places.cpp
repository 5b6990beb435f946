// SPDX-License-Identifier: Apache-2.0
// Where a rank's part lies in the whole: of a mean over pixels, of a dropout's mask, of a table.
#include <algorithm>

#include "core/error.hpp"
#include "run/program.hpp"

namespace rehearse::run {

// Sets of samples that are summed apart: of groups, or of ranks.
std::int64_t Program::traders() const {
    const int groups = axis_index(schedule_.mesh, "groups");
    return groups < 0 ? shards(schedule_.mesh) : size_of(schedule_.mesh, groups);
}

// A mean over a block's pixels is a part of the mean over all.
std::int64_t Program::loss_batch(int layer) const {
    std::int64_t batch = global_batch(schedule_) / (asynchronous_ ? schedule_.micro_batches : 1);
    if (schedule_.averaging.period > 0) batch = micro_batch_size(schedule_);  // one model's
    if (schedule_.servers.count > 0 && schedule_.averaging.period == 0) batch /= std::max<std::int64_t>(1, traders());
    if (combines_gradients(rank_class_)) batch = schedule_.batch_per_rank;  // each rank's own mean
    const auto* loss = std::get_if<SoftmaxLoss>(&part().network.layers[at(layer)].op);
    if (loss == nullptr || loss->image.empty()) return batch;
    const Op& whole = schedule_.network.layers[at(part().origins[at(layer)].layer)].op;
    return batch * (elements(std::get<SoftmaxLoss>(whole).image) / elements(loss->image));
}

// A piece of a sample's features gets its part of the whole sample's mask.
void Program::place_dropout(kernels::Buffers& buffers, int layer, const Dropout& dropout) {
    const auto& whole = std::get<Dropout>(schedule_.network.layers[at(part().origins[at(layer)].layer)].op);
    buffers.sample_elements = elements(whole.shape);
    if (whole.shape == dropout.shape) return;
    if (!part().origins[at(layer)].cuts.empty()) {
        buffers.places = places_.try_emplace(layer, places_in_sample(layer)).first->second;
        return;
    }
    if (const int axis = axis_index(schedule_.mesh, "tensor"); axis >= 0) {
        buffers.first_element = coordinates_[at(axis)] * elements(dropout.shape);
    } else {
        buffers.places = places_.try_emplace(layer, places_in_samples_of_all(dropout)).first->second;
    }
}

// With dense=shared each row is a sample of one rank of the data axis, of which this rank has its columns. Other ranks'
// samples lie before and after its own in the global batch.
std::vector<std::int64_t> Program::places_in_samples_of_all(const Dropout& dropout) const {
    const int axis = axis_index(schedule_.mesh, "data");
    require(axis >= 0, "only the tensor, spatial and data axes cut a dropout");
    const std::int64_t ranks = size_of(schedule_.mesh, axis), own = coordinates_[at(axis)];
    const std::int64_t columns = elements(dropout.shape) / ranks;
    std::vector<std::int64_t> places;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const std::int64_t sample = (rank - own) * schedule_.batch_per_rank;  // before this rank's, or after
        for (std::int64_t i = 0; i < columns; ++i) places.push_back((sample * ranks + own) * columns + i);
    }
    return places;
}

// Of a table or of scores that lie in parts on the ranks.
std::int64_t Program::first_row(int layer) const {
    const Op& op = part().network.layers[at(layer)].op;
    const auto* table = std::get_if<Embedding>(&op);
    const auto* scores = std::get_if<SoftmaxTerms>(&op);
    const std::int64_t parts = table != nullptr ? table->parts : scores != nullptr ? scores->parts : 1;
    if (parts == 1) return 0;
    const int axis = axis_index(schedule_.mesh, "tensor");
    require(axis >= 0, "only the tensor axis cuts a table");
    return coordinates_[at(axis)] * (table != nullptr ? table->vocabulary : scores->classes);
}

}  // namespace rehearse::run
