// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/tables.hpp"

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
    Sharer(const Network& network, std::string axis_name, int axis, std::int64_t parts, bool bottom_on_one)
        : PartMaker(network, std::move(axis_name), axis, parts) {
        made_.resize(network.layers.size());
        bottom_.resize(network.layers.size());
        if (bottom_on_one && parts > 1) find_bottom();
    }

    Part run() {
        add(&Sharer::is_input);
        add_bottom();
        if (add(&Sharer::is_bag) == 0) {
            throw InputError(fmt::format(
                "network '{}' has no tables of embeddings (embeddingbag): tables=shared needs them", network_.name));
        }
        add(&Sharer::is_other);
        return std::move(part_);
    }

private:
    static bool is_input(const Op& op) { return std::holds_alternative<Input>(op); }
    static bool is_bag(const Op& op) { return std::holds_alternative<EmbeddingBag>(op); }
    static bool is_other(const Op& op) { return !is_input(op) && !is_bag(op); }

    /// The layers that `belongs` says; how many of them were bags.
    int add(bool (*belongs)(const Op&)) {
        int bags = 0;
        for (int i = 0; i < static_cast<int>(network_.layers.size()); ++i) {
            const Layer& layer = network_.layers[at(i)];
            if (!belongs(layer.op) || (bottom_[at(i)] && !is_input(layer.op))) continue;
            if (const auto* bag = std::get_if<EmbeddingBag>(&layer.op)) {
                share(i, *bag);
                ++bags;
            } else if (const EmbeddingBag* reader = read_by_bag(i)) {
                Input ids = std::get<Input>(layer.op);
                ids.shape = input_shapes(Op{of_rank(*reader)}).front();
                append(layer, ids, {}, {i, 0, {}, {}});
            } else {
                append(layer, bottom_[at(i)] ? of_all(layer) : layer.op, inputs_of(layer), {i, 0, {}, {}});
                if (layer.weights_of >= 0) part_.network.layers.back().weights_of = made_[at(layer.weights_of)];
            }
            made_[at(i)] = static_cast<int>(part_.network.layers.size()) - 1;
        }
        return bags;
    }

    /// Layers that depend on inputs other than ids, and on no table; these inputs, too.
    void find_bottom() {
        for (int i = 0; i < static_cast<int>(network_.layers.size()); ++i) {
            const Layer& layer = network_.layers[at(i)];
            if (is_input(layer.op)) {
                bottom_[at(i)] = read_by_bag(i) == nullptr;
            } else if (!is_bag(layer.op)) {
                bottom_[at(i)] = std::ranges::all_of(layer.inputs, [&](int input) { return bottom_[at(input)]; });
            }
        }
    }

    void add_bottom() {
        for (int i = 0; i < static_cast<int>(network_.layers.size()); ++i) {
            const Layer& layer = network_.layers[at(i)];
            if (!bottom_[at(i)] || is_input(layer.op)) continue;
            append(layer, of_all(layer), inputs_of(layer), {i, 0, {}, {}});
            made_[at(i)] = static_cast<int>(part_.network.layers.size()) - 1;
            if (is_read_outside(i)) send_to_all(i);
        }
    }

    bool is_read_outside(int index) const {
        for (std::size_t i = 0; i < network_.layers.size(); ++i) {
            const std::vector<int>& inputs = network_.layers[i].inputs;
            if (!bottom_[i] && std::ranges::find(inputs, index) != inputs.end()) return true;
        }
        return false;
    }

    /// Its result of all samples, as one row, of which each rank gets its own samples' piece.
    void send_to_all(int index) {
        const Layer& layer = network_.layers[at(index)];
        const std::int64_t all = parts_ * elements(layer.output);
        const Shape made = part_.network.layers.back().output;
        const int row = append(Label{layer}.with(".rows"), Flatten{made}, {made_[at(index)]}, {});
        made_[at(index)] = append(Label{layer}.with(".exchange"),
                                  Communication{.movement = Movement::all_to_all,
                                                .axis = axis_name_,
                                                .shape = {all},
                                                .parts = parts_,
                                                .kept = elements(layer.output)},
                                  {row}, {});
    }

    /// The operator of a layer at the bottom, for the samples of all ranks.
    Op of_all(const Layer& layer) const {
        Op op = layer.op;
        if (auto* input = std::get_if<Input>(&op)) {
            input->shape.insert(input->shape.begin(), parts_);
        } else if (auto* dense = std::get_if<MatMul>(&op)) {
            dense->m *= parts_;
        } else if (auto* activation = std::get_if<Activation>(&op)) {
            activation->shape.insert(activation->shape.begin(), parts_);
        } else {
            throw InputError(
                fmt::format("'{}' of network '{}' is no dense layer and no activation: bottom=one is for "
                            "these",
                            layer.name, network_.name));
        }
        return op;
    }

    EmbeddingBag of_rank(EmbeddingBag bag) const {
        bag.tables = (bag.tables + parts_ - 1) / parts_;
        bag.samples *= parts_;
        bag.direct = true;
        return bag;
    }

    std::vector<int> inputs_of(const Layer& layer) const {
        std::vector<int> inputs;
        for (const int input : layer.inputs) inputs.push_back(made_[at(input)]);
        return inputs;
    }

    /// The bag that reads an Input's ids; InputError when somebody else does, too.
    const EmbeddingBag* read_by_bag(int input) const {
        if (!std::holds_alternative<Input>(network_.layers[at(input)].op)) return nullptr;
        const EmbeddingBag* bag = nullptr;
        int readers = 0;
        for (const Layer& layer : network_.layers) {
            if (std::ranges::find(layer.inputs, input) == layer.inputs.end()) continue;
            ++readers;
            if (const auto* found = std::get_if<EmbeddingBag>(&layer.op)) bag = found;
        }
        if (bag == nullptr || readers == 1) return bag;
        throw InputError(
            fmt::format("'{}' of network '{}' is read by several layers: tables=shared needs ids of its own "
                        "for each bag of tables",
                        network_.layers[at(input)].name, network_.name));
    }

    void share(int index, const EmbeddingBag& whole) {
        const Layer& layer = network_.layers[at(index)];
        if (!std::holds_alternative<Input>(network_.layers[at(layer.inputs.front())].op)) {
            throw InputError(fmt::format("'{}' of network '{}' does not read an input: tables=shared needs that",
                                         layer.name, network_.name));
        }
        if (whole.tables == 1 && parts_ > 1) {
            throw InputError(fmt::format("'{}' of network '{}' is one table, which tables=shared does not cut",
                                         layer.name, network_.name));
        }
        const EmbeddingBag mine = of_rank(whole);
        const Cut cut{0, 0, axis_, 1};
        append(layer, mine, inputs_of(layer), {index, 0, parts_ > 1 ? std::vector{cut} : std::vector<Cut>{}, {}});
        if (parts_ == 1) return;
        const std::int64_t all = parts_ * mine.tables;
        append(Label{layer}.with(".exchange"),
               Communication{.movement = Movement::all_to_all,
                             .axis = axis_name_,
                             .shape = output_shape(Op{mine}),
                             .parts = parts_,
                             .kept = all == whole.tables ? 0 : whole.tables},
               {static_cast<int>(part_.network.layers.size()) - 1}, {});
    }

    std::vector<int> made_;     // by layer of the whole, where its output is
    std::vector<bool> bottom_;  // by layer of the whole: it is one rank's
};

}  // namespace

Part share_tables(const Network& network, const std::string& axis_name, int axis, std::int64_t parts,
                  bool bottom_on_one) {
    return Sharer{network, axis_name, axis, parts, bottom_on_one}.run();
}

bool updates_directly(const Network& network, const Bucket& bucket) {
    return std::ranges::all_of(bucket.layers,
                               [&](int layer) { return rehearse::updates_directly(network.layers[at(layer)].op); });
}

}  // namespace rehearse::schedule
