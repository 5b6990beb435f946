// SPDX-License-Identifier: Apache-2.0
// Implicit GEMM (implicit_gemm.hpp) of 16-bit numbers whose channels lie together, eight to a vector: a term is a tap
// of eight channels. Sources and weights are laid so first, unless tensors are channels last and lie so already.
#pragma once

#include "kernels/cuda/implicit_gemm.hpp"
#include "kernels/cuda/packed_tile.hpp"
#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Sources are {images, pixels, vectors}, `source_pixel` of them a pixel, weights {groups, rows, terms} vectors; counts
/// and distances in both are of vectors. Targets and the bias are as they are in implicit_gemm.hpp; where a target's
/// rows lie together (target_row 1), a tile goes through shared memory and leaves by eight of them at once.
template <typename Tile>
struct PackedGemm : ImplicitGemm {
    using Element = typename Tile::Element;
    static constexpr int threads = Tile::threads, vectors = Tile::vectors, stages = Tile::stages;
    static constexpr int a_copies = Tile::rows * vectors / threads, b_copies = Tile::columns * vectors / threads;
    static_assert(threads % vectors == 0 && Tile::rows * vectors % threads == 0);
    static constexpr int pitch = Tile::rows / 8 + 1;  // vectors of a column on its way out: columns in different banks
    static_assert(sizeof(Vector) * Tile::columns * pitch <= sizeof(typename Tile::Shared));
    struct Shared {
        typename Tile::Shared tile;
        struct {
            std::int64_t source, target;  // target -1: no column
            std::int32_t d, h, w;
        } columns[Tile::columns];
    };
    struct Registers {
        typename Tile::Accumulators sums;
    };
    /// Blocks that a multiprocessor is to hold: two of 256 threads leave 128 registers each, 64 of them for sums.
    static constexpr int resident = threads == 256 ? 2 : 4;
    std::int64_t source_pixel = 0;

    REHEARSE_BOTH Blocks blocks() const {
        return {divide_up(column_count(*this), Tile::columns), divide_up(rows, Tile::rows), groups};
    }

    /// The copies of a step are under way while `stages` - 1 steps before it are multiplied.
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t first_row = block.y * Tile::rows, first_column = block.x * Tile::columns;
        team.each([&](int thread, Registers& r) {
            Tile::clear(r.sums);
            for (int c = thread; c < Tile::columns; c += threads) {
                const Column at = column(*this, first_column + c, block.z);
                team.shared().columns[c] = {at.source, at.valid ? at.target : -1, at.d, at.h, at.w};
            }
        });
        const auto turns = static_cast<int>(divide_up(term_count, vectors));
        for (int turn = 0; turn < stages - 1; ++turn) {
            if (turn < turns) start(team, first_row, block.z, turn);
            team.commit();
        }
        for (int turn = 0; turn < turns; ++turn) {
            team.template wait<stages - 2, Tile::by_warpgroups>();
            // A warpgroup's products go on while the next copies are begun, over what the products before have read.
            if constexpr (Tile::by_warpgroups) {
                Tile::multiply(team, turn % stages);
                Tile::template wait<1>(team);
            }
            if (turn + stages - 1 < turns) start(team, first_row, block.z, turn + stages - 1);
            team.commit();
            if constexpr (!Tile::by_warpgroups) Tile::multiply(team, turn % stages);
        }
        if constexpr (Tile::by_warpgroups) Tile::template wait<0>(team);
        if (target_row == 1) return leave(team, first_row, block.z);
        team.each([&](int thread, Registers& r) {
            Tile::results(thread, r.sums, [&](int row, int at, float sum) {
                store(first_row + row, team.shared().columns[at].target, block.z, sum);
            });
        });
    }

