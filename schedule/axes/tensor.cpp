// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "schedule/axes/part_maker.hpp"
#include "schedule/axes/tensor_splitter.hpp"

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
    return std::move(part_);
}

bool TensorSplitter::all_lie(Lies as) {
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) {
        if (source(i).lies != as) return false;
    }
    return !layer().inputs.empty();
}

Origin TensorSplitter::origin(std::vector<Cut> cuts, int tensor) const {
    return {static_cast<int>(index_), tensor, std::move(cuts), {}};
}

int TensorSplitter::append(std::string name, Op op, std::vector<int> inputs, Origin origin) {
    return append_layer(part_, std::move(name), std::move(op), std::move(inputs), std::move(origin));
}

int TensorSplitter::communicate(Movement movement, const std::string& name, int from, std::int64_t dim) {
    const Shape& shape = part_.network.layers[static_cast<std::size_t>(from)].output;
    const Communication op{movement, axis_.name, shape, parts_, dim < 0 ? feature_dim(shape) : dim, 0};
    return append(fmt::format("{}.{}", name, to_string(movement)), op, {from}, {});
}

int TensorSplitter::whole(Held& held) {
    if (held.lies == Lies::whole) return held.at;
    require(held.blocks == 1, "what lies in blocks has one reader, who takes it in pieces");
    if (held.gathered < 0) {
        const std::string name = part_.network.layers[static_cast<std::size_t>(held.at)].name;
        held.gathered = communicate(Movement::gather, name, held.at, held.lies == Lies::rows ? 0 : -1);
    }
    return held.gathered;
}

int TensorSplitter::features(Held& held) {
    return held.lies == Lies::features ? held.at : communicate(Movement::slice, layer().name, whole(held));
}

TensorSplitter::Held TensorSplitter::on_all() {
    std::vector<int> inputs;
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(whole(source(i)));
    const Held made{append(layer().name, layer().op, std::move(inputs), origin())};
    computed_[index_] = made.at;
    const int owner = layer().weights_of;
    require(owner < 0 || !tables_cut_.contains(static_cast<std::size_t>(owner)), "who shares a cut table is cut");
    if (owner >= 0) part_.network.layers.back().weights_of = computed_[static_cast<std::size_t>(owner)];
    return made;
}

TensorSplitter::Held TensorSplitter::by_piece(Op op, std::vector<Cut> cuts, Lies lies) {
    std::vector<int> inputs;
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(source(i).at);
    Origin from = origin(std::move(cuts));
    if (lies == Lies::rows && parameters(op) > 0) from.summed = {axis_.index};
    return {append(layer().name, std::move(op), std::move(inputs), std::move(from)), lies};
}

TensorSplitter::Held TensorSplitter::by_columns(Op op, std::vector<Cut> cuts) {
    int input =
        source(0).lies == Lies::rows ? communicate(Movement::spread, layer().name, source(0).at, 0) : whole(source(0));
    if (needed_[index_] && source(0).lies != Lies::rows) input = communicate(Movement::copy, layer().name, input);
    cut_any_ = true;
    return {append(layer().name, std::move(op), {input}, origin(std::move(cuts))), Lies::features};
}

TensorSplitter::Held TensorSplitter::by_rows(Op op, Cut rows, bool bias) {
    cut_any_ = true;
    Held made = summed(layer().name, append(layer().name, std::move(op), {features(source(0))}, origin({rows})));
    if (!bias) return made;
    const Shape& shape = part_.network.layers[static_cast<std::size_t>(made.at)].output;
    Origin from = origin({}, 1);
    if (made.lies == Lies::rows) from.summed = {axis_.index};
    made.at = append(layer().name + ".bias", Bias{shape, feature_dim(shape)}, {made.at}, std::move(from));
    return made;
}

TensorSplitter::Held TensorSplitter::summed(const std::string& name, int partial) {
    const Shape& shape = part_.network.layers[static_cast<std::size_t>(partial)].output;
    if (has_rows(shape)) return {communicate(Movement::scatter, name, partial, 0), Lies::rows};
    return {communicate(Movement::sum, name, partial)};
}

TensorSplitter::Held TensorSplitter::to_rows(Held made) {
    if (made.lies != Lies::whole || !has_rows(part_.network.layers[static_cast<std::size_t>(made.at)].output))
        return made;
    return {communicate(Movement::slice, layer().name, made.at, 0), Lies::rows};
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
