// SPDX-License-Identifier: Apache-2.0
#include "kernels/general/rotary.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::kernels::general {

Turns::Turns(const Elementwise& op)
    : rotation_(*rotation_of(op)),
      rows_(elements(op.shape) / op.shape.back()),
      width_(op.shape.back()),
      heads_(static_cast<std::int64_t>(op.numbers.front()) / rotation_.turned) {
    if (rotation_.base == 0) return;
    table_rows_ = op.shape.size() < 2 ? 1 : op.shape[op.shape.size() - 2];
    compute_from(0, 1);
}

void Turns::compute_from(std::int64_t first, std::int64_t step) {
    first_row_ = first;
    step_ = step;
    computed_cosines_.clear();
    computed_sines_.clear();
    const std::int64_t half = rotation_.turned / 2;
    for (std::int64_t row = first; row < first + step * table_rows_; row += step) {
        for (std::int64_t i = 0; i < rotation_.turned; ++i) {
            const std::int64_t pair = rotation_.neighbours ? i / 2 : i % half;
            const double angle =
                static_cast<double>(row) *
                std::pow(rotation_.base, -2.0 * static_cast<double>(pair) / static_cast<double>(rotation_.turned));
            computed_cosines_.push_back(static_cast<float>(std::cos(angle)));
            computed_sines_.push_back(static_cast<float>(std::sin(angle)));
        }
    }
    cosines_ = computed_cosines_.data();
    sines_ = computed_sines_.data();
}

void Turns::take(std::span<const std::vector<float>> fixed, std::int64_t first_row,
                 std::span<const std::int64_t> places) {
    if (rotation_.base != 0) {
        const std::int64_t first = places.empty() ? first_row : places.front();
        const std::int64_t step = places.size() < 2 ? 1 : places[1] - places[0];
        if (first != first_row_ || step != step_) compute_from(first, step);
        return;
    }
    require(first_row == 0 && places.empty(), "tables are of whole sequences");
    require(fixed.size() == 2 && fixed[0].size() == fixed[1].size() && !fixed[0].empty() &&
                static_cast<std::int64_t>(fixed[0].size()) % rotation_.turned == 0,
            "rotary embeddings are given a table of cosines and one of sines");
    cosines_ = fixed[0].data();
    sines_ = fixed[1].data();
    table_rows_ = static_cast<std::int64_t>(fixed[0].size()) / rotation_.turned;
}

std::string why_not_turned(const Elementwise& op) {
    const auto rotation = rotation_of(op);
    if (!rotation) return "how its numbers are turned is not said: it is priced only";
    const auto [size, turned, first, neighbours, base] = *rotation;
    if (size < 2 || turned < 2 || turned % 2 != 0 || first < 0 || first + turned > size)
        return "a head has pairs of numbers that are turned";
    if (op.shape.empty() || op.shape.back() % size != 0) return "its rows are no whole heads";
    const double heads = op.numbers.front() / static_cast<double>(turned);
    if (heads != std::floor(heads) || heads < 1 || heads > static_cast<double>(op.shape.back() / size))
        return "it turns a part of a head";
    if (!(base >= 0)) return "its angles have no base above 0";
    if (op.inputs.size() != 1 || op.inputs.front() != op.shape) return "it turns other rows than it reads";
    return "";
}

}  // namespace rehearse::kernels::general