private:
    // Column by column into the factors' place, which nobody reads any more, and on from there.
    template <typename Team>
    REHEARSE_BOTH void leave(Team& team, std::int64_t first_row, std::int64_t group) const {
        team.template wait<0, false>();
        team.each([&](int thread, Registers& r) {
            auto* const room = reinterpret_cast<std::uint16_t*>(&team.shared().tile);
            Tile::results(thread, r.sums, [&](int row, int at, float sum) {
                room[at * pitch * 8 + row] = from_float<Element>(with_bias(first_row + row, group, sum)).bits;
            });
        });
        team.alone([&](int thread, Registers&) {
            constexpr int across = Tile::rows / 8;
            const auto* const room = reinterpret_cast<const Vector*>(&team.shared().tile);
            // A tensor of one pixel lies so, too, wherever it begins.
            const bool whole = rows % 8 == 0 && reinterpret_cast<std::uintptr_t>(target) % 16 == 0;
            REHEARSE_ROLLED
            for (int i = thread; i < Tile::columns * across; i += threads) {
                const std::int64_t to = team.shared().columns[i / across].target, row = first_row + i % across * 8;
                if (to < 0 || row >= rows) continue;
                const Vector made = room[i / across * pitch + i % across];
                auto* const begin = static_cast<std::uint16_t*>(target) + to + row;
                if (whole) {
                    Words<4> words;
                    REHEARSE_UNROLL
                    for (int e = 0; e < 4; ++e)
                        words.of[e] = made.bits[2 * e] | std::uint32_t{made.bits[2 * e + 1]} << 16;
                    put_words(begin, words);
                    continue;
                }
                REHEARSE_UNROLL
                for (int e = 0; e < 8; ++e) {
                    if (row + e < rows) begin[e] = made.bits[e];
                }
            }
        });
    }
    // Threads side by side take vectors side by side; what lies outside becomes 0.
    template <typename Team>
    REHEARSE_BOTH void start(Team& team, std::int64_t first_row, std::int64_t group, int turn) const {
        team.alone([&](int thread, Registers&) {
            const int stage = turn % stages, vector = thread % vectors, index = turn * vectors + vector;
            const bool there = index < term_count;
            const Term term = terms[there ? index : 0];
            auto& tile = team.shared().tile;
            const auto* const a = static_cast<const Vector*>(weights);
            REHEARSE_UNROLL
            for (int i = 0; i < a_copies; ++i) {
                const int row = (thread + i * threads) / vectors;
                const bool inside = there && first_row + row < rows;
                const std::int64_t at = group * weight_group + (first_row + row) * weight_row + index;
                team.copy(Tile::a_at(tile, stage, row, vector), a + (inside ? at : 0), inside);
            }
            const auto* const b = static_cast<const Vector*>(source);
            REHEARSE_UNROLL
            for (int i = 0; i < b_copies; ++i) {
                const auto& from = team.shared().columns[(thread + i * threads) / vectors];
                const std::int32_t d = from.d + term.d, h = from.h + term.h, w = from.w + term.w;
                const bool inside = there && from.target >= 0 &&
                                    static_cast<std::uint32_t>(d) < static_cast<std::uint32_t>(extent.d) &&
                                    static_cast<std::uint32_t>(h) < static_cast<std::uint32_t>(extent.h) &&
                                    static_cast<std::uint32_t>(w) < static_cast<std::uint32_t>(extent.w);
                const std::int64_t pixel = (std::int64_t{d} * extent.h + h) * extent.w + w;
                const std::int64_t at = from.source + pixel * source_pixel + term.source;
                team.copy(Tile::b_at(tile, stage, (thread + i * threads) / vectors, vector), b + (inside ? at : 0),
                          inside);
            }
        });
    }
    REHEARSE_BOTH void store(std::int64_t row, std::int64_t at, std::int64_t group, float sum) const {
        if (row >= rows || at < 0) return;
        static_cast<Element*>(target)[at + row * target_row] = from_float<Element>(with_bias(row, group, sum));
    }
    REHEARSE_BOTH float with_bias(std::int64_t row, std::int64_t group, float sum) const {
        if (bias == nullptr || row >= rows) return sum;
        return sum + to_float(static_cast<const Element*>(bias)[group * rows + row]);
    }
};

