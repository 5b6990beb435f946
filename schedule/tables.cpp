// SPDX-License-Identifier: Apache-2.0
#include "schedule/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "schedule/part_maker.hpp"

namespace rehearse::schedule {

namespace {

class Sharer : PartMaker {
public:
    Sharer(const Network& network, std::string axis_name, int axis, std::int64_t parts)
        : PartMaker(network, std::move(axis_name), axis, parts) {
        made_.resize(network.layers.size());
    }

    Part run() {
        add(&Sharer::is_input);
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
            if (!belongs(layer.op)) continue;
            if (const auto* bag = std::get_if<EmbeddingBag>(&layer.op)) {
                share(i, *bag);
                ++bags;
            } else if (const EmbeddingBag* reader = read_by_bag(i)) {
                Input ids = std::get<Input>(layer.op);
                ids.shape = input_shapes(Op{of_rank(*reader)}).front();
                append(layer.name, ids, {}, {i, 0, {}, {}});
            } else {
                append(layer.name, layer.op, inputs_of(layer), {i, 0, {}, {}});
                if (layer.weights_of >= 0) part_.network.layers.back().weights_of = made_[at(layer.weights_of)];
            }
            made_[at(i)] = static_cast<int>(part_.network.layers.size()) - 1;
        }
        return bags;
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
        append(layer.name, mine, inputs_of(layer), {index, 0, parts_ > 1 ? std::vector{cut} : std::vector<Cut>{}, {}});
        if (parts_ == 1) return;
        const std::int64_t all = parts_ * mine.tables;
        append(layer.name + ".exchange",
               Communication{.movement = Movement::exchange,
                             .axis = axis_name_,
                             .shape = output_shape(Op{mine}),
                             .parts = parts_,
                             .kept = all == whole.tables ? 0 : whole.tables},
               {static_cast<int>(part_.network.layers.size()) - 1}, {});
    }

    std::vector<int> made_;  // by layer of the whole, where its output is
};

}  // namespace

Part share_tables(const Network& network, const std::string& axis_name, int axis, std::int64_t parts) {
    return Sharer{network, axis_name, axis, parts}.run();
}

bool updates_directly(const Network& network, const Bucket& bucket) {
    return std::ranges::all_of(bucket.layers,
                               [&](int layer) { return rehearse::updates_directly(network.layers[at(layer)].op); });
}

}  // namespace rehearse::schedule
