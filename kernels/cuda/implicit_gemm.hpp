// SPDX-License-Identifier: Apache-2.0
// Every pass of every convolution as an implicit GEMM: sums over terms of a weight times a source element that lies at
// a distance from the target's pixel. forward: the terms are (channel, tap), the targets the output's pixels.
// backward_data: the terms are (filter, tap) and, for a stride above 1, the targets are taken in as many launches as
// there are phases, each with just the taps that meet it. backward_weights: the weights are what is summed
// (WeightGradient).
#pragma once

#include "kernels/cuda/division.hpp"
#include "kernels/cuda/team.hpp"

namespace rehearse::kernels::cuda {

/// Where a term lies: in the source beyond the pixel's place (elements of its channel, then pixels), and in the
/// weights.
struct Term {
    std::int32_t source = 0, weight = 0;
    std::int16_t d = 0, h = 0, w = 0, unused = 0;
};

struct Extent3 {
    std::int32_t d = 1, h = 1, w = 1;
    REHEARSE_BOTH constexpr std::int64_t pixels() const { return std::int64_t{d} * h * w; }
};

/// How many pixels there are each way, and what divides a pixel's number.
struct Grid : Extent3 {
    Divisor area, down, across;
    Grid() = default;
    Grid(const Extent3& extent) : Extent3(extent), area(extent.pixels()), down(extent.h), across(extent.w) {}  // NOLINT
};

/// Counts are of one group; images times pixels are below 2^31. Pixel (d, h, w) of an image reads the source at pixel *
/// step + the term's (d, h, w), nothing outside of `extent`, and is written at target_first + its dot product with
/// target_step.
struct ImplicitGemm {
    const void* source = nullptr;
    const void* weights = nullptr;
    const void* bias = nullptr;  // {groups * rows} or none
    void* target = nullptr;
    const Term* terms = nullptr;
    std::int32_t term_count = 0, rows = 0, images = 0, groups = 1;
    Grid pixels;
    Extent3 step, extent;
    std::int64_t source_image = 0, source_group = 0, target_image = 0, target_group = 0, weight_group = 0;
    std::int32_t target_row = 0, weight_row = 0, target_first = 0;
    Extent3 target_step;
};

/// One pixel of one image.
struct Column {
    std::int64_t source = 0, target = 0;  // of its image (and group)
    std::int32_t d = 0, h = 0, w = 0;     // where it begins in the source
    bool valid = false;
};

REHEARSE_BOTH inline std::int64_t column_count(const ImplicitGemm& s) { return s.images * s.pixels.pixels(); }

REHEARSE_BOTH inline Column column(const ImplicitGemm& s, std::int64_t index, std::int64_t group) {
    if (index >= column_count(s)) return {};
    const auto number = static_cast<std::int32_t>(index), image = number / s.pixels.area;
    const std::int32_t pixel = number - image * static_cast<std::int32_t>(s.pixels.area);
    const std::int32_t row = pixel / s.pixels.across, w = pixel - row * s.pixels.w;
    const std::int32_t d = row / s.pixels.down, h = row - d * s.pixels.h;
    return {image * s.source_image + group * s.source_group,
            image * s.target_image + group * s.target_group + s.target_first + std::int64_t{d} * s.target_step.d +
                std::int64_t{h} * s.target_step.h + std::int64_t{w} * s.target_step.w,
            d * s.step.d,
            h * s.step.h,
            w * s.step.w,
            true};
}

template <typename Element>
REHEARSE_BOTH inline Element source_at(const ImplicitGemm& s, const Column& at, const Term& term) {
    const std::int32_t d = at.d + term.d, h = at.h + term.h, w = at.w + term.w;
    const bool inside = at.valid && static_cast<std::uint32_t>(d) < static_cast<std::uint32_t>(s.extent.d) &&
                        static_cast<std::uint32_t>(h) < static_cast<std::uint32_t>(s.extent.h) &&
                        static_cast<std::uint32_t>(w) < static_cast<std::uint32_t>(s.extent.w);
    if (!inside) return Element{};
    return static_cast<const Element*>(
        s.source)[at.source + term.source + (std::int64_t{d} * s.extent.h + h) * s.extent.w + w];
}

/// Tile by tile: a block has `Tile::rows` rows and `Tile::columns` pixels of a group, and sums over all terms; while it
/// multiplies some, the next are on their way.
template <typename Element, typename Tile>
struct TiledGemm : ImplicitGemm {
    static constexpr int threads = Tile::threads;
    static constexpr int a_words = Tile::rows * Tile::words / threads, b_words = Tile::columns * Tile::words / threads;
    static constexpr int depth = Tile::words * Tile::elements_per_word;
    static_assert(threads % Tile::columns == 0 && threads % Tile::words == 0);
    static constexpr int resident = Tile::rows == 64 ? 3 : 1;
    using Shared = typename Tile::Shared;
    struct Registers {
        typename Tile::Accumulators sums;
        typename Tile::Word a[a_words], b[b_words];
        Column column;
    };

