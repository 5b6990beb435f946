// SPDX-License-Identifier: Apache-2.0
// How an output lies on the ranks of a tensor axis, and the rule of each operator: what it takes, what it leaves.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "schedule/axes/part_maker.hpp"
#include "schedule/axes/tensor.hpp"

namespace rehearse::schedule {

/// Every rank has all of it; or its channels (features of the last dimension); or its rows (tokens of a sequence).
enum class Lies { whole, features, rows };

/// Large: one `split` an operator, all on the same few lists.
class TensorSplitter {
public:
    TensorSplitter(const Network& network, const TensorAxis& axis);
    Part run();

private:
    /// Sizes of tensors that lie one after the other along an output's features, of each of which a rank has its piece;
    /// of one tensor: empty.
    using Blocks = std::vector<std::int64_t>;
    /// An output as the ranks hold it: the layer of the part that gives it.
    struct Held {
        int at = -1;
        Lies lies = Lies::whole;
        Blocks blocks{};    // in pieces of several tensors that lie one after the other: q, k and v
        int gathered = -1;  // the layer that gives the whole, when it has been asked for
        int copied = -1;    // the layer behind which each rank's columns read it, their gradients summed once
    };

    const Layer& layer() const { return network_.layers[index_]; }
    Held& source(std::size_t input) { return held_[static_cast<std::size_t>(layer().inputs[input])]; }
    bool features_in_pieces(std::size_t input) { return source(input).lies == Lies::features; }
    bool all_lie(Lies as);
    Cut cut(int tensor, int dim, const Blocks& blocks = {}) const;
    Origin origin(std::vector<Cut> cuts = {}, int tensor = 0) const;

    int append(Label label, Op op, std::vector<int> inputs, Origin origin);
    int communicate(Movement movement, const Label& label, int from, std::int64_t dim = -1);
    int whole(Held& held);
    /// Each rank's features: those that it has, or its piece of all.
    int features(Held& held);
    bool by_turns() const { return axis_.split == TensorSplit::turns; }
    bool by_channels() const { return axis_.split == TensorSplit::channels; }

    /// Every rank computes the layer as it is.
    Held on_all();
    /// Each rank computes its channels, features or rows alone, as its inputs lie.
    Held by_piece(Op op, std::vector<Cut> cuts, Lies lies);
    /// Some of the layer's columns or filters on each rank.
    Held by_columns(Op op, std::vector<Cut> cuts);
    /// Some of the layer's rows or channels on each rank; the ranks add up, then comes the bias.
    Held by_rows(Op op, Cut rows, bool bias);
    /// A part of a sum, to be added up over the ranks: all of it on each, or each one's rows.
    Held summed(const Label& label, int partial);
    /// With sequence parallelism, what every rank has of a sequence goes on as each one's rows.
    Held to_rows(Held made);
    bool has_rows(const Shape& shape) const;

    Held split(const Conv& op);
    Held split(const MatMul& op);
    Held split(const GroupedMatMul& op);
    Held split(const Communication& op);
    Held split_scores(MatMul mine);
    Held split(const Embedding& op);
    Held split(const Attention& op);
    Held split(const Elementwise& op);
    Held split(const Normalization& op);
    Held split(const Rearrangement& op);
    Held split(const SoftmaxLoss& op);
    Held split(const BatchNorm& op);
    Held split(const Bias& op);
    Held split(const LayerNorm& op);
    Held split(const Pool& op);
    Held split(const Dropout& op);
    Held split(const Activation& op) { return split_elementwise(op); }
    Held split(const Add& op) { return split_elementwise(op); }
    // A piece of what is seen in another shape is no piece of that shape.
    Held split(const Flatten& op) { return op.shape.size() == 2 || !op.to.empty() ? on_all() : split_elementwise(op); }
    Held split(const auto&) { return on_all(); }
    template <typename Elementwise>
    Held split_elementwise(Elementwise op);
    Blocks blocks_of_output() const;
    Blocks blocks_of_packed() const;
    Blocks blocks_of_slices() const;
    /// Whether who reads an output, and who reads what that makes, can do with each rank's piece of the features, up to
    /// attention or a dense layer.
    bool takes_pieces(int reader) const;
    bool shares_heads(const Attention& op) const;
    bool turns_whole_heads(const Elementwise& op) const;
    bool norms_whole_heads(const Normalization& op) const;
    Held split_slice(const Rearrangement& op);
    Held split_beside_heads(const Rearrangement& op);
    /// Columns of each rank's share of a dense layer; 0: the ranks cannot share it.
    std::int64_t share_of_columns(const MatMul& op) const;
    /// Words of each rank's share of a table; 0: the ranks cannot share it.
    std::int64_t share_of_table(const Embedding& op) const;
    bool is_for_loss(std::size_t layer) const;

    const Network& network_;
    const TensorAxis& axis_;
    std::int64_t parts_;
    std::vector<bool> needed_;
    std::vector<std::vector<int>> readers_;
    std::vector<Held> held_;                 // by layer of the whole
    std::map<std::size_t, int> tables_cut_;  // layers of the whole -> of the part
    std::vector<int> computed_;              // by layer of the whole: of the part, which has its weights
    Part part_;
    std::vector<std::size_t> whole_layers_;  // of the whole: those that every rank computes, and could share
    std::size_t index_ = 0;
    bool cut_any_ = false;
};

inline bool is_rotary(const Op& op) {
    const auto* turned = std::get_if<Elementwise>(&op);
    return turned != nullptr && turned->function == "rotary";
}
/// The dimension along which channels or features lie: the first of an image, else the last.
inline std::int64_t feature_dim(const Shape& shape) {
    return shape.size() >= 3 ? 0 : static_cast<std::int64_t>(shape.size()) - 1;
}
inline Shape piece_of(Shape shape, std::int64_t dim, std::int64_t parts) {
    shape[static_cast<std::size_t>(dim)] /= parts;
    return shape;
}

}  // namespace rehearse::schedule
