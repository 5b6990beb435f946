// SPDX-License-Identifier: Apache-2.0
#include "core/rotary.hpp"

#include <utility>

namespace rehearse {
namespace {

// Of the numbers of a rotary Elementwise; the first is how many of a row are turned (op_general.cpp counts by it).
enum Number : std::size_t { of_row, size, turned, first, neighbours, base, count };

}  // namespace

Elementwise rotary(const Shape& shape, const Rotation& rotation, std::int64_t heads, std::vector<Shape> tables) {
    Elementwise op{"rotary", shape, {shape}};
    op.constants = std::move(tables);
    op.numbers = {static_cast<double>(heads * rotation.turned),
                  static_cast<double>(rotation.size),
                  static_cast<double>(rotation.turned),
                  static_cast<double>(rotation.first),
                  rotation.neighbours ? 1.0 : 0.0,
                  rotation.base};
    return op;
}

std::optional<Rotation> rotation_of(const Elementwise& op) {
    if (op.function != "rotary" || op.numbers.size() != Number::count) return std::nullopt;
    const auto whole = [&](Number which) { return static_cast<std::int64_t>(op.numbers[which]); };
    return Rotation{whole(Number::size), whole(Number::turned), whole(Number::first), whole(Number::neighbours) != 0,
                    op.numbers[Number::base]};
}

}  // namespace rehearse
