// SPDX-License-Identifier: Apache-2.0
// Dense layers that make several tensors side by side (queries, keys and values; gate and up), of each of which a rank
// has its piece, as in Megatron-LM: which they are, and who takes them apart.
#include <algorithm>
#include <optional>

#include "core/rotary.hpp"
#include "schedule/axes/tensor_splitter.hpp"

namespace rehearse::schedule {

namespace {

/// Features [first, first + count) of each row.
struct Stretch {
    std::int64_t first = 0, count = 0;
};

/// What a slice takes of each row's features, where it takes all rows.
std::optional<Stretch> features_sliced(const Rearrangement& op) {
    const std::size_t dims = op.output.size();
    if (op.kind != "slice" || dims == 0 || dims > 2 || op.inputs.size() != 1 || op.numbers.size() != 2 * dims)
        return {};
    const bool all_rows = dims == 1 || (op.numbers.front() == 0 && op.inputs.front().front() == op.output.front());
    const bool in_turn = std::ranges::all_of(op.numbers.begin() + static_cast<std::ptrdiff_t>(dims), op.numbers.end(),
                                             [](std::int64_t step) { return step == 1; });
    if (!all_rows || !in_turn) return {};
    return Stretch{op.numbers[dims - 1], op.output.back()};
}

}  // namespace

/// What the layer makes side by side for who takes them apart: queries, keys and values; gate and up.
auto TensorSplitter::blocks_of_output() const -> TensorSplitter::Blocks {
    Blocks blocks = blocks_of_packed();
    if (blocks.empty()) blocks = blocks_of_slices();
    const bool even = std::ranges::all_of(blocks, [&](std::int64_t size) { return size % parts_ == 0; });
    return even ? blocks : Blocks{};
}

/// Queries, keys and values where attention reads them in one, perhaps turned before.
auto TensorSplitter::blocks_of_packed() const -> TensorSplitter::Blocks {
    std::size_t at = index_;
    const auto reader = [&]() -> const Op* {
        if (readers_[at].size() != 1) return nullptr;
        at = static_cast<std::size_t>(readers_[at].front());
        return &network_.layers[at].op;
    };
    const Op* op = reader();
    if (op != nullptr && is_rotary(*op)) op = turns_whole_heads(std::get<Elementwise>(*op)) ? reader() : nullptr;
    const auto* heads = op == nullptr ? nullptr : std::get_if<Attention>(op);
    if (heads == nullptr || !heads->packed || !shares_heads(*heads)) return {};
    return {query_width(*heads), key_width(*heads), value_width(*heads)};
}

/// The slices that are all that reads the output, where they are all of it.
auto TensorSplitter::blocks_of_slices() const -> TensorSplitter::Blocks {
    std::vector<Stretch> slices;
    for (const int reader : readers_[index_]) {
        const auto* op = std::get_if<Rearrangement>(&network_.layers[static_cast<std::size_t>(reader)].op);
        const std::optional<Stretch> slice = op == nullptr ? std::nullopt : features_sliced(*op);
        const std::vector<int>& users = readers_[static_cast<std::size_t>(reader)];
        if (!slice || !std::ranges::all_of(users, [&](int user) { return takes_pieces(user); })) return {};
        slices.push_back(*slice);
    }
    std::ranges::sort(slices, {}, &Stretch::first);
    Blocks blocks;
    std::int64_t end = 0;
    for (const Stretch& slice : slices) {
        if (slice.first != end) return {};
        blocks.push_back(slice.count);
        end += slice.count;
    }
    return end == layer().output.back() ? blocks : Blocks{};
}

bool TensorSplitter::takes_pieces(int reader) const {
    const auto index = static_cast<std::size_t>(reader);
    const Op& op = network_.layers[index].op;
    if (const auto* heads = std::get_if<Attention>(&op)) return shares_heads(*heads);
    if (std::holds_alternative<MatMul>(op)) return true;
    const auto* each = std::get_if<Elementwise>(&op);
    const auto* norm = std::get_if<Normalization>(&op);
    const bool alone = std::holds_alternative<Activation>(op) || (norm != nullptr && norms_whole_heads(*norm)) ||
                       (each != nullptr && (!is_rotary(op) || turns_whole_heads(*each)));
    return alone && std::ranges::all_of(readers_[index], [&](int next) { return takes_pieces(next); });
}

bool TensorSplitter::shares_heads(const Attention& op) const {
    return op.heads % parts_ == 0 && key_heads(op) % parts_ == 0;
}

bool TensorSplitter::turns_whole_heads(const Elementwise& op) const {
    const std::optional<Rotation> turned = rotation_of(op);
    if (!turned) return true;  // which heads there are is not said, only how many numbers are turned
    const std::int64_t heads = op.shape.back() / turned->size;
    const auto first = static_cast<std::int64_t>(op.numbers.front()) / turned->turned;
    return heads % parts_ == 0 && first % parts_ == 0;
}

bool TensorSplitter::norms_whole_heads(const Normalization& op) const {
    return op.shape.size() == 2 && op.inner == 1 && op.sets % op.shape.front() == 0 &&
           op.sets / op.shape.front() % parts_ == 0;
}

auto TensorSplitter::split(const Rearrangement& op) -> TensorSplitter::Held {
    return op.kind == "pack" ? split_beside_heads(op) : split_slice(op);
}

/// Of one of several tensors that lie one after the other, in pieces each: its piece.
auto TensorSplitter::split_slice(const Rearrangement& op) -> TensorSplitter::Held {
    const std::optional<Stretch> slice = features_sliced(op);
    if (!slice || source(0).lies != Lies::features || source(0).blocks.empty()) return on_all();
    Rearrangement mine = op;
    mine.inputs.front().back() /= parts_;
    mine.output.back() /= parts_;
    mine.numbers[op.output.size() - 1] /= parts_;
    return by_piece(mine, {}, Lies::features);
}

/// Numbers beside those of each head, the same for all: each rank puts them beside those of its heads.
auto TensorSplitter::split_beside_heads(const Rearrangement& op) -> TensorSplitter::Held {
    const bool by_head = op.numbers.size() == 1 && op.inputs.size() == 2 && op.output.size() == 2;
    if (!by_head || op.numbers.front() % parts_ != 0 || source(0).lies != Lies::features) return on_all();
    Rearrangement mine = op;
    mine.inputs.front().back() /= parts_;
    mine.output.back() /= parts_;
    mine.numbers.front() /= parts_;
    const int common = communicate(Movement::copy, layer(), whole(source(1)));
    return {append(layer(), mine, {source(0).at, common}, origin()), Lies::features};
}

}  // namespace rehearse::schedule
