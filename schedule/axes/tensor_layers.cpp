// SPDX-License-Identifier: Apache-2.0
// The rule of each operator.
#include <algorithm>

#include "core/error.hpp"
#include "schedule/axes/tensor_splitter.hpp"

namespace rehearse::schedule {

namespace {

/// Words of each rank's share of so many that the ranks cannot share evenly.
std::int64_t filled_share(std::int64_t words, std::int64_t parts) {
    constexpr std::int64_t multiple = 128;
    return (words + multiple * parts - 1) / (multiple * parts) * multiple;
}

}  // namespace

auto TensorSplitter::split(const Conv& op) -> TensorSplitter::Held {
    if (op.depth > 0) return on_all();
    Conv mine = op;
    std::vector<Cut> filters{cut(0, 0)};
    if (op.bias) filters.push_back(cut(1, 0));
    if (op.groups > 1) {
        if (!features_in_pieces(0) || op.groups % parts_ != 0) return on_all();
        mine.channels /= parts_;
        mine.filters /= parts_;
        mine.groups /= parts_;
        return by_piece(mine, std::move(filters), Lies::features);
    }
    if (by_channels() && op.channels % parts_ != 0) return on_all();
    if (by_channels() || (by_turns() && features_in_pieces(0))) {
        if (op.relu) return on_all();  // it comes after the sum and the bias
        mine.channels /= parts_;
        mine.bias = false;
        return by_rows(mine, cut(0, 1), op.bias);
    }
    if (op.filters % parts_ != 0) return on_all();
    mine.filters /= parts_;
    return by_columns(mine, std::move(filters));
}

auto TensorSplitter::split(const MatMul& op) -> TensorSplitter::Held {
    MatMul mine = op;
    if (op.tied) return split_scores(mine);
    if (by_channels() && op.k % parts_ != 0) return on_all();
    if (by_channels() || (by_turns() && features_in_pieces(0))) {
        if (op.activation) return on_all();  // it comes after the sum and the bias
        mine.k /= parts_;
        mine.bias = false;
        return by_rows(mine, cut(0, 0), op.bias);
    }
    mine.n = share_of_columns(op);
    if (mine.n == 0) return on_all();
    const Blocks blocks = blocks_of_output();
    std::vector<Cut> columns{cut(0, 1, blocks)};
    if (op.bias) columns.push_back(cut(1, 0, blocks));
    auto made = by_columns(mine, std::move(columns));
    made.blocks = blocks;
    return made;
}

/// Of each expert some of its columns, or of its rows where its input lies in pieces.
auto TensorSplitter::split(const GroupedMatMul& op) -> TensorSplitter::Held {
    GroupedMatMul mine = op;
    if (by_channels() || (by_turns() && features_in_pieces(0))) {
        if (op.bias || op.k % parts_ != 0) return on_all();  // it comes after the sum
        mine.k /= parts_;
        return by_rows(mine, cut(0, 1), false);
    }
    if (op.n % parts_ != 0) return on_all();
    mine.n /= parts_;
    std::vector<Cut> columns{cut(0, 2)};
    if (op.bias) columns.push_back(cut(1, 1));
    return by_columns(mine, std::move(columns));
}

/// What other axes move: of a halo each rank gets those of its channels.
auto TensorSplitter::split(const Communication& op) -> TensorSplitter::Held {
    if (op.movement != Movement::halo || !all_lie(Lies::features)) return on_all();
    Communication mine = op;
    mine.shape = piece_of(op.shape, feature_dim(op.shape), parts_);
    return by_piece(std::move(mine), {}, Lies::features);
}

// A vocabulary, of which each row of a sequence has scores, is filled up as a table's is: for the loss alone, and not
// where that would make a rank's share no smaller than the whole.
std::int64_t TensorSplitter::share_of_columns(const MatMul& op) const {
    if (op.n % parts_ == 0) return op.n / parts_;
    const std::int64_t share = filled_share(op.n, parts_);
    return op.m > 1 && is_for_loss(index_) && !op.activation && share < op.n ? share : 0;
}

/// Each rank scores the words of its share of the table.
auto TensorSplitter::split_scores(MatMul mine) -> TensorSplitter::Held {
    const auto table = tables_cut_.find(static_cast<std::size_t>(layer().weights_of));
    if (table == tables_cut_.end()) return on_all();
    mine.n = std::get<Embedding>(part_.network.layers[static_cast<std::size_t>(table->second)].op).vocabulary;
    std::vector<Cut> columns;
    if (mine.bias) columns.push_back(cut(0, 0));
    const auto made = by_columns(mine, std::move(columns));
    part_.network.layers.back().weights_of = table->second;
    return made;
}

/// Each rank picks the words of its share of the table; the ranks add up.
auto TensorSplitter::split(const Embedding& op) -> TensorSplitter::Held {
    const std::int64_t share = share_of_table(op);
    if (share == 0) return to_rows(on_all());
    Embedding mine = op;
    mine.vocabulary = share;
    mine.parts = parts_;
    tables_cut_[index_] = append(layer(), mine, {source(0).at}, origin({cut(0, 0)}));
    cut_any_ = true;
    return summed(layer(), tables_cut_[index_]);
}

// Whoever shares the table takes all of its words. Where they do not share it evenly, rows that no word has fill it up
// to a multiple of 128 a rank, as Megatron-LM's do (make-vocab-size-divisible-by); the loss, and nobody else, may read
// the scores then, as it knows which words there are.
std::int64_t TensorSplitter::share_of_table(const Embedding& op) const {
    const bool even = op.vocabulary % parts_ == 0;
    for (std::size_t i = 0; i < network_.layers.size(); ++i) {
        if (network_.layers[i].weights_of != static_cast<int>(index_)) continue;
        const auto* dense = std::get_if<MatMul>(&network_.layers[i].op);
        if (dense == nullptr || dense->n != op.vocabulary || (!even && !is_for_loss(i))) return 0;
    }
    return even ? op.vocabulary / parts_ : filled_share(op.vocabulary, parts_);
}

bool TensorSplitter::is_for_loss(std::size_t layer) const {
    return !readers_[layer].empty() && std::ranges::all_of(readers_[layer], [&](int reader) {
        const auto index = static_cast<std::size_t>(reader);
        if (std::holds_alternative<Bias>(network_.layers[index].op)) return is_for_loss(index);
        const auto* loss = std::get_if<SoftmaxLoss>(&network_.layers[index].op);
        return loss != nullptr && loss->image.empty() && loss->class_weights.empty();
    });
}

/// Each rank attends with its heads.
auto TensorSplitter::split(const Attention& op) -> TensorSplitter::Held {
    if (!all_lie(Lies::features) || !shares_heads(op)) return on_all();
    Attention mine = op;
    mine.heads /= parts_;
    if (mine.key_heads > 0) mine.key_heads /= parts_;
    return by_piece(mine, {}, Lies::features);
}

/// Each rank brings the terms of its classes.
auto TensorSplitter::split(const SoftmaxLoss& op) -> TensorSplitter::Held {
    if (!features_in_pieces(0) || !op.image.empty() || !op.class_weights.empty()) return on_all();
    const std::int64_t share = part_.network.layers[static_cast<std::size_t>(source(0).at)].output.back();
    const SoftmaxTerms terms{share, op.rows, parts_, share * parts_ == op.classes ? 0 : op.classes};
    const int own = append(Label{layer()}.with(".terms"), terms, {source(0).at}, origin());
    const int all = communicate(Movement::gather, layer(), own);
    return {append(layer(), TermsLoss{op.rows, parts_}, {all}, origin())};
}

auto TensorSplitter::split(const BatchNorm& op) -> TensorSplitter::Held {
    if (!all_lie(Lies::features) || !op.affine) return on_all();  // statistics lie as gamma does
    BatchNorm mine = op;
    mine.channels /= parts_;
    part_.network.state -= 2 * (op.channels - mine.channels);
    return by_piece(mine, {cut(0, 0), cut(1, 0)}, Lies::features);
}

/// Of a word, a feature or a channel each, as they lie; or all of them, of each rank's rows.
auto TensorSplitter::split(const Bias& op) -> TensorSplitter::Held {
    const bool features = features_in_pieces(0) && op.dim == feature_dim(op.shape);
    const bool rows = source(0).lies == Lies::rows && op.dim == 1;
    if (!features && !rows) return on_all();
    const Bias mine{part_.network.layers[static_cast<std::size_t>(source(0).at)].output, op.dim};
    return by_piece(mine, rows ? std::vector<Cut>{} : std::vector<Cut>{cut(0, 0)}, source(0).lies);
}

auto TensorSplitter::split(const LayerNorm& op) -> TensorSplitter::Held {
    if (source(0).lies != Lies::rows) return on_all();
    LayerNorm mine = op;
    mine.rows /= parts_;
    return by_piece(mine, {}, Lies::rows);
}

auto TensorSplitter::split(const Normalization& op) -> TensorSplitter::Held {
    if (op.shape.size() != 2 || op.inner != 1) return on_all();
    Normalization mine = op;
    if (source(0).lies == Lies::features && norms_whole_heads(op)) {  // each rank its heads, all with the same gamma
        mine.shape.back() /= parts_;
        mine.sets /= parts_;
        Origin from = origin();
        if (parameters(op) > 0) from.summed = {axis_.index};
        return {append(layer(), mine, {source(0).at}, std::move(from)), Lies::features};
    }
    if (source(0).lies != Lies::rows || op.sets != op.shape.front()) return on_all();
    mine.shape.front() /= parts_;
    mine.sets /= parts_;
    return by_piece(mine, {}, Lies::rows);
}

/// Operands of one shape and no trainable tensors: each rank takes its piece. What turns heads turns each rank's heads,
/// by the same angles.
auto TensorSplitter::split(const Elementwise& op) -> TensorSplitter::Held {
    const bool alike = std::ranges::all_of(op.inputs, [&](const Shape& shape) { return shape == op.shape; });
    if (!alike || op.inputs.empty() || !op.weights.empty()) return on_all();
    if (is_rotary(op)) {
        if (!all_lie(Lies::features) || !turns_whole_heads(op)) return on_all();
        Elementwise mine = op;
        mine.inputs = {mine.shape = piece_of(op.shape, feature_dim(op.shape), parts_)};
        if (!mine.numbers.empty()) mine.numbers.front() /= static_cast<double>(parts_);  // the heads that are turned
        Held made = by_piece(mine, {}, Lies::features);
        made.blocks = source(0).blocks;
        return made;
    }
    const bool rows = all_lie(Lies::rows);
    if (!op.constants.empty() || (!rows && !all_lie(Lies::features))) return on_all();
    Elementwise mine = op;
    mine.shape = piece_of(op.shape, rows ? 0 : feature_dim(op.shape), parts_);
    for (Shape& input : mine.inputs) input = mine.shape;
    return by_piece(mine, {}, rows ? Lies::rows : Lies::features);
}

auto TensorSplitter::split(const Pool& op) -> TensorSplitter::Held {
    if (!all_lie(Lies::features)) return on_all();
    Pool mine = op;
    mine.channels /= parts_;
    return by_piece(mine, {}, Lies::features);
}

// A piece that lies in one run of a sample's memory can draw its mask as the whole's is: rows, or features of one row.
auto TensorSplitter::split(const Dropout& op) -> TensorSplitter::Held {
    const bool apart = op.shape.size() == 2 || axis_.in_blocks;
    return apart && source(0).lies == Lies::features ? on_all() : split_elementwise(op);
}

template <typename Elementwise>
auto TensorSplitter::split_elementwise(Elementwise op) -> TensorSplitter::Held {
    if (all_lie(Lies::rows)) {
        op.shape = piece_of(op.shape, 0, parts_);
        return by_piece(std::move(op), {}, Lies::rows);
    }
    if (!all_lie(Lies::features)) return on_all();
    op.shape = piece_of(op.shape, feature_dim(op.shape), parts_);
    return by_piece(std::move(op), {}, Lies::features);
}

template auto TensorSplitter::split_elementwise(Activation op) -> TensorSplitter::Held;
template auto TensorSplitter::split_elementwise(Add op) -> TensorSplitter::Held;
template auto TensorSplitter::split_elementwise(Flatten op) -> TensorSplitter::Held;

}  // namespace rehearse::schedule
