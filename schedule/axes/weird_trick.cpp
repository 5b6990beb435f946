// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/weird_trick.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "schedule/axes/part_maker.hpp"

namespace rehearse::schedule {

namespace {

/// Layers that may follow each other at the end of a network, each reading the one before it.
bool may_be_at_the_end(const Network& network, int index) {
    const Layer& layer = network.layers[at(index)];
    if (layer.inputs != std::vector<int>{index - 1}) return false;
    if (const auto* dense = std::get_if<MatMul>(&layer.op)) return dense->m == 1 && !dense->tied;
    if (is_loss(layer.op) || std::holds_alternative<Softmax>(layer.op)) return true;
    const bool by_itself = std::holds_alternative<Activation>(layer.op) || std::holds_alternative<Dropout>(layer.op);
    return by_itself && layer.output.size() == 1;
}

/// The first dense layer of those at the end; the number of layers when there is none.
int first_dense(const Network& network) {
    const auto count = static_cast<int>(network.layers.size());
    int first = count;
    for (int i = count - 1; i > 0 && may_be_at_the_end(network, i); --i) {
        if (std::holds_alternative<MatMul>(network.layers[at(i)].op)) first = i;
    }
    return first;
}

class Sharer : PartMaker {
public:
    using PartMaker::PartMaker;

    Part run() {
        const int first = first_dense(network_);
        for (int i = 0; i < static_cast<int>(network_.layers.size()); ++i) {
            if (i < first) {
                part_.network.layers.push_back(network_.layers[at(i)]);
                part_.origins.push_back({i, 0, {}, {}});
                last_ = i;
            } else {
                index_ = i;
                std::visit([&](const auto& op) { share(op); }, network_.layers[at(i)].op);
            }
        }
        if (shared_any_) return std::move(part_);
        throw InputError(
            fmt::format("network '{}' does not end in dense layers, one of which has columns that {} ranks "
                        "can share evenly: dense=shared needs that",
                        network_.name, parts_));
    }

private:
    void append(Label label, Op op, Origin origin) {
        last_ = PartMaker::append(std::move(label), std::move(op), {last_}, std::move(origin));
    }

    void communicate(Movement movement, std::string_view name, Shape shape, std::int64_t dim) {
        append(Label{network_.layers[at(index_)]}.with(fmt::format(".{}", name)),
               Communication{movement, axis_name_, std::move(shape), parts_, dim, 0}, {});
    }

    void as_it_is(Op op, std::vector<Cut> cuts) {
        append(network_.layers[at(index_)], std::move(op), {index_, 0, std::move(cuts), {}});
    }

    /// What is there: this rank's sample {features}, or {samples of all ranks, its columns of them}.
    std::int64_t features() const { return network_.layers[at(index_ - 1)].output.back(); }

    void back_to_own_samples() {
        if (!in_columns_) return;
        communicate(Movement::gather, "columns", {parts_, features() / parts_}, 1);
        communicate(Movement::slice, "own", {parts_, features()}, 0);
        in_columns_ = false;
    }

    void share(const MatMul& op) {
        if (op.n % parts_ != 0) {
            back_to_own_samples();
            return as_it_is(op, {});
        }
        if (in_columns_) {
            communicate(Movement::all_gather, "spread", {parts_, features() / parts_}, 1);
        } else {
            communicate(Movement::all_gather, "spread", {1, features()}, 0);
        }
        MatMul mine = op;
        mine.m = parts_;
        mine.n /= parts_;
        std::vector<Cut> columns{{0, 1, axis_, 1}};
        if (op.bias) columns.push_back({1, 0, axis_, 1});
        as_it_is(mine, std::move(columns));
        in_columns_ = shared_any_ = true;
    }

    template <typename Elementwise>
    void share_elementwise(Elementwise op) {
        if (in_columns_) op.shape = {parts_, features() / parts_};
        as_it_is(std::move(op), {});
    }
    void share(const Activation& op) { share_elementwise(op); }
    void share(const Dropout& op) { share_elementwise(op); }
    void share(const auto& op) {
        back_to_own_samples();
        as_it_is(op, {});
    }

    int index_ = 0;  // of the whole network
    int last_ = -1;  // of the part
    bool in_columns_ = false, shared_any_ = false;
};

}  // namespace

Part share_dense_layers(const Network& network, const std::string& axis_name, int axis, std::int64_t parts) {
    return Sharer{network, axis_name, axis, parts}.run();
}

}  // namespace rehearse::schedule
