// SPDX-License-Identifier: Apache-2.0
// Values of the tables that exporters compute in the graph: angles of positions, masks, distances.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>

#include "models/onnx/infer.hpp"
#include "models/onnx/infer_walk.hpp"

namespace rehearse::models {
namespace {

using Values = std::vector<double>;
using Data = std::shared_ptr<const Values>;

constexpr double most_folded = 1 << 28;  // multiply-adds of a product of constants that is worked out

Data kept(Values values) { return std::make_shared<const Values>(std::move(values)); }

Shape indices_of(std::int64_t place, const Shape& shape) {
    Shape indices(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; place /= shape[d]) indices[d] = place % shape[d];
    return indices;
}

std::int64_t place_of(const Shape& indices, const std::vector<std::int64_t>& strides) {
    return std::inner_product(indices.begin(), indices.end(), strides.begin(), std::int64_t{0});
}

struct Operand {
    const Shape& dims;
    const Values& values;
};

// The letters of both operands and of the result of "ij,jk->ik"; empty where there is another number of them.
std::array<std::string, 3> letters_of(std::string equation) {
    std::erase(equation, ' ');
    const std::size_t comma = equation.find(','), arrow = equation.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || arrow < comma ||
        equation.find(',', comma + 1) != std::string::npos || equation.find('.') != std::string::npos)
        return {};
    return {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1), equation.substr(arrow + 2)};
}

// A sum of products of two operands: of each combination of letters, those of the result first.
Data sum_of_products(const std::array<std::string, 3>& letters, const Operand& a, const Operand& b,
                     std::int64_t count) {
    std::map<char, std::int64_t> sizes;
    for (const auto& [names, operand] : {std::pair{&letters[0], &a}, std::pair{&letters[1], &b}}) {
        if (names->empty() || names->size() != operand->dims.size()) return nullptr;
        for (std::size_t i = 0; i < names->size(); ++i) {
            std::int64_t& size = sizes[(*names)[i]];
            if (size > 1 && operand->dims[i] != size) return nullptr;
            size = std::max(size, operand->dims[i]);
        }
    }
    std::string order = letters[2];
    for (const auto& [letter, size] : sizes)
        if (order.find(letter) == std::string::npos) order += letter;
    Shape all;
    double work = 1;
    for (const char letter : order) {
        if (!sizes.contains(letter)) return nullptr;
        all.push_back(sizes[letter]);
        work *= static_cast<double>(sizes[letter]);
    }
    if (work > most_folded || count < 1 || work < static_cast<double>(count)) return nullptr;
    const auto steps = [&](const std::string& names, const Shape& dims) {
        const std::vector<std::int64_t> own = strides_of(dims);
        std::vector<std::int64_t> made(order.size(), 0);
        for (std::size_t i = 0; i < names.size(); ++i)
            if (dims[i] > 1) made[order.find(names[i])] += own[i];
        return made;
    };
    const auto in_a = steps(letters[0], a.dims), in_b = steps(letters[1], b.dims);
    Values made(static_cast<std::size_t>(count), 0);
    const auto summed = static_cast<std::int64_t>(work) / count;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(work); ++i) {
        const Shape at = indices_of(i, all);
        made[static_cast<std::size_t>(i / summed)] += a.values[static_cast<std::size_t>(place_of(at, in_a))] *
                                                      b.values[static_cast<std::size_t>(place_of(at, in_b))];
    }
    return kept(std::move(made));
}

// Two operands of a stack of products, as letters; "" where they are vectors.
std::array<std::string, 3> letters_of_product(std::size_t a, std::size_t b) {
    constexpr std::string_view stack = "abcdefgh";
    if (a < 2 || b < 2 || a > 8 || b > 8) return {};
    const auto leading = [&](std::size_t rank) { return std::string{stack.substr(8 - (rank - 2))}; };
    return {leading(a) + "mk", leading(b) + "kn", leading(std::max(a, b)) + "mn"};
}

Data running_sum(const onnx::NodeProto& node, const Operand& x, std::size_t axis) {
    const bool exclusive = integer(node, "exclusive", 0) != 0, reverse = integer(node, "reverse", 0) != 0;
    Values made(x.values.size());
    const std::int64_t along = x.dims[axis], inner = strides_of(x.dims)[axis];
    if (made.empty()) return nullptr;
    for (std::size_t line = 0; line < made.size() / static_cast<std::size_t>(along); ++line) {
        const auto at = static_cast<std::int64_t>(line);
        const std::int64_t first = at / inner * along * inner + at % inner;
        double sum = 0;
        for (std::int64_t i = 0; i < along; ++i) {
            const auto place = static_cast<std::size_t>(first + (reverse ? along - 1 - i : i) * inner);
            if (exclusive) made[place] = sum;
            sum += x.values[place];
            if (!exclusive) made[place] = sum;
        }
    }
    return kept(std::move(made));
}

