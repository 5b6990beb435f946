// SPDX-License-Identifier: Apache-2.0
#include "run/steps/halo.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/comm/reduction.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

/// A tensor of `outer` times `rows` rows of `inner` elements, of which a rank has its own and needs others'. In the
/// memory of the collective row comes after row, each with all that it has of the tensor.
class Rows {
public:
    Rows(const Communication& op, std::int64_t samples, std::int64_t rank)
        : halo_(op.halo), ranks_(op.parts), rank_(rank), outer_(samples) {
        for (std::size_t dim = 0; dim < op.shape.size(); ++dim) {
            if (static_cast<std::int64_t>(dim) != op.dim) {
                (static_cast<std::int64_t>(dim) < op.dim ? outer_ : inner_) *= op.shape[dim];
            }
        }
        for (std::int64_t other = 0; other < ranks_; ++other) {
            if (other != rank_) lent_.push_back({halo_.lent_begin(rank_, other), halo_.lent_end(rank_, other)});
        }
    }

    const Halo& halo() const { return halo_; }
    bool is_lent(std::int64_t own) const {
        return std::ranges::any_of(lent_, [&](const Range& rows) { return own >= rows.begin && own < rows.end; });
    }
    /// Where a row that this rank needs lies among its own; -1: it is another's, or nobody's.
    std::int64_t own_of(std::int64_t needed) const {
        const std::int64_t own = halo_.first(rank_) + needed - rank_ * halo_.own;
        return own >= 0 && own < halo_.own ? own : -1;
    }
    std::int64_t needed_of(std::int64_t own) const { return rank_ * halo_.own + own - halo_.first(rank_); }
    bool is_nobodys(std::int64_t needed) const {
        const std::int64_t row = halo_.first(rank_) + needed;
        return row < 0 || row >= ranks_ * halo_.own;
    }
    /// Each part of row `row` of a tensor of `rows`, and of row `place` of the memory.
    template <typename Tensor, typename Memory, typename Visit>
    void each_part(Tensor tensor, std::int64_t rows, std::int64_t row, Memory memory, std::int64_t place,
                   Visit visit) const {
        for (std::int64_t part = 0; part < outer_; ++part) {
            visit(tensor.subspan(at((part * rows + row) * inner_), at(inner_)),
                  memory.subspan(at((place * outer_ + part) * inner_), at(inner_)));
        }
    }
    template <typename Visit>
    void each_part(kernels::View tensor, std::int64_t rows, std::int64_t row, Visit visit) const {
        for (std::int64_t part = 0; part < outer_; ++part) {
            visit(part, tensor.subspan(at((part * rows + row) * inner_), at(inner_)));
        }
    }
    kernels::ConstView part_of(kernels::ConstView tensor, std::int64_t rows, std::int64_t row,
                               std::int64_t part) const {
        return tensor.subspan(at((part * rows + row) * inner_), at(inner_));
    }
    std::int64_t inner() const { return inner_; }

private:
    Halo halo_;
    std::int64_t ranks_, rank_, outer_, inner_ = 1;
    std::vector<Range> lent_;  // of this rank's rows, to each other one
};

void add_to(kernels::View sum, kernels::ConstView part) {
    kernels::add(sum.type(), static_cast<std::byte*>(sum.bytes()), static_cast<const std::byte*>(part.bytes()),
                 static_cast<std::int64_t>(sum.size()));
}

void fill(kernels::View values, float with) { assign(values, std::vector<float>(values.size(), with)); }