/// Images {images, groups * channels, pixels} of any 16-bit type to {images, pixels, groups * vectors} vectors; beyond
/// the last channel of a group is 0.
struct LayChannels {
    static constexpr int threads = 256, side = 64;  // pixels and channels of a block
    struct Shared {
        std::uint16_t tile[side][side + 2];  // [channel][pixel]
    };
    struct Registers {};
    const void* from = nullptr;
    Vector* to = nullptr;
    std::int64_t images = 1, groups = 1, channels = 1, pixels = 1, vectors = 1;  // channels, vectors: of a group

    REHEARSE_BOTH std::int64_t tiles_down() const { return divide_up(8 * vectors, side); }
    REHEARSE_BOTH Blocks blocks() const { return {divide_up(pixels, side), tiles_down() * groups, images}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t group = block.y / tiles_down(), first = block.y % tiles_down() * side;
        const std::int64_t first_pixel = block.x * side;
        team.each([&](int thread, Registers&) {
            for (int i = thread; i < side * side; i += threads) {
                const std::int64_t channel = first + i / side, pixel = first_pixel + i % side;
                const bool inside = channel < channels && pixel < pixels;
                const std::int64_t plane = (block.z * groups + group) * channels + channel;
                team.shared().tile[i / side][i % side] =
                    inside ? static_cast<const std::uint16_t*>(from)[plane * pixels + pixel] : std::uint16_t{0};
            }
        });
        team.alone([&](int thread, Registers&) {
            constexpr int across = side / 8;
            for (int i = thread; i < side * across; i += threads) {
                const std::int64_t pixel = first_pixel + i / across, vector = first / 8 + i % across;
                if (pixel >= pixels || vector >= vectors) continue;
                Vector made;
                REHEARSE_UNROLL
                for (int e = 0; e < 8; ++e) made.bits[e] = team.shared().tile[i % across * 8 + e][i / across];
                to[((block.z * pixels + pixel) * groups + group) * vectors + vector] = made;
            }
        });
    }
};

/// Images {pixels, channels} of any 16-bit type to {pixels, vectors} vectors; beyond the last channel is 0.
struct PadPixels : PointWise {
    const void* from = nullptr;
    Vector* to = nullptr;
    std::int64_t channels = 1;
    Divisor vectors;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t pixel = i / vectors, first = (i - pixel * vectors) * 8;
            Vector made;
            REHEARSE_UNROLL
            for (int e = 0; e < 8; ++e) {
                made.bits[e] = first + e < channels
                                   ? static_cast<const std::uint16_t*>(from)[pixel * channels + first + e]
                                   : std::uint16_t{0};
            }
            to[i] = made;
        });
    }
};

/// Weights of any 16-bit type to {groups, rows, terms} vectors: of a term, whose `weight` is its tap and whose `source`
/// its vector, number e is that of channel 8 * source + e, at the distances of groups, rows and channels.
struct LayTerms : PointWise {
    const void* from = nullptr;
    Vector* to = nullptr;
    const Term* terms = nullptr;
    Divisor rows, term_count;
    std::int64_t channels = 1, group_step = 0, row_step = 0, channel_step = 0;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t row = i / term_count, group = row / rows;
            const Term term = terms[i - row * term_count];
            const std::int64_t first = group * group_step + (row - group * rows) * row_step + term.weight;
            Vector made;
            REHEARSE_UNROLL
            for (int e = 0; e < 8; ++e) {
                const std::int64_t channel = std::int64_t{term.source} * 8 + e;
                made.bits[e] = channel < channels
                                   ? static_cast<const std::uint16_t*>(from)[first + channel * channel_step]
                                   : std::uint16_t{0};
            }
            to[i] = made;
        });
    }
};

}  // namespace rehearse::kernels::cuda
