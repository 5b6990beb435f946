// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "schedule/axes/part_maker.hpp"

namespace rehearse::schedule {

namespace {

class Sharer : PartMaker {
public:
    using PartMaker::PartMaker;

    Part run() {
        int shared = 0;
        for (int i = 0; i < static_cast<int>(network_.layers.size()); ++i) {
            if (const auto* experts = std::get_if<GroupedMatMul>(&network_.layers[at(i)].op)) {
                share(i, *experts);
                ++shared;
            } else if (is_between_experts(i)) {
                std::vector<int> inputs;
                for (const int from : network_.layers[at(i)].inputs) inputs.push_back(held_[at(from)].shared);
                add(i, network_.layers[at(i)].op, std::move(inputs), true);
            } else {
                add(i, network_.layers[at(i)].op, own_inputs(i), false);
            }
        }
        if (shared > 0) return std::move(part_);
        throw InputError(fmt::format("network '{}' has no experts (groupedmatmul): the {} axis needs them",
                                     network_.name, axis_name_));
    }

private:
    /// Where in the part the output of a layer of the whole lies: that of a rank's own samples, or the slots of its
    /// experts; -1: not there (yet).
    struct Held {
        int own = -1, shared = -1;
        std::int64_t group = 1;
    };

    bool is_between_experts(int i) const {
        const Layer& layer = network_.layers[at(i)];
        const auto* each = std::get_if<Elementwise>(&layer.op);
        const bool elementwise = std::holds_alternative<Activation>(layer.op) ||
                                 (each != nullptr && each->weights.empty() && each->constants.empty());
        return elementwise && std::ranges::all_of(layer.inputs, [&](int from) { return held_[at(from)].own < 0; });
    }

    void share(int i, const GroupedMatMul& whole) {
        const Layer& layer = network_.layers[at(i)];
        if (whole.experts % parts_ != 0) {
            throw InputError(fmt::format("'{}' of network '{}' has {} experts, which {} ranks cannot share evenly",
                                         layer.name, network_.name, whole.experts, parts_));
        }
        GroupedMatMul mine = whole;
        mine.experts /= parts_;
        mine.sources *= parts_;
        Held& input = held_[at(layer.inputs.front())];
        input.group = whole.group;
        if (input.shared < 0) input.shared = exchange(Label{layer}.with(".dispatch"), input.own, whole.group);
        std::vector<Cut> cuts;
        if (parts_ > 1) cuts.push_back({0, 0, axis_, 1});
        if (parts_ > 1 && whole.bias) cuts.push_back({1, 0, axis_, 1});
        const int made = append(layer, mine, {input.shared}, {i, 0, std::move(cuts), {}});
        held_.push_back(parts_ > 1 ? Held{-1, made, whole.group} : Held{made, made, whole.group});
    }

    /// Inputs of a layer that is computed for this rank's samples; slots come back to it.
    std::vector<int> own_inputs(int i) {
        std::vector<int> inputs;
        for (const int from : network_.layers[at(i)].inputs) {
            Held& held = held_[at(from)];
            if (held.own < 0)
                held.own = exchange(Label{network_.layers[at(from)]}.with(".combine"), held.shared, held.group);
            inputs.push_back(held.own);
        }
        return inputs;
    }

    void add(int i, const Op& op, std::vector<int> inputs, bool shared) {
        const Layer& layer = network_.layers[at(i)];
        Origin origin{i, 0, {}, {}};
        // Rows of tables are updated where they are, by the gradients of all samples.
        if (parts_ > 1 && weights_read(op) > 0 && !updates_directly(op)) origin.summed = {axis_};
        const std::int64_t group = inputs.empty() || layer.inputs.empty() ? 1 : held_[at(layer.inputs.front())].group;
        const int made = append(layer, op, std::move(inputs), std::move(origin));
        if (layer.weights_of >= 0) part_.network.layers.back().weights_of = held_[at(layer.weights_of)].own;
        held_.push_back(shared ? Held{-1, made, group} : Held{made, -1, 1});
    }

    int exchange(Label label, int from, std::int64_t group) {
        if (parts_ == 1) return from;
        const Shape shape = part_.network.layers[at(from)].output;
        if (shape.size() != 2) {
            throw InputError(fmt::format("'{}' of network '{}': a sample has one slot, which ranks cannot share",
                                         label.name, network_.name));
        }
        return append(
            std::move(label),
            Communication{
                .movement = Movement::all_to_all, .axis = axis_name_, .shape = shape, .parts = parts_, .group = group},
            {from}, {});
    }

    std::vector<Held> held_;  // by layer of the whole
};

}  // namespace

Part share_experts(const Network& network, const std::string& axis_name, int axis, std::int64_t parts) {
    return Sharer{network, axis_name, axis, parts}.run();
}

void check_groups(const Schedule& schedule) {
    std::int64_t group = 1;
    for (const Layer& layer : schedule.network.layers) group = std::max(group, routing_group(layer.op));
    for (const RankClass& rank_class : schedule.classes) {
        const std::int64_t samples = micro_batch_size(schedule, rank_class);
        if (samples % group == 0) continue;
        throw InputError(
            fmt::format("--plan '{}': network '{}' routes the tokens of {} samples together, so that a rank cannot "
                        "compute {} at a time; take {} or a multiple of it (--batch, microbatches)",
                        schedule.plan, schedule.network.name, group, samples, group));
    }
}

}  // namespace rehearse::schedule
