// SPDX-License-Identifier: Apache-2.0
#include "run/steps/places.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/rotary.hpp"
#include "run/fed_inputs.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

// The ids of this rank's tables, of a sample of each rank. Another rank's samples lie before or after its own in the
// global batch.
void find_shared_tables(const RankContext& rank, Blocks& blocks, int bag) {
    const auto& mine = std::get<EmbeddingBag>(rank.part().network.layers[at(bag)].op);
    const auto& whole = std::get<EmbeddingBag>(rank.schedule.network.layers[at(rank.part().origins[at(bag)].layer)].op);
    if (mine.samples == 1) return;
    const Origin& origin = rank.part().origins[at(bag)];
    require(origin.cuts.size() == 1, "tables are shared along one axis");
    const std::int64_t own = rank.coordinates[at(origin.cuts.front().axis)];
    const std::int64_t ids = mine.tables * mine.lookups;
    for (std::int64_t i = 0; i < ids; ++i) blocks.ids.push_back(own * ids + i);
    blocks.whole_ids = whole.tables * whole.lookups;
    for (std::int64_t other = 0; other < mine.samples; ++other) {
        blocks.samples.push_back((other - own) * rank.schedule.batch_per_rank);
    }
}

/// Labels of a sample that a layer of a whole network, or of a part, makes a loss of.
Shape labels_of(const Op& op) {
    if (const auto* loss = std::get_if<SoftmaxLoss>(&op)) return loss->image.empty() ? Shape{loss->rows} : loss->image;
    if (const auto* terms = std::get_if<SoftmaxTerms>(&op)) return {terms->rows};
    if (const auto* loss = std::get_if<TermsLoss>(&op)) return {loss->rows};
    return {};
}

// The whole's ids of all inputs lie one after the other.
void find_ids(const RankContext& rank, Blocks& blocks) {
    for (const FedInput& whole : fed_inputs(rank.schedule.network, true)) {
        const auto& origins = rank.part().origins;
        const auto own = std::ranges::find(origins, whole.layer, &Origin::layer);
        if (own == origins.end()) continue;
        std::vector<std::int64_t> places = places_in_sample(rank, static_cast<int>(own - origins.begin()));
        for (std::int64_t i = 0; own->cuts.empty() && i < whole.size(); ++i) places.push_back(i);
        for (const std::int64_t place : places) blocks.ids.push_back(blocks.whole_ids + place);
        blocks.whole_ids += whole.size();
    }
}

}  // namespace

Blocks blocks_of(const RankContext& rank) {
    Blocks blocks;
    for (std::size_t i = 0; i < rank.part().network.layers.size(); ++i) {
        const Layer& layer = rank.part().network.layers[i];
        if (updates_directly(layer.op)) find_shared_tables(rank, blocks, static_cast<int>(i));
        const int from = rank.part().origins[i].layer;
        if (from < 0 || rank.part().origins[i].cuts.empty()) continue;
        const Op& whole = rank.schedule.network.layers[at(from)].op;
        const auto* input = std::get_if<Input>(&layer.op);
        if (input != nullptr && input->vocabulary > 0) {
            if (blocks.whole_ids == 0) find_ids(rank, blocks);
        } else if (input != nullptr) {
            blocks.input = places_in_sample(rank, static_cast<int>(i));
            blocks.whole_input = elements(output_shape(whole));
        } else if (!labels_of(layer.op).empty()) {
            blocks.labels = places_in_sample(rank, static_cast<int>(i));
            blocks.whole_labels = elements(labels_of(whole));
        }
    }
    return blocks;
}

std::vector<std::int64_t> places_in_sample(const RankContext& rank, int layer) {
    const Origin& origin = rank.part().origins[at(layer)];
    if (origin.cuts.empty()) return {};
    const auto shape_of = [](const Op& op) {
        const Shape labels = labels_of(op);
        return labels.empty() ? output_shape(op) : labels;
    };
    return indices_of_piece(shape_of(rank.schedule.network.layers[at(origin.layer)].op),
                            shape_of(rank.part().network.layers[at(layer)].op), origin.cuts, rank.coordinates);
}

// Of each sample this rank has its columns. Other ranks' samples lie before and after its own in the global batch.
std::vector<std::int64_t> places_in_samples_of_all(const RankContext& rank, const Dropout& dropout) {
    const int axis = axis_index(rank.schedule.mesh, "data");
    require(axis >= 0, "only the tensor, spatial and data axes cut a dropout");
    const std::int64_t ranks = size_of(rank.schedule.mesh, axis), own = rank.coordinates[at(axis)];
    const std::int64_t columns = elements(dropout.shape) / ranks;
    std::vector<std::int64_t> places;
    for (std::int64_t other = 0; other < ranks; ++other) {
        const std::int64_t sample = (other - own) * rank.schedule.batch_per_rank;  // before this rank's, or after
        for (std::int64_t i = 0; i < columns; ++i) places.push_back((sample * ranks + own) * columns + i);
    }
    return places;
}

std::int64_t first_row(const RankContext& rank, int layer) {
    const Op& op = rank.part().network.layers[at(layer)].op;
    if (const auto* turned = std::get_if<Elementwise>(&op); turned != nullptr && rotation_of(*turned)) {
        const int axis = axis_index(rank.schedule.mesh, "context");
        const Shape& whole = rank.schedule.network.layers[at(rank.part().origins[at(layer)].layer)].output;
        const bool cut = axis >= 0 && whole.front() != turned->shape.front();
        return cut ? rank.coordinates[at(axis)] * turned->shape.front() : 0;
    }
    const auto* table = std::get_if<Embedding>(&op);
    const auto* scores = std::get_if<SoftmaxTerms>(&op);
    const std::int64_t parts = table != nullptr ? table->parts : scores != nullptr ? scores->parts : 1;
    if (parts == 1) return 0;
    const int axis = axis_index(rank.schedule.mesh, "tensor");
    require(axis >= 0, "only the tensor axis cuts a table");
    return rank.coordinates[at(axis)] * (table != nullptr ? table->vocabulary : scores->classes);
}

std::int64_t losses_of_whole(const RankContext& rank, int layer) {
    const Shape own = labels_of(rank.part().network.layers[at(layer)].op);
    if (own.empty()) return 1;
    const Shape whole = labels_of(rank.schedule.network.layers[at(rank.part().origins[at(layer)].layer)].op);
    return elements(whole) / elements(own);
}

}  // namespace rehearse::run