// Of rows of indices, where the slices that they name begin; nothing where one lies outside.
std::optional<std::vector<std::int64_t>> starts_of(const Operand& indices, const Shape& table) {
    const std::int64_t deep = indices.dims.empty() ? 0 : indices.dims.back();
    if (deep < 1 || deep > static_cast<std::int64_t>(table.size())) return std::nullopt;
    const std::vector<std::int64_t> strides = strides_of(table);
    std::vector<std::int64_t> starts;
    for (std::size_t i = 0; i + 1 <= indices.values.size() / static_cast<std::size_t>(deep); ++i) {
        std::int64_t start = 0;
        for (std::size_t d = 0; d < static_cast<std::size_t>(deep); ++d) {
            const std::int64_t at =
                positive_modulo(to_integer(indices.values[i * static_cast<std::size_t>(deep) + d]), table[d]);
            if (at < 0 || at >= table[d]) return std::nullopt;
            start += at * strides[d];
        }
        starts.push_back(start);
    }
    return starts;
}

Data scattered(const Operand& table, const Operand& indices, const Values& updates) {
    const auto starts = starts_of(indices, table.dims);
    if (!starts) return nullptr;
    const std::int64_t slice = elements(Shape(table.dims.begin() + indices.dims.back(), table.dims.end()));
    if (static_cast<double>(starts->size()) * static_cast<double>(slice) != static_cast<double>(updates.size()))
        return nullptr;
    Values made = table.values;
    for (std::size_t i = 0; i < starts->size(); ++i)
        std::copy_n(updates.begin() + static_cast<std::ptrdiff_t>(i) * slice, slice, made.begin() + (*starts)[i]);
    return kept(std::move(made));
}

Data gathered(const Operand& table, const Operand& indices, std::size_t count) {
    const auto starts = starts_of(indices, table.dims);
    if (!starts) return nullptr;
    const std::int64_t slice = elements(Shape(table.dims.begin() + indices.dims.back(), table.dims.end()));
    if (static_cast<double>(starts->size()) * static_cast<double>(slice) != static_cast<double>(count)) return nullptr;
    Values made;
    for (const std::int64_t start : *starts)
        made.insert(made.end(), table.values.begin() + start, table.values.begin() + start + slice);
    return kept(std::move(made));
}

Data padded(const Operand& x, const Shape& shape, const std::vector<std::int64_t>& pads, double fill) {
    const auto impossible = [](std::int64_t pad) { return std::abs(static_cast<double>(pad)) > largest_tensor; };
    if (pads.size() != 2 * shape.size() || std::ranges::any_of(pads, impossible)) return nullptr;
    const std::vector<std::int64_t> strides = strides_of(x.dims);
    Values made(static_cast<std::size_t>(elements(shape)), fill);
    for (std::size_t i = 0; i < made.size(); ++i) {
        Shape at = indices_of(static_cast<std::int64_t>(i), shape);
        bool inside = true;
        for (std::size_t d = 0; d < at.size(); ++d) {
            at[d] -= pads[d];
            inside = inside && at[d] >= 0 && at[d] < x.dims[d];
        }
        if (inside) made[i] = x.values[static_cast<std::size_t>(place_of(at, strides))];
    }
    return kept(std::move(made));
}

// Ones on the diagonal that lies `k` to the right of the main one.
Data diagonal(const Shape& shape, std::int64_t k) {
    Values made(static_cast<std::size_t>(elements(shape)), 0);
    for (std::int64_t row = 0; row < shape[0]; ++row)
        if (const std::int64_t column = row + k; column >= 0 && column < shape[1])
            made[static_cast<std::size_t>(row * shape[1] + column)] = 1;
    return kept(std::move(made));
}

std::function<double(double, double)> folded_by(std::string_view type) {
    if (type == "ReduceProd") return [](double a, double b) { return a * b; };
    if (type == "ReduceSum" || type == "ReduceMean") return [](double a, double b) { return a + b; };
    if (type == "ReduceMax") return [](double a, double b) { return std::max(a, b); };
    if (type == "ReduceMin") return [](double a, double b) { return std::min(a, b); };
    return nullptr;
}

