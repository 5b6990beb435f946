// SPDX-License-Identifier: Apache-2.0
// Shapes and weights of the general operators.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

constexpr std::array reductions{"sum",       "mean",   "max",       "min",    "prod",   "l1",   "l2",
                                "sumsquare", "logsum", "logsumexp", "argmax", "argmin", "topk", "cumsum"};
constexpr std::array moves{"transpose", "slice", "pad", "edge", "reflect", "wrap", "expand", "tile", "join", "pack"};
// Places that the data say: sorted along numbers[0], the first ones of each line, or where these lay; and elements
// that a second input picks along that axis, or says where a third one's go (ONNX's TopK, Gather- and ScatterElements).
// Of graphs: rows of a table that a second input names, and rows added up in the row that it names (a segment sum).
constexpr std::array moves_by_data{"largest",  "smallest", "largestat", "smallestat",
                                   "takeeach", "puteach",  "takerows",  "addrows"};

double count(const Shape& shape) { return static_cast<double>(elements(shape)); }

void positive(std::string_view what, const Shape& shape) {
    for (const std::int64_t size : shape) {
        if (size < 1) throw InputError(fmt::format("{}: a size of {} is {}, at least 1", what, to_string(shape), size));
    }
}

// Of a product, without its two last sizes; a vector is a matrix of one row or column.
Shape stack_of(const Shape& operand) { return {operand.begin(), operand.end() - 2}; }

Shape broadcast(const Shape& a, const Shape& b) {
    Shape longer = a.size() < b.size() ? b : a;
    const Shape& shorter = a.size() < b.size() ? a : b;
    const std::size_t offset = longer.size() - shorter.size();
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        std::int64_t& size = longer[offset + i];
        if (size != shorter[i] && size != 1 && shorter[i] != 1) {
            throw InputError(fmt::format("{} and {} do not broadcast", to_string(a), to_string(b)));
        }
        size = std::max(size, shorter[i]);
    }
    return longer;
}

}  // namespace

std::int64_t gates_of(const Recurrent& op) { return op.cell == "lstm" ? 4 : op.cell == "gru" ? 3 : 1; }

bool Shared::operator==(const Shared& other) const {
    return op == other.op || (op != nullptr && other.op != nullptr && op->op == other.op->op);
}

const Op& computed(const Op& op) {
    const auto* shared = std::get_if<Shared>(&op);
    return shared == nullptr ? op : shared->op->op;
}

