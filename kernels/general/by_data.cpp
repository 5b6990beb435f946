// SPDX-License-Identifier: Apache-2.0
#include "kernels/general/by_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::kernels::general {
namespace {

bool of_rows(const Rearrangement& op) { return op.kind == "takerows" || op.kind == "addrows"; }

std::size_t axis_of(const Rearrangement& op) { return of_rows(op) ? 0 : at(op.numbers.front()); }

std::int64_t inner_of(const Rearrangement& op) {
    const Shape& shape = op.inputs.front();
    return elements(Shape(shape.begin() + static_cast<std::ptrdiff_t>(axis_of(op)) + 1, shape.end()));
}

}  // namespace

bool by_data(const Rearrangement& op) {
    return op.kind.starts_with("largest") || op.kind.starts_with("smallest") || op.kind.ends_with("each") ||
           of_rows(op);
}

std::string why_not_by_data(const Rearrangement& op) {
    if (of_rows(op)) return "";  // core has checked its shapes
    const std::size_t inputs = op.kind == "puteach" ? 3 : op.kind == "takeeach" ? 2 : 1;
    if (op.inputs.size() != inputs) return fmt::format("it has {} inputs, takes {}", op.inputs.size(), inputs);
    const Shape& from = op.inputs.front();
    if (op.numbers.size() != 1 || op.numbers[0] < 0 || axis_of(op) >= from.size()) return "the axis is missing";
    const Shape& moved = inputs == 1 ? op.output : op.inputs[1];
    if (moved.size() != from.size()) return "indices have as many axes as what they pick from";
    for (std::size_t d = 0; d < from.size(); ++d) {
        if (moved[d] > from[d] && (inputs == 1 || d != axis_of(op))) return "it takes more than there is";
        if (inputs == 1 && d != axis_of(op) && moved[d] != from[d]) return "it sorts along one axis";
    }
    const Shape& made = inputs == 3 ? from : moved;
    if (op.output != made || (inputs == 3 && op.inputs[2] != moved)) return "its result has another shape";
    return "";
}

ByData::ByData(const Rearrangement& op)
    : op_(op),
      rows_(of_rows(op)),
      adds_(op.kind == "addrows"),
      sorts_(!rows_ && !op.kind.ends_with("each")),
      puts_(op.kind == "puteach"),
      positions_(op.kind.ends_with("at")),
      largest_(op.kind.starts_with("largest")),
      along_(op.inputs.front()[axis_of(op)]),
      inner_(inner_of(op)),
      taken_((sorts_ ? op.output : op.inputs[1])[axis_of(op)]) {}

std::vector<std::int64_t> ByData::sorted(const float* src) const {
    std::vector<std::int64_t> all(at(elements(op_.output)));
    std::vector<std::int64_t> order(at(along_));
    const std::int64_t lines = elements(op_.inputs.front()) / along_;
    for (std::int64_t line = 0; line < lines; ++line) {
        const std::int64_t outer = line / inner_, within = line % inner_, first = outer * along_ * inner_ + within;
        std::iota(order.begin(), order.end(), 0);
        const auto before = [&](std::int64_t a, std::int64_t b) {
            const float x = src[first + a * inner_], y = src[first + b * inner_];
            return x == y ? a < b : largest_ ? x > y : x < y;
        };
        std::partial_sort(order.begin(), order.begin() + taken_, order.end(), before);
        for (std::int64_t i = 0; i < taken_; ++i)
            all[at((outer * taken_ + i) * inner_ + within)] = first + order[at(i)] * inner_;
    }
    return all;
}

