// SPDX-License-Identifier: Apache-2.0
#include "kernels/general/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/general/by_data.hpp"
#include "kernels/general/functions.hpp"
#include "kernels/general/rotary.hpp"

namespace rehearse::kernels::general {
namespace {

Shape without_leading_ones(Shape shape, std::size_t rank) {
    while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
    return shape;
}

void expect(bool fine, const Op& op, std::string_view why) {
    if (!fine) throw InputError(fmt::format("{}: {}", rehearse::to_string(op), why));
}

// The element that padding repeats, of `size` in a row; -1 outside where it holds a number.
std::int64_t repeated(const std::string& kind, std::int64_t at, std::int64_t size) {
    if (at >= 0 && at < size) return at;
    if (kind == "pad") return -1;
    if (kind == "edge") return std::clamp<std::int64_t>(at, 0, size - 1);
    if (kind == "wrap") return (at % size + size) % size;
    const std::int64_t period = std::max<std::int64_t>(1, 2 * (size - 1));  // without the edge itself
    const std::int64_t inside = (at % period + period) % period;
    return inside < size ? inside : period - inside;
}

std::vector<std::int64_t> padded_places(const Rearrangement& op) {
    const Shape& from = op.inputs.front();
    expect(op.numbers.size() == from.size() && op.output.size() == from.size(), op, "a number of each axis is missing");
    const std::vector<std::int64_t> strides = strides_of(from);
    std::vector<std::int64_t> places(at(elements(op.output)), 0);
    std::int64_t inner = 1;
    for (std::size_t d = from.size(); d-- > 0; inner *= op.output[d]) {
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::int64_t index = static_cast<std::int64_t>(i) / inner % op.output[d];
            const std::int64_t source = repeated(op.kind, index - op.numbers[d], from[d]);
            places[i] = source < 0 || places[i] < 0 ? -1 : places[i] + source * strides[d];
        }
    }
    return places;
}

std::vector<std::int64_t> joined_places(const Rearrangement& op) {
    expect(op.numbers.size() == 1 && op.numbers[0] >= 0 && at(op.numbers[0]) < op.output.size(), op,
           "the axis is missing");
    const std::size_t axis = at(op.numbers[0]);
    const std::int64_t inner = elements(Shape(op.output.begin() + op.numbers[0] + 1, op.output.end()));
    std::vector<std::int64_t> places(at(elements(op.output)));
    std::int64_t first = 0, begin = 0;  // along the axis, and of the input among all
    for (const Shape& input : op.inputs) {
        const std::int64_t size = elements(input) / (elements(op.output) / op.output[axis]);
        for (std::int64_t i = 0; i < elements(input); ++i) {
            const std::int64_t outer = i / (size * inner), rest = i % (size * inner);
            places[at(outer * op.output[axis] * inner + first * inner + rest)] = begin + i;
        }
        first += size;
        begin += elements(input);
    }
    expect(first == op.output[axis], op, "the pieces are not the whole");
    return places;
}

std::vector<std::int64_t> tiled_places(const Rearrangement& op) {
    const Shape from = without_leading_ones(op.inputs.front(), op.output.size());
    expect(from.size() <= op.output.size(), op, "it has more axes than the result");
    const std::vector<std::int64_t> strides = strides_of(from);
    std::vector<std::int64_t> places(at(elements(op.output)), 0);
    std::int64_t inner = 1;
    for (std::size_t d = op.output.size(); d-- > 0; inner *= op.output[d]) {
        const std::size_t missing = op.output.size() - from.size();
        if (d < missing) continue;
        for (std::size_t i = 0; i < places.size(); ++i) {
            places[i] += static_cast<std::int64_t>(i) / inner % op.output[d] % from[d - missing] * strides[d - missing];
        }
    }
    return places;
}

// Of each row, each head's own numbers, then the second row's, the same for all heads.
std::vector<std::int64_t> places_beside_heads(const Rearrangement& op) {
    expect(op.inputs.size() == 2 && op.numbers.size() == 1 && op.numbers[0] > 0, op,
           "it joins rows of heads and a row");
    const std::int64_t heads = op.numbers[0], rows = elements(op.output) / op.output.back();
    const std::int64_t own = op.inputs[0].back() / heads, common = op.inputs[1].back(), size = own + common;
    expect(elements(op.inputs[0]) == rows * heads * own && elements(op.inputs[1]) == rows * common &&
               op.output.back() == heads * size,
           op, "its rows do not fill the result's heads");
    std::vector<std::int64_t> places(at(elements(op.output)));
    for (std::size_t i = 0; i < places.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i);
        const std::int64_t row = place / op.output.back(), head = place / size % heads, within = place % size;
        places[i] =
            within < own ? (row * heads + head) * own + within : rows * heads * own + row * common + within - own;
    }
    return places;
}

}  // namespace