namespace general {

std::vector<Shape> Inputs::operator()(const Gather& op) const {
    std::vector<Shape> shapes;
    if (!op.trained) shapes.push_back(op.table);
    if (op.scatter) shapes.push_back(op.output);
    return shapes;
}

std::vector<Shape> Inputs::operator()(const BatchedMatMul& op) const {
    if (op.trained == 1) return {op.b};
    if (op.trained == 2) return {op.a};
    return {op.a, op.b};
}

Shape Output::operator()(const Elementwise& op) const {
    row_of(op);
    positive("elementwise", op.shape);
    for (const auto* list : {&op.inputs, &op.weights, &op.constants}) {
        for (const Shape& operand : *list) {
            positive("elementwise", operand);
            if (list == &op.inputs && op.function != "compound" && count(operand) > count(op.shape)) {
                throw InputError(
                    fmt::format("elementwise: an operand of {} for {}", to_string(operand), to_string(op.shape)));
            }
        }
    }
    return op.shape;
}

Shape Output::operator()(const Reduction& op) const {
    if (std::ranges::find(reductions, op.function) == reductions.end())
        throw InputError(fmt::format("reduction: no function '{}'", op.function));
    positive("reduction", op.shape);
    Shape made;
    for (std::size_t i = 0; i < op.shape.size(); ++i) {
        const bool gone = std::ranges::find(op.axes, static_cast<std::int64_t>(i)) != op.axes.end();
        if (!gone || op.function == "cumsum") made.push_back(op.shape[i]);
        if (gone && op.keep && op.function != "cumsum") made.push_back(1);
    }
    for (const std::int64_t axis : op.axes) {
        if (axis < 0 || static_cast<std::size_t>(axis) >= op.shape.size())
            throw InputError(fmt::format("reduction: {} has no axis {}", to_string(op.shape), axis));
    }
    if (made.empty()) made.push_back(1);
    return made;
}

bool of_rows(const Rearrangement& op) { return op.kind == "takerows" || op.kind == "addrows"; }

namespace {

// As many rows are taken, or added, as the second input names; what is behind the first axis stays.
void check_rows(const Rearrangement& op) {
    if (op.inputs.size() != 2)
        throw InputError(fmt::format("{}: it has {} inputs, takes 2", op.kind, op.inputs.size()));
    const Shape &from = op.inputs[0], &ids = op.inputs[1];
    const Shape& named = op.kind == "takerows" ? op.output : from;
    const bool alike =
        from.size() == op.output.size() && std::equal(from.begin() + 1, from.end(), op.output.begin() + 1);
    if (!alike || ids.size() != 1 || named.front() != ids.front()) {
        throw InputError(fmt::format("{}: {} by {} does not make {}: ids are {{rows taken or added}}, rows alike",
                                     op.kind, to_string(from), to_string(ids), to_string(op.output)));
    }
}

}  // namespace

bool by_data(const Rearrangement& op) { return std::ranges::find(moves_by_data, op.kind) != moves_by_data.end(); }

Shape Output::operator()(const Rearrangement& op) const {
    if (std::ranges::find(moves, op.kind) == moves.end() && !by_data(op))
        throw InputError(fmt::format("rearrangement: no kind '{}'", op.kind));
    positive("rearrangement", op.output);
    for (const Shape& input : op.inputs) positive("rearrangement", input);
    if (of_rows(op)) check_rows(op);
    return op.output;
}

Shape Output::operator()(const Gather& op) const {
    positive("gather", op.table);
    positive("gather", op.output);
    return op.scatter ? op.table : op.output;
}

Shape Output::operator()(const BatchedMatMul& op) const {
    if (op.a.size() < 2 || op.b.size() < 2) throw InputError("batchedmatmul: both operands are matrices or stacks");
    positive("batchedmatmul", op.a);
    positive("batchedmatmul", op.b);
    const std::int64_t rows = op.b[op.b.size() - 2];
    if (op.a.back() != rows) {
        throw InputError(fmt::format("batchedmatmul: {} and {}: {} columns meet {} rows", to_string(op.a),
                                     to_string(op.b), op.a.back(), rows));
    }
    Shape made = broadcast(stack_of(op.a), stack_of(op.b));
    made.insert(made.end(), {op.a[op.a.size() - 2], op.b.back()});
    return made;
}

Shape Output::operator()(const Recurrent& op) const {
    if (op.cell != "lstm" && op.cell != "gru" && op.cell != "rnn")
        throw InputError(fmt::format("recurrent: no cell '{}': lstm, gru or rnn", op.cell));
    positive("recurrent", {op.steps, op.inputs, op.hidden, op.directions});
    return {op.steps, op.directions, op.hidden};
}

Shape Output::operator()(const Normalization& op) const {
    positive("normalization", op.shape);
    if (op.sets < 1 || op.inner < 1 || elements(op.shape) % op.sets != 0) {
        throw InputError(
            fmt::format("normalization: {} cannot be cut into {} equal sets", to_string(op.shape), op.sets));
    }
    return op.shape;
}

Shape Output::operator()(const SoftmaxAlong& op) const {
    positive("softmaxalong", op.shape);
    if (op.axis < 0 || static_cast<std::size_t>(op.axis) >= op.shape.size())
        throw InputError(fmt::format("softmaxalong: {} has no axis {}", to_string(op.shape), op.axis));
    return op.shape;
}

std::vector<WeightTensor> Weights::operator()(const Elementwise& op) const {
    std::vector<WeightTensor> tensors;
    for (const Shape& shape : op.weights)
        tensors.push_back({tensors.empty() ? "weights" : fmt::format("weights{}", tensors.size() + 1), shape});
    return tensors;
}

std::vector<WeightTensor> Weights::operator()(const Gather& op) const {
    if (!op.trained) return {};
    return {{"weights", op.table}};
}

std::vector<WeightTensor> Weights::operator()(const BatchedMatMul& op) const {
    if (op.trained == 0) return {};
    return {{"weights", op.trained == 1 ? op.a : op.b}};
}

std::vector<WeightTensor> Weights::operator()(const Recurrent& op) const {
    const std::int64_t rows = gates_of(op) * op.hidden;
    std::vector<WeightTensor> tensors{{"weights", {op.directions, rows, op.inputs}},
                                      {"recurrence", {op.directions, rows, op.hidden}}};
    if (op.bias) tensors.push_back({"bias", {op.directions, 2 * rows}});
    return tensors;
}

std::vector<WeightTensor> Weights::operator()(const Normalization& op) const {
    std::vector<WeightTensor> tensors;
    if (op.gamma > 0) tensors.push_back({"gamma", {op.gamma}});
    if (op.beta > 0) tensors.push_back({"beta", {op.beta}});
    return tensors;
}

}  // namespace general

}  // namespace rehearse