    REHEARSE_BOTH Blocks blocks() const {
        return {divide_up(column_count(*this), Tile::columns), divide_up(rows, Tile::rows), groups};
    }

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t first_row = block.y * Tile::rows, first_column = block.x * Tile::columns;
        team.each([&](int thread, Registers& r) {
            Tile::clear(r.sums);
            r.column = column(*this, first_column + thread % Tile::columns, block.z);
            fetch(thread, r, first_row, block.z, 0);
            put(team.shared(), 0, thread, r);
        });
        const auto turns = static_cast<int>(divide_up(term_count, depth));
        for (int turn = 0; turn < turns; ++turn) {
            const bool more = turn + 1 < turns;
            team.alone([&](int thread, Registers& r) {
                if (more) fetch(thread, r, first_row, block.z, (turn + 1) * depth);
            });
            Tile::multiply(team, turn % 2);
            team.each([&](int thread, Registers& r) {
                if (more) put(team.shared(), (turn + 1) % 2, thread, r);
            });
        }
        team.each([&](int thread, Registers& r) {
            Tile::results(thread, r.sums, [&](int row, int at, float sum) {
                store(first_row + row, column(*this, first_column + at, block.z), block.z, sum);
            });
        });
    }

private:
    REHEARSE_BOTH Element weight_at(std::int64_t row, std::int64_t group, int term) const {
        if (row >= rows || term >= term_count) return Element{};
        return static_cast<const Element*>(weights)[group * weight_group + row * weight_row + terms[term].weight];
    }
    REHEARSE_BOTH Element value_at(const Column& at, int term) const {
        return term < term_count ? source_at<Element>(*this, at, terms[term]) : Element{};
    }

    // Threads side by side take words side by side along k of a, pixels side by side of b.
    REHEARSE_BOTH void fetch(int thread, Registers& r, std::int64_t first_row, std::int64_t group, int first) const {
        constexpr int each = Tile::elements_per_word;
        REHEARSE_UNROLL
        for (int i = 0; i < a_words; ++i) {
            const std::int64_t row = first_row + (thread + i * threads) / Tile::words;
            const int term = first + thread % Tile::words * each;
            r.a[i] = Tile::word(weight_at(row, group, term), each == 2 ? weight_at(row, group, term + 1) : Element{});
        }
        REHEARSE_UNROLL
        for (int i = 0; i < b_words; ++i) {
            const int term = first + (thread / Tile::columns + i * (threads / Tile::columns)) * each;
            r.b[i] = Tile::word(value_at(r.column, term), each == 2 ? value_at(r.column, term + 1) : Element{});
        }
    }
    static REHEARSE_BOTH void put(Shared& shared, int buffer, int thread, const Registers& r) {
        REHEARSE_UNROLL
        for (int i = 0; i < a_words; ++i) {
            Tile::put_a(shared, buffer, (thread + i * threads) / Tile::words, thread % Tile::words, r.a[i]);
        }
        REHEARSE_UNROLL
        for (int i = 0; i < b_words; ++i) {
            Tile::put_b(shared, buffer, thread % Tile::columns, thread / Tile::columns + i * (threads / Tile::columns),
                        r.b[i]);
        }
    }
    REHEARSE_BOTH void store(std::int64_t row, const Column& at, std::int64_t group, float sum) const {
        if (row >= rows || !at.valid) return;
        if (bias != nullptr) sum += to_float(static_cast<const Element*>(bias)[group * rows + row]);
        static_cast<Element*>(target)[at.target + row * target_row] = from_float<Element>(sum);
    }
};

/// A thread has one pixel and `at_once` rows and takes one term after the other: for groups of few channels, where a
/// tile would be mostly empty.
template <typename Element>
struct DirectConvolution : ImplicitGemm {
    static constexpr int threads = 128, at_once = 4;
    struct Shared {};
    struct Registers {};

    REHEARSE_BOTH Blocks blocks() const {
        return {divide_up(column_count(*this), threads), divide_up(rows, at_once), groups};
    }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        team.alone([&](int thread, Registers&) {
            const Column at = column(*this, block.x * threads + thread, block.z);
            if (at.valid) sum(at, block.y * at_once, block.z);
        });
    }

private:
    REHEARSE_BOTH void sum(const Column& at, std::int64_t row, std::int64_t group) const {
        const auto* factors = static_cast<const Element*>(weights) + group * weight_group;
        float sums[at_once] = {};
        for (int t = 0; t < term_count; ++t) {
            const Term term = terms[t];
            const float value = to_float(source_at<Element>(*this, at, term));
            REHEARSE_UNROLL
            for (int i = 0; i < at_once; ++i) {
                if (row + i < rows) sums[i] += value * to_float(factors[(row + i) * weight_row + term.weight]);
            }
        }
        REHEARSE_UNROLL
        for (int i = 0; i < at_once; ++i) {
            if (row + i >= rows) continue;
            if (bias != nullptr) sums[i] += to_float(static_cast<const Element*>(bias)[group * rows + row + i]);
            static_cast<Element*>(target)[at.target + (row + i) * target_row] = from_float<Element>(sums[i]);
        }
    }
};

}  // namespace rehearse::kernels::cuda
