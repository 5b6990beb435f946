// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/spatial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "schedule/axes/spatial_splitter.hpp"

namespace rehearse::schedule {

SpatialSplitter::SpatialSplitter(const Network& network, std::span<const SpatialAxis> axes, std::string grid,
                                 Edges edges)
    : network_(network),
      axes_(axes),
      grid_(std::move(grid)),
      edges_(edges),
      all_((1U << axes.size()) - 1),
      needed_(needs_input_gradient(network)),
      held_(network.layers.size()) {
    part_.network.name = network.name;
    part_.network.state = network.state;
}

Part SpatialSplitter::run() {
    for (index_ = 0; index_ < network_.layers.size(); ++index_) {
        std::visit([&](const auto& op) { held_[index_] = split(op); }, layer().op);
    }
    if (std::ranges::any_of(part_.origins, [](const Origin& origin) { return !origin.summed.empty(); })) {
        return std::move(part_);
    }
    throw InputError(
        fmt::format("network '{}' has no layer with weights whose images {} ranks can share evenly: spatial "
                    "needs that",
                    network_.name, parts(all_)));
}

std::int64_t SpatialSplitter::parts(unsigned cut) const {
    std::int64_t product = 1;
    for (const std::size_t a : axes_of(cut)) product *= axes_[a].parts;
    return product;
}

std::vector<std::size_t> SpatialSplitter::axes_of(unsigned cut) const {
    std::vector<std::size_t> axes;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
        if ((cut >> a & 1) != 0) axes.push_back(a);
    }
    return axes;
}

unsigned SpatialSplitter::outer(unsigned cut) {
    unsigned kept = 0;
    for (unsigned bit = 1; (cut & bit) != 0; bit <<= 1) kept |= bit;
    return kept;
}

Shape SpatialSplitter::block_of(Shape shape, unsigned cut) const {
    for (const std::size_t a : axes_of(cut)) shape[at(axes_[a].dim)] /= axes_[a].parts;
    return shape;
}

Origin SpatialSplitter::origin(unsigned cut, std::vector<Cut> cuts) const {
    Origin from{static_cast<int>(index_), 0, std::move(cuts), {}};
    if (parameters(layer().op) == 0) return from;
    for (const std::size_t a : axes_of(cut)) from.summed.push_back(axes_[a].index);
    return from;
}

std::vector<Cut> SpatialSplitter::cuts_of_sample(unsigned cut, int first_dim) const {
    std::vector<Cut> cuts;
    for (const std::size_t a : axes_of(cut)) {
        cuts.push_back({0, static_cast<int>(axes_[a].dim) - 1 + first_dim, axes_[a].index, 1});
    }
    return cuts;
}

int SpatialSplitter::append(Label label, Op op, std::vector<int> inputs, Origin origin) {
    return append_layer(part_, std::move(label), std::move(op), std::move(inputs), std::move(origin));
}

int SpatialSplitter::communicate(Label label, Communication op, int from) {
    op.shape = part_.network.layers[at(from)].output;
    return append(std::move(label), std::move(op), {from}, {});
}

int SpatialSplitter::moved(Movement movement, std::size_t axis, int from) {
    const SpatialAxis& along = axes_[axis];
    const Label label{part_.network.layers[at(from)]};
    Communication op{movement, along.name, {}, along.parts};
    op.dim = along.dim;
    return communicate(label.with(fmt::format(".{}{}", to_string(movement), along.dim)), std::move(op), from);
}

int SpatialSplitter::lying(Held& held, unsigned cut) {
    if (const auto known = held.at.find(cut); known != held.at.end()) return known->second;
    unsigned now = held.cut;
    for (const bool gathers : {true, false}) {
        for (const std::size_t a : axes_of(gathers ? held.cut & ~cut : cut & ~held.cut)) {
            const int from = held.at.at(now);
            now ^= 1U << a;
            if (held.at.contains(now)) continue;
            held.at[now] = moved(gathers ? Movement::gather : Movement::slice, a, from);
        }
    }
    return held.at.at(cut);
}

int SpatialSplitter::over_grid(Movement movement, unsigned cut, int from) {
    const Label label = Label{layer()}.with(fmt::format(".{}", to_string(movement)));
    if (cut == all_) return communicate(label, Communication{movement, grid_, {}, parts(cut)}, from);
    for (const std::size_t a : axes_of(cut)) {
        from = communicate(label.with(std::to_string(axes_[a].dim)),
                           Communication{movement, axes_[a].name, {}, axes_[a].parts}, from);
    }
    return from;
}

auto SpatialSplitter::made(Op op, std::vector<int> inputs, unsigned cut, std::vector<Cut> cuts) -> Held {
    return {cut, {{cut, append(layer(), std::move(op), std::move(inputs), origin(cut, std::move(cuts)))}}};
}

auto SpatialSplitter::on_all() -> Held {
    std::vector<int> inputs;
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(lying(source(i), 0));
    Held held = made(layer().op, std::move(inputs), 0);
    const int owner = layer().weights_of;
    if (owner >= 0) part_.network.layers.back().weights_of = held_[at(owner)].at.begin()->second;
    return held;
}

unsigned SpatialSplitter::common_cut() {
    unsigned cut = 0;
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) cut |= source(i).cut;
    return outer(cut);
}

std::vector<int> SpatialSplitter::inputs_lying(unsigned cut) {
    std::vector<int> inputs;
    for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(lying(source(i), cut));
    return inputs;
}

Part split_spatial(const Network& network, std::span<const SpatialAxis> axes, const std::string& grid, Edges edges) {
    return SpatialSplitter{network, axes, grid, edges}.run();
}

}  // namespace rehearse::schedule
