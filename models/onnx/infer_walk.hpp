// SPDX-License-Identifier: Apache-2.0
// Walks the elements of what several operands, each stretched to its shape, make together.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/infer.hpp"

namespace rehearse::models {

inline std::size_t place(std::int64_t at) { return static_cast<std::size_t>(at); }

/// The next stride; 0 where 64 bits do not hold it, as of a tensor without elements, whose strides nobody takes.
inline std::int64_t next_stride(std::int64_t stride, std::int64_t size) {
    std::int64_t next = 0;
    return __builtin_mul_overflow(stride, size, &next) ? 0 : next;
}

/// How far apart neighbours along each dimension lie.
inline Sizes strides_of(const Shape& shape) {
    Sizes strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = next_stride(strides[i], shape[i]);
    return strides;
}

/// How far apart the elements of an operand of shape `from` are, by the dimensions of `to`, to which it broadcasts.
inline Sizes steps_of(const Shape& from, const Shape& to) {
    Sizes steps(to.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = from.size(); i-- > 0;) {
        steps[i + to.size() - from.size()] = from[i] == 1 ? 0 : stride;
        stride = next_stride(stride, from[i]);
    }
    return steps;
}

template <std::size_t operands, std::size_t... each>
void advance(std::array<std::int64_t, operands>& at, const std::array<std::int64_t, operands>& by,
             std::index_sequence<each...>) {
    ((at[each] += by[each]), ...);
}

/// Calls `use(i, places)` for each element of `to` in order: where it is in each operand, whose first one is at `at`.
template <std::size_t operands, typename Use>
void walk(const Shape& to, const std::array<Sizes, operands>& steps, std::array<std::int64_t, operands> at,
          const Use& use) {
    const auto count = static_cast<std::size_t>(elements(to));
    if (count == 0) return;
    constexpr auto each = std::make_index_sequence<operands>{};
    const auto line = static_cast<std::size_t>(to.empty() ? 1 : to.back());
    struct Dimension {  // but the last one, whose elements are a line
        std::int64_t size, index;
        std::array<std::int64_t, operands> step, back;  // to the next one, and from the last one to the first
    };
    std::vector<Dimension> dimensions;
    std::array<std::int64_t, operands> in_line{};
    for (std::size_t d = 0; d < to.size(); ++d) {
        Dimension dimension{to[d], 0, {}, {}};
        for (std::size_t k = 0; k < operands; ++k) dimension.step[k] = steps[k][d];
        for (std::size_t k = 0; k < operands; ++k) dimension.back[k] = steps[k][d] * (1 - to[d]);
        if (d + 1 < to.size()) dimensions.push_back(dimension);
        in_line = dimension.step;
    }
    for (std::size_t i = 0; i < count;) {
        std::array<std::int64_t, operands> here = at;
        const std::size_t end = i + line;
        use(i, here);
        while (++i < end) {  // no step past its end, which 64 bits need not hold
            advance(here, in_line, each);
            use(i, here);
        }
        for (auto d = dimensions.rbegin(); d != dimensions.rend(); ++d) {
            const bool over = ++d->index == d->size;
            advance(at, over ? d->back : d->step, each);
            if (!over) break;
            d->index = 0;
        }
    }
}

/// Which element of its initializer each element of `shape` takes whose neighbours lie `steps` apart in the weight
/// `from`.
std::vector<std::int32_t> places_along(const Value& from, const Shape& shape, const Sizes& steps);

}  // namespace rehearse::models
