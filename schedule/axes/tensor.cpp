// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/error.hpp"
#include "schedule/axes/tensor_splitter.hpp"
#include "schedule/axes/whole_layers.hpp"

namespace rehearse::schedule {

TensorSplitter::TensorSplitter(const Network& network, const TensorAxis& axis)
    : network_(network),
      axis_(axis),
      parts_(axis.parts),
      needed_(needs_input_gradient(network)),
      readers_(consumers(network)),
      held_(network.layers.size()),
      computed_(network.layers.size(), -1) {
    part_.network.name = network.name;
    part_.network.state = network.state;
}

Part TensorSplitter::run() {
    for (index_ = 0; index_ < network_.layers.size(); ++index_) {
        std::visit([&](const auto& op) { held_[index_] = split(op); }, layer().op);
    }
    if (!cut_any_) {
        throw InputError(
            fmt::format("network '{}' has no layer that can be cut into {} equal parts", network_.name, parts_));
    }
    if (axis_.sequence && std::ranges::none_of(held_, [](const Held& held) { return held.lies == Lies::rows; })) {
        throw InputError(
            fmt::format("network '{}' has no sequence that {} ranks can share evenly: leave out sequence=on",
                        network_.name, parts_));
    }
    part_.network.notes = notes_of_whole(network_, whole_layers_, {axis_.name, parts_, true});
    return std::move(part_);
}

bool TensorSplitter::all_lie(Lies as) {
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) {
        if (source(i).lies != as) return false;
    }
    return !layer().inputs.empty();
}

Cut TensorSplitter::cut(int tensor, int dim, const Blocks& blocks) const {
    const bool alike = std::ranges::adjacent_find(blocks, std::not_equal_to{}) == blocks.end();
    const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, blocks.size()));
    return {tensor, dim, axis_.index, count, alike ? std::vector<std::int64_t>{} : blocks};
}

Origin TensorSplitter::origin(std::vector<Cut> cuts, int tensor) const {
    return {static_cast<int>(index_), tensor, std::move(cuts), {}};
}

int TensorSplitter::append(Label label, Op op, std::vector<int> inputs, Origin origin) {
    return append_layer(part_, std::move(label), std::move(op), std::move(inputs), std::move(origin));
}

int TensorSplitter::communicate(Movement movement, const Label& label, int from, std::int64_t dim) {
    const Shape& shape = part_.network.layers[static_cast<std::size_t>(from)].output;
    const Communication op{movement, axis_.name, shape, parts_, dim < 0 ? feature_dim(shape) : dim, 0};
    return append(label.with(fmt::format(".{}", to_string(movement))), op, {from}, {});
}

int TensorSplitter::whole(Held& held) {
    if (held.lies == Lies::whole) return held.at;
    require(held.blocks.empty(), "what lies in blocks has one reader, who takes it in pieces");
    if (held.gathered < 0) {
        const Label label{part_.network.layers[static_cast<std::size_t>(held.at)]};
        held.gathered = communicate(Movement::gather, label, held.at, held.lies == Lies::rows ? 0 : -1);
    }
    return held.gathered;
}

int TensorSplitter::features(Held& held) {
    return held.lies == Lies::features ? held.at : communicate(Movement::slice, layer(), whole(held));
}

TensorSplitter::Held TensorSplitter::on_all() {
    std::vector<int> inputs;
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(whole(source(i)));
    if (is_worth_sharing(layer().op)) whole_layers_.push_back(index_);
    const Held made{append(layer(), layer().op, std::move(inputs), origin())};
    computed_[index_] = made.at;
    const int owner = layer().weights_of;
    require(owner < 0 || !tables_cut_.contains(static_cast<std::size_t>(owner)), "who shares a cut table is cut");
    if (owner >= 0) {
        const int there = computed_[static_cast<std::size_t>(owner)];
        if (there < 0) {
            throw InputError(fmt::format("network '{}': '{}' shares the weights of '{}', which tensor would cut",
                                         network_.name, layer().name,
                                         network_.layers[static_cast<std::size_t>(owner)].name));
        }
        part_.network.layers.back().weights_of = there;
    }
    return made;
}

TensorSplitter::Held TensorSplitter::by_piece(Op op, std::vector<Cut> cuts, Lies lies) {
    std::vector<int> inputs;
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(source(i).at);
    Origin from = origin(std::move(cuts));
    if (lies == Lies::rows && parameters(op) > 0) from.summed = {axis_.index};
    return {append(layer(), std::move(op), std::move(inputs), std::move(from)), lies};
}

TensorSplitter::Held TensorSplitter::by_columns(Op op, std::vector<Cut> cuts) {
    // Layers that read the same tensor (queries, keys and values; gate and up) share its gathering, and the sum of its
    // gradients: those of a rank are added before the ranks', as one dense layer of all columns would.
    Held& from = source(0);
    const bool rows = from.lies == Lies::rows;
    if (from.copied < 0) {
        from.copied = rows ? communicate(Movement::all_gather, layer(), from.at, 0) : whole(from);
        if (needed_[index_] && !rows) from.copied = communicate(Movement::copy, layer(), from.copied);
    }
    cut_any_ = true;
    return {append(layer(), std::move(op), {from.copied}, origin(std::move(cuts))), Lies::features};
}

TensorSplitter::Held TensorSplitter::by_rows(Op op, Cut rows, bool bias) {
    cut_any_ = true;
    Held made = summed(layer(), append(layer(), std::move(op), {features(source(0))}, origin({rows})));
    if (!bias) return made;
    const Shape& shape = part_.network.layers[static_cast<std::size_t>(made.at)].output;
    Origin from = origin({}, 1);
    if (made.lies == Lies::rows) from.summed = {axis_.index};
    made.at = append(Label{layer()}.with(".bias"), Bias{shape, feature_dim(shape)}, {made.at}, std::move(from));
    return made;
}

TensorSplitter::Held TensorSplitter::summed(const Label& label, int partial) {
    const Shape& shape = part_.network.layers[static_cast<std::size_t>(partial)].output;
    if (has_rows(shape)) return {communicate(Movement::reduce_scatter, label, partial, 0), Lies::rows};
    return {communicate(Movement::sum, label, partial)};
}

TensorSplitter::Held TensorSplitter::to_rows(Held made) {
    if (made.lies != Lies::whole || !has_rows(part_.network.layers[static_cast<std::size_t>(made.at)].output))
        return made;
    return {communicate(Movement::slice, layer(), made.at, 0), Lies::rows};
}

bool TensorSplitter::has_rows(const Shape& shape) const {
    return axis_.sequence && shape.size() == 2 && shape[0] % parts_ == 0 && shape[0] > parts_;
}

Part whole(const Network& network) {
    Part part{network, {}, {}};
    for (std::size_t i = 0; i < network.layers.size(); ++i) part.origins.push_back({static_cast<int>(i), 0, {}, {}});
    return part;
}

Part split_tensor(const Network& network, const TensorAxis& axis) { return TensorSplitter{network, axis}.run(); }

}  // namespace rehearse::schedule
