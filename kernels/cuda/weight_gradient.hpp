// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights: each weight's sum over all pixels of all images. There are many pixels and
// few weights, so the pixels are split among blocks, whose partial sums are added up in a fixed order: the same bits
// every time.
#pragma once

#include "kernels/cuda/implicit_gemm.hpp"

namespace rehearse::kernels::cuda {

/// As ImplicitGemm, with diff_dst in `target`'s place, which is read: partial[split][group][row][weight of the term] =
/// sum over the split's pixels. {splits, groups * weight_group} f32.
template <typename Element, typename Tile>
struct WeightGradient : ImplicitGemm {
    static constexpr int threads = Tile::threads;
    static constexpr int a_words = Tile::rows * Tile::words / threads, b_words = Tile::columns * Tile::words / threads;
    static constexpr int depth = Tile::words * Tile::elements_per_word;
    static_assert(threads % Tile::words == 0);
    static constexpr int resident = Tile::rows == 128 ? 1 : threads == 128 ? 3 : 2;
    using Shared = typename Tile::Shared;
    struct Registers {
        typename Tile::Accumulators sums;
        typename Tile::Word a[a_words], b[b_words];
    };
    float* partial = nullptr;
    std::int32_t splits = 1;

    REHEARSE_BOTH Blocks blocks() const {
        return {divide_up(term_count, Tile::columns), divide_up(rows, Tile::rows), std::int64_t{groups} * splits};
    }

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const std::int64_t group = block.z % groups, split = block.z / groups;
        const std::int64_t first_row = block.y * Tile::rows, first_term = block.x * Tile::columns;
        // Whole steps for each split, so that none begins in the middle of a word.
        const std::int64_t all = divide_up(column_count(*this), depth), share = divide_up(all, splits);
        const std::int64_t begin = split * share, end = begin + share < all ? begin + share : all;
        team.each([&](int thread, Registers& r) {
            Tile::clear(r.sums);
            if (begin >= end) return;
            fetch(thread, r, first_row, first_term, group, begin * depth);
            put(team.shared(), 0, thread, r);
        });
        for (std::int64_t turn = begin; turn < end; ++turn) {
            const bool more = turn + 1 < end;
            const int buffer = static_cast<int>((turn - begin) % 2);
            team.alone([&](int thread, Registers& r) {
                if (more) fetch(thread, r, first_row, first_term, group, (turn + 1) * depth);
            });
            Tile::multiply(team, buffer);
            team.each([&](int thread, Registers& r) {
                if (more) put(team.shared(), 1 - buffer, thread, r);
            });
        }
        team.each([&](int thread, Registers& r) {
            Tile::results(thread, r.sums, [&](int row, int at, float sum) {
                const std::int64_t to = first_row + row, term = first_term + at;
                if (to >= rows || term >= term_count) return;
                partial[(split * groups + group) * weight_group + to * weight_row + terms[term].weight] = sum;
            });
        });
    }

private:
    REHEARSE_BOTH Element difference_at(const Column& at, std::int64_t row) const {
        if (!at.valid || row >= rows) return Element{};
        return static_cast<const Element*>(target)[at.target + row * target_row];
    }
    REHEARSE_BOTH Element value_at(const Column& at, std::int64_t term) const {
        return term < term_count ? source_at<Element>(*this, at, terms[term]) : Element{};
    }

    // A thread has the same pixels, those of its word, of several rows and terms.
    REHEARSE_BOTH void fetch(int thread, Registers& r, std::int64_t first_row, std::int64_t first_term,
                             std::int64_t group, std::int64_t first) const {
        constexpr int each = Tile::elements_per_word;
        const std::int64_t index = first + thread % Tile::words * each;
        const Column one = column(*this, index, group);
        const Column two = each == 2 ? column(*this, index + 1, group) : Column{};
        REHEARSE_UNROLL
        for (int i = 0; i < a_words; ++i) {
            const std::int64_t row = first_row + (thread + i * threads) / Tile::words;
            r.a[i] = Tile::word(difference_at(one, row), difference_at(two, row));
        }
        REHEARSE_UNROLL
        for (int i = 0; i < b_words; ++i) {
            const std::int64_t term = first_term + (thread + i * threads) / Tile::words;
            r.b[i] = Tile::word(value_at(one, term), value_at(two, term));
        }
    }
    static REHEARSE_BOTH void put(Shared& shared, int buffer, int thread, const Registers& r) {
        const int k = thread % Tile::words;
        REHEARSE_UNROLL
        for (int i = 0; i < a_words; ++i) {
            Tile::put_a(shared, buffer, (thread + i * threads) / Tile::words, k, r.a[i]);
        }
        REHEARSE_UNROLL
        for (int i = 0; i < b_words; ++i) {
            Tile::put_b(shared, buffer, (thread + i * threads) / Tile::words, k, r.b[i]);
        }
    }
};

/// to[i] = sum over the splits of partial[split][i].
template <typename Element>
struct AddUp {
    static constexpr int threads = 256;
    struct Shared {};
    struct Registers {};
    const float* partial = nullptr;
    void* to = nullptr;
    std::int64_t count = 0;
    std::int32_t splits = 1;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(count, threads)}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        team.alone([&](int thread, Registers&) {
            const std::int64_t i = block.x * threads + thread;
            if (i >= count) return;
            float sum = 0;
            for (int split = 0; split < splits; ++split) sum += partial[split * count + i];
            static_cast<Element*>(to)[i] = from_float<Element>(sum);
        });
    }
};

}  // namespace rehearse::kernels::cuda