/// The rows that a rank needs: its own, what has come from others, and what is beyond the image.
void assemble(const Rows& rows, kernels::ConstView own, kernels::View memory, kernels::View needed, float beyond) {
    const Halo& halo = rows.halo();
    for (std::int64_t row = 0; row < halo.size; ++row) {
        if (const std::int64_t mine = rows.own_of(row); mine >= 0) {
            rows.each_part(needed, halo.size, row, [&](std::int64_t part, kernels::View to) {
                copy(rows.part_of(own, halo.own, mine, part), to);
            });
        } else if (rows.is_nobodys(row)) {
            rows.each_part(needed, halo.size, row, [&](std::int64_t, kernels::View to) { fill(to, beyond); });
        } else {
            rows.each_part(needed, halo.size, row, memory, halo.own + row,
                           [](kernels::View to, kernels::View from) { copy(from, to); });
        }
    }
}

/// The gradient of a rank's own rows: of those that it needed itself, and what those say that others needed.
void add_up_rows(const Rows& rows, kernels::ConstView needed, kernels::View memory, kernels::View own) {
    const Halo& halo = rows.halo();
    for (std::int64_t row = 0; row < halo.own; ++row) {
        const std::int64_t kept = rows.needed_of(row);
        rows.each_part(own, halo.own, row, [&](std::int64_t part, kernels::View to) {
            if (kept < 0 || kept >= halo.size) return fill(to, 0);
            copy(rows.part_of(needed, halo.size, kept, part), to);
        });
        if (!rows.is_lent(row)) continue;
        for (const std::int64_t place : {halo.size + row, halo.size + halo.own + row}) {
            rows.each_part(own, halo.own, row, memory, place,
                           [](kernels::View to, kernels::View from) { add_to(to, from); });
        }
    }
}

}  // namespace

void prepare_halo(RankContext& rank, GradientSums& gradients, std::vector<std::byte>& bytes, ReadyStep& ready,
                  const Communicate& communicate) {
    const Layer& layer = rank.part().network.layers[at(communicate.layer())];
    const auto& op = std::get<Communication>(layer.op);
    const Rows rows{op, rank.micro_batch(), rank.coordinates[at(communicate.axis)]};
    const Halo halo = op.halo;
    const LayerTensors made = rank.tensors.layer(communicate.layer(), communicate.micro_batch);
    const auto size = at(communicate.elements);
    // Of both passes, so that neither moves the other's.
    const std::size_t most = made.output.size() / at(halo.size) * at(halo.size + 2 * halo.own);
    bytes.resize(std::max(most, size) * static_cast<std::size_t>(size_of(communicate.type).value));
    ready.data = {bytes.data(), size, communicate.type};
    const kernels::View memory = ready.data;
    if (communicate.pass == Pass::forward) {
        const kernels::ConstView own = rank.tensors.layer(layer.inputs.front(), communicate.micro_batch).output;
        const float beyond = op.lowest ? -std::numeric_limits<float>::infinity() : 0;
        ready.before = [rows, halo, own, memory] {
            for (std::int64_t row = 0; row < halo.own; ++row) {
                if (!rows.is_lent(row)) continue;
                rows.each_part(own, halo.own, row, memory, row,
                               [](kernels::ConstView from, kernels::View to) { copy(from, to); });
            }
        };
        ready.after = [rows, own, memory, needed = made.output, beyond] {
            assemble(rows, own, memory, needed, beyond);
        };
        return;
    }
    const kernels::ConstView needed = made.diff;
    ready.before = [rows, halo, needed, memory] {
        for (std::int64_t row = 0; row < halo.size; ++row) {
            if (rows.own_of(row) >= 0 || rows.is_nobodys(row)) continue;
            rows.each_part(needed, halo.size, row, memory, row,
                           [](kernels::ConstView from, kernels::View to) { copy(from, to); });
        }
        const std::size_t sent = memory.size() / at(halo.size + 2 * halo.own) * at(halo.size);
        fill(memory.subspan(sent, memory.size() - sent), 0);
    };
    const kernels::View own = gradients.give_received(ready, communicate.layer(), 0, communicate.micro_batch);
    ready.after = [rows, needed, memory, own] { add_up_rows(rows, needed, memory, own); };
}

}  // namespace rehearse::run