std::vector<std::int64_t> ByData::indexed(const float* indices) const {
    const Shape& table = op_.inputs[0];
    const Shape& shape = op_.inputs[1];
    std::vector<std::int64_t> all(at(elements(shape)));
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto rest = static_cast<std::int64_t>(i);
        std::int64_t place = 0, stride = 1;
        for (std::size_t d = shape.size(); d-- > 0; stride *= table[d]) {
            std::int64_t index = rest % shape[d];
            rest /= shape[d];
            if (d == axis_of(op_)) {
                const float asked = indices[i] < 0 ? indices[i] + static_cast<float>(along_) : indices[i];
                if (!(asked >= 0 && asked < static_cast<float>(along_)))
                    throw BackendError(fmt::format("index {} of an axis of {}", indices[i], along_));
                index = static_cast<std::int64_t>(asked);
            }
            place += index * stride;
        }
        all[i] = place;
    }
    return all;
}

std::vector<std::int64_t> ByData::places(std::span<const float* const> src) const {
    return sorts_ ? sorted(src[0]) : indexed(src[1]);
}

std::vector<std::int64_t> ByData::rows(const float* ids) const {
    const std::int64_t most = adds_ ? op_.output.front() : along_;
    std::vector<std::int64_t> all(at(taken_));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const float id = ids[i];
        if (!(id >= -1 && id < static_cast<float>(most)) || id != std::floor(id))
            throw BackendError(fmt::format("row {} of {}: rows are whole numbers from 0, or -1 for none", id, most));
        all[i] = static_cast<std::int64_t>(id);
    }
    return all;
}

void ByData::take(const float* table, const std::vector<std::int64_t>& from, float* to) const {
    for (std::size_t i = 0; i < from.size(); ++i, to += inner_) {
        if (from[i] < 0) {
            std::fill_n(to, inner_, 0.0F);
        } else {
            std::copy_n(table + from[i] * inner_, inner_, to);
        }
    }
}

// In the order of the rows that are added, in double.
void ByData::add(const float* values, const std::vector<std::int64_t>& to, float* sums) const {
    std::vector<double> exact(at((adds_ ? op_.output.front() : along_) * inner_));
    for (std::size_t i = 0; i < to.size(); ++i, values += inner_) {
        if (to[i] < 0) continue;
        double* const row = exact.data() + to[i] * inner_;
        for (std::int64_t c = 0; c < inner_; ++c) row[c] += values[c];
    }
    for (std::size_t i = 0; i < exact.size(); ++i) sums[i] = static_cast<float>(exact[i]);
}

void ByData::forward(std::span<const float* const> src, float* dst) const {
    if (rows_) return adds_ ? add(src[0], rows(src[1]), dst) : take(src[0], rows(src[1]), dst);
    const std::vector<std::int64_t> from = places(src);
    if (puts_) std::copy_n(src[0], elements(op_.inputs[0]), dst);
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (puts_) {
            dst[from[i]] = src[2][i];
        } else {
            dst[i] = positions_ ? static_cast<float>(from[i] / inner_ % along_) : src[0][from[i]];
        }
    }
}

void ByData::backward(std::span<const float* const> src, const float* diff_dst,
                      std::span<float* const> diff_src) const {
    if (rows_) {
        const std::vector<std::int64_t> named = rows(src[1]);
        if (diff_src[0] != nullptr) adds_ ? take(diff_dst, named, diff_src[0]) : add(diff_dst, named, diff_src[0]);
        if (diff_src[1] != nullptr) std::fill_n(diff_src[1], named.size(), 0.0F);
        return;
    }
    const std::vector<std::int64_t> from = places(src);
    const std::int64_t count = elements(op_.inputs[0]);
    if (float* const table = diff_src[0]; table != nullptr) {
        if (puts_) {
            std::copy_n(diff_dst, count, table);
        } else {
            std::fill_n(table, count, 0.0F);
        }
        for (std::size_t i = 0; i < from.size(); ++i) {
            if (puts_) {
                table[from[i]] = 0;
            } else {
                table[from[i]] += diff_dst[i];
            }
        }
    }
    if (diff_src.size() > 1 && diff_src[1] != nullptr) std::fill_n(diff_src[1], from.size(), 0.0F);
    if (diff_src.size() > 2 && diff_src[2] != nullptr)
        for (std::size_t i = 0; i < from.size(); ++i) diff_src[2][i] = diff_dst[from[i]];
}

}  // namespace rehearse::kernels::general