std::vector<std::int64_t> strides_of(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    return strides;
}

std::vector<std::int64_t> strides_in(const Shape& from, const Shape& to) {
    if (elements(from) == elements(to)) return strides_of(to);
    const Shape own = without_leading_ones(from, to.size());
    std::vector<std::int64_t> strides(to.size(), 0);
    const auto fail = [&] {
        throw InputError(
            fmt::format("{} does not broadcast to {}", rehearse::to_string(from), rehearse::to_string(to)));
    };
    if (own.size() > to.size()) fail();
    const std::vector<std::int64_t> dense = strides_of(own);
    const std::size_t missing = to.size() - own.size();
    for (std::size_t d = 0; d < own.size(); ++d) {
        if (own[d] != 1 && own[d] != to[d + missing]) fail();
        if (own[d] != 1) strides[d + missing] = dense[d];
    }
    return strides;
}

std::vector<std::int64_t> places_in(const Shape& from, const Shape& to) {
    std::vector<std::int64_t> places(at(elements(to)));
    for_each_place(to, strides_in(from, to), [&](std::int64_t i, std::int64_t offset) { places[at(i)] = offset; });
    return places;
}

std::vector<Operand> operands_of(const Elementwise& op) {
    std::string order = op.order;
    if (order.empty()) {
        order = std::string(op.inputs.size(), 'x') + std::string(op.weights.size(), 'w') +
                std::string(op.constants.size(), 'c') + std::string(op.numbers.size(), 'n');
    }
    std::vector<Operand> all;
    std::array<std::size_t, 4> seen{};
    std::int64_t offset = 0;
    for (const char kind : order) {
        const std::size_t which = std::string_view("xwcn").find(kind);
        expect(which < seen.size(), op, "an operand is x, w, c or n");
        const std::size_t number = seen[which]++;
        const std::vector<Shape>* const shapes[] = {&op.inputs, &op.weights, &op.constants};
        expect(number < (kind == 'n' ? op.numbers.size() : shapes[which]->size()), op,
               "its order names more operands than it has");
        Operand operand{kind, number, kind == 'n' ? 1 : elements((*shapes[which])[number]), 0};
        if (kind == 'w') {
            operand.offset = offset;
            offset += operand.size;
        }
        all.push_back(operand);
    }
    expect(seen == std::array{op.inputs.size(), op.weights.size(), op.constants.size(), op.numbers.size()}, op,
           "its order leaves operands out");
    return all;
}

std::vector<std::int64_t> reduced_places(const Reduction& op) {
    const std::vector<std::int64_t> dense = [&] {
        Shape kept = op.shape;
        for (const std::int64_t axis : op.axes) kept[at(axis)] = 1;
        std::vector<std::int64_t> strides = strides_of(kept);
        for (const std::int64_t axis : op.axes) strides[at(axis)] = 0;
        return strides;
    }();
    std::vector<std::int64_t> places(at(elements(op.shape)));
    for_each_place(op.shape, dense, [&](std::int64_t i, std::int64_t offset) { places[at(i)] = offset; });
    return places;
}

