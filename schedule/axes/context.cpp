// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/rotary.hpp"
#include "schedule/axes/sequence_moves.hpp"
#include "schedule/axes/whole_layers.hpp"

namespace rehearse::schedule {

namespace {

/// The rule of each operator: what it takes, what it leaves.
class ContextSplitter : SequenceMoves {
public:
    ContextSplitter(const Network& network, const ContextAxis& axis)
        : SequenceMoves(network, axis),
          pieces_(axis.pieces),
          readers_(consumers(network)),
          held_(network.layers.size()) {}

    Part run() {
        for (index_ = 0; index_ < network_.layers.size(); ++index_) {
            std::visit([&](const auto& op) { held_[index_] = split(op); }, layer().op);
        }
        part_.network.notes = notes_of_whole(network_, whole_layers_, {axis_name_, parts_});
        if (attends_) return std::move(part_);
        throw InputError(fmt::format(
            "network '{}' has no attention whose rows{} {} ranks can share evenly{}: context needs that", network_.name,
            ring_ ? "" : " and heads", parts_, why_not_.empty() ? "" : fmt::format(" ({})", why_not_)));
    }

private:
    /// The layer of the part that gives an output: the rank's rows of it, or all of it; and the other of both where it
    /// has been asked for.
    struct Held {
        int at = -1;
        bool rows = false;
        int other = -1;
        bool own_rows = false;  // the layer was computed for the rank's rows alone
        bool piece = false;     // of which each tensor rank has a piece
    };

