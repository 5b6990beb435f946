// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights from tensors whose channels lie together: pixel by pixel an outer product of
// vectors, on tensor cores. Pixels are split among blocks as in weight_gradient.hpp.
#pragma once

#include "kernels/cuda/implicit_gemm.hpp"
#include "kernels/cuda/packed_tile.hpp"

namespace rehearse::kernels::cuda {

/// Sources {images, pixels, vectors}, `source_pixel` of them a pixel, and diff_dst in `target`'s place, which is read,
/// {images, pixels, groups * rows / 8}; counts and distances in both are of vectors. partial[split][group][row][term] =
/// eight sums over the split's pixels, f32; a group's rows are a multiple of 8.
template <typename Tile>
struct PackedGradient : ImplicitGemm {
    using Element = typename Tile::Element;
    static constexpr int threads = Tile::threads, stages = Tile::stages, depth = Tile::depth, across = Tile::across;
    static constexpr int lines = threads / across, copies = depth / lines;  // steps of k that are copied at once
    static_assert(threads % across == 0 && depth % lines == 0);
    static constexpr int resident = threads == 256 ? 2 : 4;
    struct Shared {
        typename Tile::Shared tile;
    };
    struct Registers {
        typename Tile::Accumulators sums;
    };
    std::int64_t source_pixel = 0;
    float* partial = nullptr;
    std::int32_t splits = 1;

    REHEARSE_BOTH Blocks blocks() const {
        return {divide_up(term_count, across), divide_up(rows, Tile::rows), std::int64_t{groups} * splits};
    }

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t group = block.z % groups, split = block.z / groups;
        const std::int64_t first_row = block.y * Tile::rows, first_term = block.x * across;
        const std::int64_t all = divide_up(column_count(*this), depth), share = divide_up(all, splits);
        const std::int64_t begin = split * share, end = begin + share < all ? begin + share : all;
        const auto turns = static_cast<int>(begin < end ? end - begin : 0);
        const Place at{first_row / 8, first_term, group, begin};
        team.each([&](int, Registers& r) { Tile::clear(r.sums); });
        for (int turn = 0; turn < stages - 1; ++turn) {
            if (turn < turns) start(team, at, turn);
            team.commit();
        }
        for (int turn = 0; turn < turns; ++turn) {
            team.template wait<stages - 2, false>();
            if (turn + stages - 1 < turns) start(team, at, turn + stages - 1);
            team.commit();
            Tile::multiply(team, turn % stages);
        }
        team.alone([&](int thread, Registers& r) {
            float* const to = partial + (split * groups + group) * weight_group;
            Tile::results(thread, r.sums, [&](int row, int column, float sum) {
                if (first_row + row >= rows || first_term + column / 8 >= term_count) return;
                to[(first_row + row) * weight_row + first_term * 8 + column] = sum;
            });
        });
    }

private:
    /// Of a block: its first vector of rows, its first term, its group and its first step.
    struct Place {
        std::int64_t row, term, group, begin;
    };
    // A thread copies the same vector of rows and the same term of several pixels; what lies outside becomes 0.
    template <typename Team>
    REHEARSE_BOTH void start(Team& team, const Place& place, int turn) const {
        team.alone([&](int thread, Registers&) {
            const int stage = turn % stages, vector = thread % across;
            const bool has_rows = place.row + vector < rows / 8, has_term = place.term + vector < term_count;
            const Term term = terms[has_term ? place.term + vector : 0];
            auto& tile = team.shared().tile;
            REHEARSE_UNROLL
            for (int i = 0; i < copies; ++i) {
                const int line = thread / across + i * lines;
                const Column one = column(*this, (place.begin + turn) * depth + line, place.group);
                const bool given = one.valid && has_rows;
                team.copy(tile.a[stage][line][vector],
                          static_cast<const Vector*>(target) + (given ? one.target + place.row + vector : 0), given);
                const std::int32_t d = one.d + term.d, h = one.h + term.h, w = one.w + term.w;
                const bool inside = one.valid && has_term &&
                                    static_cast<std::uint32_t>(d) < static_cast<std::uint32_t>(extent.d) &&
                                    static_cast<std::uint32_t>(h) < static_cast<std::uint32_t>(extent.h) &&
                                    static_cast<std::uint32_t>(w) < static_cast<std::uint32_t>(extent.w);
                const std::int64_t pixel = (std::int64_t{d} * extent.h + h) * extent.w + w;
                const std::int64_t from = one.source + pixel * source_pixel + term.source;
                team.copy(tile.b[stage][line][vector], static_cast<const Vector*>(source) + (inside ? from : 0),
                          inside);
            }
        });
    }
};

}  // namespace rehearse::kernels::cuda
