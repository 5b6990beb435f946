// SPDX-License-Identifier: Apache-2.0
// Which numbers of a sample rotary embeddings turn, with which partner, by which sine and cosine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/rotary.hpp"

namespace rehearse::kernels::general {

class Turns {
public:
    explicit Turns(const Elementwise& op);
    /// The tables of the file, where the operator has no base; anything else where it has. `first_row`: where its rows
    /// begin in the whole sequence; with tables 0. `places`: where its rows lie there, if not one
    /// after the other: every so many-th.
    void take(std::span<const std::vector<float>> fixed, std::int64_t first_row = 0,
              std::span<const std::int64_t> places = {});

    std::int64_t rows() const { return rows_; }  // of a sample, those of all tables one after the other
    std::int64_t width() const { return width_; }
    /// use(a, b, cos of a, cos of b, sin of a, sin of b) of each pair of numbers of a row that is turned:
    /// a' = a cos_a - b sin_a, b' = b cos_b + a sin_b. use(i, i, 1, 1, 0, 0) of each number that stays.
    template <typename Use>
    void for_each(std::int64_t row, Use use) const {
        const std::int64_t half = rotation_.turned / 2,
                           table = (table_rows_ == 1 ? 0 : row % table_rows_) * rotation_.turned;
        for (std::int64_t head = 0; head < width_ / rotation_.size; ++head) {
            const std::int64_t begin = head * rotation_.size, first = begin + rotation_.first;
            const bool stays = head >= heads_;
            for (std::int64_t i = begin; i < begin + rotation_.size; ++i)
                if (stays || i < first || i >= first + rotation_.turned) use(i, i, 1.0F, 1.0F, 0.0F, 0.0F);
            for (std::int64_t pair = 0; !stays && pair < half; ++pair) {
                const std::int64_t a = rotation_.neighbours ? 2 * pair : pair;
                const std::int64_t b = rotation_.neighbours ? a + 1 : a + half;
                use(first + a, first + b, cosines_[table + a], cosines_[table + b], sines_[table + a],
                    sines_[table + b]);
            }
        }
    }

private:
    /// Of rows first, first + step, ...
    void compute_from(std::int64_t first, std::int64_t step);

    Rotation rotation_;
    std::int64_t rows_, width_, heads_, table_rows_ = 1, first_row_ = 0, step_ = 1;
    std::vector<float> computed_cosines_, computed_sines_;
    const float* cosines_ = nullptr;
    const float* sines_ = nullptr;
};

/// Why a rotary operator cannot be run, by its own numbers; empty where it can.
std::string why_not_turned(const Elementwise& op);

}  // namespace rehearse::kernels::general