    const Layer& layer() const { return network_.layers[index_]; }
    Held& source(std::size_t input) { return held_[at(layer().inputs[input])]; }
    /// Whether a sequence of this shape has rows that the ranks can share evenly.
    bool has_rows(const Shape& shape) const {
        return shape.size() == 2 && shape.front() % parts_ == 0 && shape.front() >= parts_;
    }
    bool all_in_rows() {
        if (layer().inputs.empty()) return false;
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) {
            if (!source(i).rows) return false;
        }
        return true;
    }
    /// Whether that holds when the rank takes its rows of inputs that all have whole: of some it has its own already.
    bool can_be_in_rows() {
        bool some = false, all = true;
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) {
            some = some || source(i).rows;
            all = all && (source(i).rows || has_rows(shape_of(source(i).at)));
        }
        return some && all;
    }
    Shape rows_of(Shape shape) const {
        shape.front() /= parts_;
        return shape;
    }
    /// Of a tensor with so many rows, or of others in that order: by a ring, blocks of a row of each rank.
    std::vector<Cut> first_dimension(std::int64_t rows, int tensor = 0) const {
        return {{tensor, 0, axis_, ring_ ? rows / parts_ : 1}};
    }
    bool reads_piece() {
        bool some = false;
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) some = some || source(i).piece;
        return some;
    }

    int lying(Held& held, bool rows) {
        if (held.rows == rows) return held.at;
        if (held.other < 0) {
            const Label label{part_.network.layers[at(held.at)]};
            held.other = moved_whole(rows ? Movement::slice : Movement::gather, held.at, label);
        }
        return held.other;
    }

    /// Every rank computes the layer as it is.
    Held on_all() {
        if (reads_piece()) {
            throw InputError(
                fmt::format("network '{}': '{}' would have pieces of a sequence in another order than their places: "
                            "leave out sequence=on, or context",
                            network_.name, layer().name));
        }
        if (is_worth_sharing(layer().op)) whole_layers_.push_back(index_);
        std::vector<int> inputs;
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(lying(source(i), false));
        return {made(layer().op, std::move(inputs), {static_cast<int>(index_), 0, {}, {}}), false};
    }
    /// Each rank computes its rows of it, of its rows of the inputs; `cuts` say how what it makes lies in the whole.
    Held by_rows(Op op, std::vector<Cut> cuts = {}) {
        std::vector<int> inputs;
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(lying(source(i), true));
        Origin origin{static_cast<int>(index_), 0, std::move(cuts), {}};
        if (weights_read(op) > 0) origin.summed = {axis_};
        const bool piece = reads_piece();
        return {made(std::move(op), std::move(inputs), std::move(origin)), true, -1, true, piece};
    }
    int made(Op op, std::vector<int> inputs, Origin origin) {
        const int index = append(layer(), std::move(op), std::move(inputs), std::move(origin));
        const int owner = layer().weights_of;
        if (owner >= 0) part_.network.layers.back().weights_of = weights_at_[at(owner)];
        weights_at_.resize(network_.layers.size(), -1);
        weights_at_[index_] = index;
        return index;
    }

    Held split(const Input& op) {
        const bool ids = op.vocabulary > 0 && op.shape.size() == 1;
        const Shape rows = ids ? Shape{op.shape.front(), 1} : op.shape;
        const bool looked_up = std::ranges::all_of(readers_[index_], [&](int reader) {
            const auto* table = std::get_if<Embedding>(&network_.layers[at(reader)].op);
            return table != nullptr && cuts_table(*table);
        });
        if (!has_rows(rows) || (op.vocabulary > 0 && !(ids && looked_up))) return on_all();
        Input mine = op;
        mine.shape.front() /= parts_;
        return by_rows(mine, first_dimension(op.shape.front()));
    }

    /// A table of parts of a sentence goes by where a token stands in the whole.
    bool cuts_table(const Embedding& op) const {
        return op.segments == 0 && op.tokens % parts_ == 0 && op.tokens >= parts_ &&
               (op.positions == 0 || op.positions == op.tokens);
    }

    Held split(const Embedding& op) {
        if (!source(0).rows || !cuts_table(op)) {
            Held whole = on_all();
            if (has_rows(shape_of(whole.at))) return {lying(whole, true), true, whole.at};
            return whole;
        }
        Embedding mine = op;
        mine.tokens /= parts_;
        mine.positions = 0;
        Held words = by_rows(mine);
        if (op.parts > 1) return words;  // whose sum over those who share the table comes first
        return with_positions(words, index_);
    }

    /// The words of a table by rows, with the positions of the rank's rows.
    Held with_positions(Held words, std::size_t table) {
        const Layer& of = network_.layers[table];
        if (std::get<Embedding>(of.op).positions == 0) return words;
        const Shape shape = shape_of(words.at);
        const std::vector<Cut> own =
            words.piece ? std::vector<Cut>{{1, 0, pieces_, 1}} : first_dimension(shape.front() * parts_, 1);
        words.at = append(Label{of}.with(".positions"),
                          Elementwise{.function = "add", .shape = shape, .inputs = {shape}, .weights = {shape}},
                          {words.at}, {static_cast<int>(table), 1, own, {}});
        return words;
    }

    /// Who shares a table does as those who look it up: of a table that all look up whole its part of the gradient is
    /// the same on all ranks, of one by rows a part of the sum.
    Held split(const MatMul& op) {
        const int owner = layer().weights_of;
        if (owner < 0) return of_rows(op, &MatMul::m);
        if (!held_[at(owner)].own_rows) return on_all();
        if (!source(0).rows && !has_rows(shape_of(source(0).at))) {
            throw InputError(
                fmt::format("network '{}': '{}' needs the table of '{}' for what has no rows that {} ranks "
                            "can share, as those of the table are",
                            network_.name, layer().name, network_.layers[at(owner)].name, parts_));
        }
        MatMul mine = op;
        mine.m /= parts_;
        return by_rows(mine);
    }
    /// As who has the weights does, for the same reason: of layers by rows, and refused where that cannot be.
    Held split(const Shared& op) {
        const int owner = layer().weights_of;
        if (!held_[at(owner)].own_rows) return on_all();
        const Op& repeated = op.op->op;
        Held made;
        if (const auto* dense = std::get_if<MatMul>(&repeated)) made = split(*dense);
        if (const auto* norm = std::get_if<LayerNorm>(&repeated)) made = split(*norm);
        if (const auto* norm = std::get_if<Normalization>(&repeated)) made = split(*norm);
        if (!made.own_rows) {
            throw InputError(
                fmt::format("network '{}': '{}' has the weights of '{}', of which each of {} ranks computes its rows, "
                            "and cannot be computed so",
                            network_.name, layer().name, network_.layers[at(owner)].name, parts_));
        }
        Op& own = part_.network.layers[at(made.at)].op;
        own = Shared{std::make_shared<const SharedOp>(SharedOp{own})};
        return made;
    }
    Held split(const LayerNorm& op) { return of_rows(op, &LayerNorm::rows); }
    template <typename Rows>
    Held of_rows(const Rows& op, std::int64_t Rows::*rows, std::vector<Cut> cuts = {}) {
        if (!all_in_rows() || op.*rows % parts_ != 0) return on_all();
        Rows mine = op;
        mine.*rows /= parts_;
        return by_rows(mine, std::move(cuts));
    }
    Held split(const Normalization& op) {
        if (!all_in_rows() || op.shape.size() != 2 || op.inner != 1 || op.sets % op.shape.front() != 0) return on_all();
        Normalization mine = op;
        mine.shape.front() /= parts_;
        mine.sets /= parts_;
        return by_rows(mine);
    }
    Held split(const Activation& op) { return shaped(op); }
    Held split(const Add& op) { return shaped(op); }
    Held split(const Dropout& op) {
        if (reads_piece()) return shaped(op, {{0, 0, pieces_, 1}});
        return shaped(op, first_dimension(op.shape.front()));
    }
    template <typename Shaped>
    Held shaped(Shaped op, std::vector<Cut> cuts = {}) {
        if (!can_be_in_rows()) return on_all();
        op.shape.front() /= parts_;
        return by_rows(std::move(op), std::move(cuts));
    }
    /// Of operands with rows as the result's, and of trained and fixed ones that are the same for each row. Rotary
    /// embeddings turn by a row's place in the whole, which is known where no table says the angles.
    Held split(const Elementwise& op) {
        const auto same_for_rows = [](const Shape& shape) { return shape.size() < 2 || shape.front() == 1; };
        const bool alike = std::ranges::all_of(
            op.inputs, [&](const Shape& shape) { return shape.size() == 2 && shape.front() == op.shape.front(); });
        const std::optional<Rotation> turned = rotation_of(op);
        const bool by_place = turned && turned->base != 0;
        if (!all_in_rows() || !alike || op.shape.size() != 2 || !std::ranges::all_of(op.weights, same_for_rows) ||
            (!by_place && !std::ranges::all_of(op.constants, same_for_rows)))
            return on_all();
        Elementwise mine = op;
        mine.shape.front() /= parts_;
        for (Shape& input : mine.inputs) input = rows_of(input);
        for (Shape& table : mine.constants) {
            if (!same_for_rows(table)) table.front() /= parts_;
        }
        return by_rows(mine);
    }
    /// What takes from each row, or puts into it, alone: some of its columns; numbers beside those of each head.
    Held split(const Rearrangement& op) {
        const bool by_columns =
            op.kind == "slice" && op.numbers.size() == 4 && op.numbers[0] == 0 && op.numbers[2] == 1;
        const bool by_head = op.kind == "pack" && op.numbers.size() == 1 && op.inputs.size() == 2;
        const auto has_all_rows = [&](const Shape& shape) {
            return shape.size() == 2 && shape.front() == op.output.front();
        };
        if (!all_in_rows() || !(by_columns || by_head) || op.output.size() != 2 ||
            !std::ranges::all_of(op.inputs, has_all_rows))
            return on_all();
        Rearrangement mine = op;
        for (Shape& input : mine.inputs) input = rows_of(input);
        mine.output = rows_of(op.output);
        return by_rows(mine);
    }
    /// The mean over the rank's rows: a part of the mean over all.
    Held split(const SoftmaxLoss& op) {
        if (!all_in_rows() || !op.image.empty() || op.rows % parts_ != 0) return on_all();
        SoftmaxLoss mine = op;
        mine.rows /= parts_;
        return {by_rows(mine, first_dimension(op.rows)).at, false};
    }

    Held split(const SoftmaxTerms& op) { return of_rows(op, &SoftmaxTerms::rows, first_dimension(op.rows)); }
    Held split(const TermsLoss& op) {
        Held loss = of_rows(op, &TermsLoss::rows, first_dimension(op.rows));
        loss.rows = false;
        return loss;
    }
    Held split(const Bias& op) { return op.dim == 1 ? shaped(op) : on_all(); }
    /// What moves between the ranks of a tensor axis: of each row by itself.
    Held split(const Communication& op) {
        const bool whole = op.movement == Movement::sum || op.movement == Movement::copy;
        const bool features = op.dim == 1 && (op.movement == Movement::gather || op.movement == Movement::slice);
        const bool pieces = pieces_ >= 0 && op.dim == 0 && op.axis == "tensor";
        if (op.shape.size() != 2 || !(whole || features || pieces)) return on_all();
        const Held made = pieces ? in_pieces(op) : shaped(op);
        const auto from = at(layer().inputs.front());
        const auto* table = std::get_if<Embedding>(&network_.layers[from].op);
        const bool sums = op.movement == Movement::sum || op.movement == Movement::reduce_scatter;
        const bool of_words = table != nullptr && sums && held_[from].own_rows && cuts_table(*table);
        return of_words ? with_positions(made, from) : made;
    }

    /// From a rank's rows, which all its tensor ranks have, to each one's piece of them, or back.
    Held in_pieces(const Communication& op) {
        const bool scatters = op.movement == Movement::slice || op.movement == Movement::reduce_scatter;
        const std::int64_t parts = parts_ * (scatters ? op.parts : 1);
        if (op.shape.front() % parts != 0) {
            throw InputError(fmt::format(
                "network '{}': {} ranks cannot share the {} rows of '{}' evenly: leave out sequence=on", network_.name,
                parts_ * op.parts, op.shape.front() * (scatters ? 1 : op.parts), layer().name));
        }
        Communication mine = op;
        mine.shape.front() /= parts_;
        Held made = by_rows(std::move(mine));
        made.piece = scatters;
        return made;
    }

    /// A rank of more ranks than heads of keys has a copy of the one that its queries ask (grouped-query attention).
    Held split(const Attention& op) {
        if (ring_) return in_turns(op);
        const std::int64_t keys = key_heads(op), copies = parts_ / std::gcd(keys, parts_);
        const bool alike = query_width(op) == key_width(op) && key_width(op) == value_width(op);
        const bool shared = op.heads % parts_ == 0 && op.heads % (keys * copies) == 0;
        if (!all_in_rows() || !shared || (op.packed && (!alike || copies > 1))) return refused(op);
        Attention mine = op;
        mine.heads /= parts_;
        if (mine.key_heads > 0) mine.key_heads = keys * copies / parts_;
        const std::vector<Shape> wanted = input_shapes(mine);
        std::vector<int> inputs;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const int from = i == 0 ? source(i).at : copied_heads(source(i).at, keys, copies);
            inputs.push_back(to_heads(from, op.packed ? 3 : 1, wanted[i]));
        }
        attends_ = true;
        const int heads = append(layer(), mine, std::move(inputs), {static_cast<int>(index_), 0, {}, {}});
        return {to_rows(heads), true};
    }

    Held in_turns(const Attention& op) {
        if (!all_in_rows() || op.keys % parts_ != 0 || (op.causal && op.queries != op.keys)) return refused(op);
        Attention mine = op;
        mine.queries /= parts_;
        mine.keys /= parts_;
        attends_ = true;
        return by_rows(mine);
    }

    /// Attention that every rank computes whole; why, for the first.
    Held refused(const Attention& op) {
        if (why_not_.empty()) {
            why_not_ = all_in_rows() ? fmt::format("'{}' has {} heads, {} of keys, and {} rows", layer().name, op.heads,
                                                   key_heads(op), op.queries)
                                     : fmt::format("'{}' reads '{}', which has no rows of a rank", layer().name,
                                                   network_.layers[at(layer().inputs[first_whole_input()])].name);
        }
        return on_all();
    }
    std::size_t first_whole_input() {
        std::size_t input = 0;
        while (source(input).rows) ++input;
        return input;
    }

    Held split(const auto&) { return on_all(); }

    int pieces_;
    std::vector<std::vector<int>> readers_;
    std::vector<Held> held_;                 // by layer of the whole
    std::vector<std::size_t> whole_layers_;  // of the whole: those that every rank computes, and could share
    std::vector<int> weights_at_;            // by layer of the whole: of the part, which has its weights
    std::size_t index_ = 0;
    bool attends_ = false;
    std::string why_not_;  // the first attention is computed whole by all
};

}  // namespace

Part split_context(const Network& network, const ContextAxis& axis) { return ContextSplitter{network, axis}.run(); }

}  // namespace rehearse::schedule