bool is_told(const Rearrangement& op) { return op.kind == "pack" && op.numbers.empty(); }

std::vector<std::int64_t> moved_places(const Rearrangement& op, std::span<const std::vector<std::int32_t>> chosen) {
    const Shape& from = op.inputs.front();
    const auto along = [&](const std::vector<std::int64_t>& strides, std::int64_t first) {
        std::vector<std::int64_t> places(at(elements(op.output)));
        for_each_place(op.output, strides,
                       [&](std::int64_t i, std::int64_t offset) { places[at(i)] = first + offset; });
        return places;
    };
    const std::vector<std::int64_t> strides = strides_of(from);
    if (op.kind == "transpose") {
        std::vector<std::int64_t> turned;
        for (const std::int64_t axis : op.numbers) turned.push_back(strides.at(at(axis)));
        expect(turned.size() == op.output.size(), op, "an axis is missing");
        return along(turned, 0);
    }
    if (op.kind == "slice") {
        expect(op.numbers.size() == 2 * from.size() && op.output.size() == from.size(), op,
               "the first and the step of each axis are missing");
        std::vector<std::int64_t> steps;
        std::int64_t first = 0;
        for (std::size_t d = 0; d < from.size(); ++d) {
            first += op.numbers[d] * strides[d];
            steps.push_back(op.numbers[from.size() + d] * strides[d]);
        }
        return along(steps, first);
    }
    if (op.kind == "expand") return along(strides_in(from, op.output), 0);
    if (op.kind == "tile") return tiled_places(op);
    if (op.kind == "join") return joined_places(op);
    if (op.kind != "pack") return padded_places(op);
    if (!is_told(op)) return places_beside_heads(op);
    expect(!chosen.empty() && chosen.front().size() == at(elements(op.output)), op,
           "which elements it takes is not known");
    return {chosen.front().begin(), chosen.front().end()};
}

std::vector<Pair> pairs_of(const BatchedMatMul& op) {
    const Shape made = output_shape(op);
    const Shape stack(made.begin(), made.end() - 2);
    const Shape a(op.a.begin(), op.a.end() - 2), b(op.b.begin(), op.b.end() - 2);
    const std::vector<std::int64_t> left = places_in(a, stack), right = places_in(b, stack);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < left.size(); ++i) pairs.push_back({left[i], right[i]});
    return pairs;
}

std::string why_not(const Op& op) {
    try {
        if (const auto* each = std::get_if<Elementwise>(&op)) {
            if (each->function == "rotary") return why_not_turned(*each);
            const auto function = function_of(each->function);
            if (!function) return fmt::format("no kernel computes '{}'", each->function);
            const std::size_t count = operands_of(*each).size();
            const Arity arity = arity_of(*function);
            if (count < arity.least || count > arity.most)
                return fmt::format("{} has {} operands, takes {}", each->function, count, arity.least);
            for (const auto* list : {&each->inputs, &each->constants}) {
                for (const Shape& shape : *list) strides_in(shape, each->shape);
            }
        }
        if (const auto* reduction = std::get_if<Reduction>(&op); reduction != nullptr && reduction->function == "topk")
            return "no kernel sorts";
        if (const auto* moved = std::get_if<Rearrangement>(&op); moved != nullptr && !is_told(*moved)) {
            if (by_data(*moved)) return why_not_by_data(*moved);
            if (moved->inputs.empty()) return "it moves nothing";
            moved_places(*moved, {});
        }
        if (const auto* stack = std::get_if<BatchedMatMul>(&op)) pairs_of(*stack);
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

std::int64_t kept_values(const Recurrent& op) { return gates_of(op) + (op.cell == "lstm" ? 1 : 0); }

std::int64_t recurrent_workspace(const Recurrent& op, std::int64_t batch) {
    return batch * op.steps * op.directions * kept_values(op) * op.hidden;
}

}  // namespace rehearse::kernels::general