// `axes`: none for all.
Data reduced(std::string_view type, const Operand& x, const std::vector<std::int64_t>& axes, std::size_t count) {
    const auto fold = folded_by(type);
    if (fold == nullptr || x.values.empty()) return nullptr;
    Shape kept_dims = x.dims;
    for (std::size_t d = 0; d < kept_dims.size(); ++d)
        if (axes.empty() || std::ranges::find(axes, static_cast<std::int64_t>(d)) != axes.end()) kept_dims[d] = 1;
    if (static_cast<std::size_t>(elements(kept_dims)) != count) return nullptr;
    std::vector<std::int64_t> strides = strides_of(kept_dims);
    for (std::size_t d = 0; d < strides.size(); ++d)
        if (kept_dims[d] == 1) strides[d] = 0;
    Values made(count);
    std::vector<bool> met(count, false);
    for (std::size_t i = 0; i < x.values.size(); ++i) {
        const auto to = static_cast<std::size_t>(place_of(indices_of(static_cast<std::int64_t>(i), x.dims), strides));
        made[to] = met[to] ? fold(made[to], x.values[i]) : x.values[i];
        met[to] = true;
    }
    const double each = static_cast<double>(x.values.size()) / static_cast<double>(count);
    if (type == "ReduceMean")
        for (double& value : made) value /= each;
    return kept(std::move(made));
}

// Weights of a frame's samples (ONNX's HannWindow, HammingWindow, BlackmanWindow): sums of cosines.
Data window(const onnx::NodeProto& node, std::size_t size) {
    const std::string& type = node.op_type();
    const double period = static_cast<double>(size) - (integer(node, "periodic", 1) != 0 ? 0 : 1);
    const double mean = type == "HannWindow" ? 0.5 : type == "HammingWindow" ? 25.0 / 46 : 0.42;
    const double first = type == "BlackmanWindow" ? 0.5 : 1 - mean, second = type == "BlackmanWindow" ? 0.08 : 0;
    Values made(size);
    for (std::size_t i = 0; i < size; ++i) {
        const double angle = period > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / period : 0;
        made[i] = mean - first * std::cos(angle) + second * std::cos(2 * angle);
    }
    return kept(std::move(made));
}

}  // namespace

Inference::Data Inference::values_of_tables(const onnx::NodeProto& node, const Shape& shape) const {
    const std::string& type = node.op_type();
    const auto operand = [&](int i) { return Operand{*in(node, i).dims, *in(node, i).data}; };
    const auto here = [&](int inputs) {
        for (int i = 0; i < inputs; ++i)
            if (!given(node, i) || !in(node, i).data || !in(node, i).dims) return false;
        return node.input_size() >= inputs;
    };
    if (!here(1)) return nullptr;
    const std::size_t rank = in(node, 0).dims->size();
    const auto count = static_cast<std::size_t>(elements(shape));
    if (type == "MatMul" && node.input_size() == 2 && here(2))
        return sum_of_products(letters_of_product(rank, in(node, 1).dims->size()), operand(0), operand(1),
                               elements(shape));
    if (type == "Einsum" && node.input_size() == 2 && here(2))
        return sum_of_products(letters_of(text(node, "equation", "")), operand(0), operand(1), elements(shape));
    if (type == "EyeLike" && shape.size() == 2) return diagonal(shape, integer(node, "k", 0));
    if (type == "CumSum" && here(2) && !in(node, 1).data->empty()) {
        const std::int64_t axis =
            positive_modulo(to_integer(in(node, 1).data->front()), static_cast<std::int64_t>(rank));
        if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return nullptr;
        return running_sum(node, operand(0), static_cast<std::size_t>(axis));
    }
    if (type == "ScatterND" && node.input_size() == 3 && here(3) && text(node, "reduction", "none") == "none")
        return scattered(operand(0), operand(1), *in(node, 2).data);
    if (type == "GatherND" && node.input_size() == 2 && here(2) && integer(node, "batch_dims", 0) == 0)
        return gathered(operand(0), operand(1), count);
    if (type == "Pad" && text(node, "mode", "constant") == "constant" && rank == shape.size() && !given(node, 3)) {
        auto pads = list(node, "pads");
        if (!pads) pads = known(node, 1);
        const double fill =
            given(node, 2) && !in(node, 2).data->empty() ? in(node, 2).data->front() : number(node, "value", 0);
        return pads ? padded(operand(0), shape, *pads, fill) : nullptr;
    }
    if (type.ends_with("Window") && shape.size() == 1) return window(node, count);
    if (type.starts_with("Reduce")) {
        const auto axes = axes_of(node, 1, rank);
        const bool nothing = axes && axes->empty() && integer(node, "noop_with_empty_axes", 0) != 0;
        return axes && !nothing ? reduced(type, operand(0), *axes, count) : nullptr;
    }
    return nullptr;
}

}  // namespace rehearse::models
