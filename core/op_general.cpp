// SPDX-License-Identifier: Apache-2.0
// Shapes, weights and counts of the general operators.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

// What a processor computes in one instruction counts 1, what takes a series 8, as Activation counts it.
constexpr std::array functions{
    ElementwiseFunction{"add", 1, true, true},          ElementwiseFunction{"sub", 1, true, true},
    ElementwiseFunction{"rsub", 1, true, true},         ElementwiseFunction{"neg", 1, true, true},
    ElementwiseFunction{"mul", 1, false, true},         ElementwiseFunction{"div", 1, false, true},
    ElementwiseFunction{"rdiv", 1, false, true},        ElementwiseFunction{"reciprocal", 1, false, true},
    ElementwiseFunction{"abs", 1, false, true},         ElementwiseFunction{"sqrt", 1, false, true},
    ElementwiseFunction{"square", 1, false, true},      ElementwiseFunction{"pow", 8, false, true},
    ElementwiseFunction{"rpow", 8, false, true},        ElementwiseFunction{"mod", 2, false, true},
    ElementwiseFunction{"min", 1, false, true},         ElementwiseFunction{"max", 1, false, true},
    ElementwiseFunction{"mean", 1, true, true},         ElementwiseFunction{"clip", 2, false, true},
    ElementwiseFunction{"relu", 1, false, true},        ElementwiseFunction{"leakyrelu", 2, false, true},
    ElementwiseFunction{"prelu", 2, false, true},       ElementwiseFunction{"thresholdedrelu", 1, false, true},
    ElementwiseFunction{"hardsigmoid", 4, false, true}, ElementwiseFunction{"hardswish", 5, false, true},
    ElementwiseFunction{"shrink", 2, false, true},      ElementwiseFunction{"exp", 8, false, true},
    ElementwiseFunction{"log", 8, false, true},         ElementwiseFunction{"erf", 8, false, true},
    ElementwiseFunction{"sigmoid", 8, false, true},     ElementwiseFunction{"tanh", 8, false, true},
    ElementwiseFunction{"sin", 8, false, true},         ElementwiseFunction{"cos", 8, false, true},
    ElementwiseFunction{"tan", 8, false, true},         ElementwiseFunction{"asin", 8, false, true},
    ElementwiseFunction{"acos", 8, false, true},        ElementwiseFunction{"atan", 8, false, true},
    ElementwiseFunction{"sinh", 8, false, true},        ElementwiseFunction{"cosh", 8, false, true},
    ElementwiseFunction{"asinh", 8, false, true},       ElementwiseFunction{"acosh", 8, false, true},
    ElementwiseFunction{"atanh", 8, false, true},       ElementwiseFunction{"softplus", 9, false, true},
    ElementwiseFunction{"softsign", 3, false, true},    ElementwiseFunction{"elu", 10, false, true},
    ElementwiseFunction{"selu", 11, false, true},       ElementwiseFunction{"celu", 11, false, true},
    ElementwiseFunction{"silu", 9, false, true},        ElementwiseFunction{"quickgelu", 10, false, true},
    ElementwiseFunction{"gelutanh", 8, false, true},    ElementwiseFunction{"mish", 18, false, true},
    ElementwiseFunction{"where", 1, true, true},        ElementwiseFunction{"copy", 0, true, true},
    ElementwiseFunction{"rotary", 3, true, true},       ElementwiseFunction{"compound", 1, false, true},
    ElementwiseFunction{"floor", 1, false, false},      ElementwiseFunction{"ceil", 1, false, false},
    ElementwiseFunction{"round", 1, false, false},      ElementwiseFunction{"sign", 1, false, false},
    ElementwiseFunction{"compare", 1, false, false},    ElementwiseFunction{"logic", 1, false, false},
    ElementwiseFunction{"equal", 1, false, false},      ElementwiseFunction{"greater", 1, false, false},
    ElementwiseFunction{"greaterequal", 1, false, false}, ElementwiseFunction{"less", 1, false, false},
    ElementwiseFunction{"lessequal", 1, false, false},  ElementwiseFunction{"isnan", 1, false, false},
    ElementwiseFunction{"isinf", 1, false, false},      ElementwiseFunction{"not", 1, false, false},
    ElementwiseFunction{"and", 1, false, false},        ElementwiseFunction{"or", 1, false, false},
    ElementwiseFunction{"xor", 1, false, false},        ElementwiseFunction{"random", 8, false, false},
};

constexpr std::array reductions{"sum",    "mean",      "max",    "min",    "prod", "l1",    "l2", "sumsquare",
                                "logsum", "logsumexp", "argmax", "argmin", "topk", "cumsum"};
constexpr std::array moves{"transpose", "slice", "pad",  "edge", "reflect",
                           "wrap",      "expand", "tile", "join", "pack"};

double count(const Shape& shape) { return static_cast<double>(elements(shape)); }

double count(const std::vector<Shape>& shapes) {
    double sum = 0;
    for (const Shape& shape : shapes) sum += count(shape);
    return sum;
}

const ElementwiseFunction& row_of(const Elementwise& op) {
    const auto* const found = std::ranges::find(functions, op.function, &ElementwiseFunction::name);
    if (found == functions.end()) throw InputError(fmt::format("elementwise: no function '{}'", op.function));
    return *found;
}

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

std::size_t operands(const Elementwise& op) {
    return op.inputs.size() + op.weights.size() + op.constants.size() + op.numbers.size();
}

// The sums that give back what broadcasting spread.
double sums(const Elementwise& op, const std::vector<Shape>& of) {
    double all = 0;
    for (const Shape& shape : of) all += count(shape) < count(op.shape) ? count(op.shape) : 0;
    return all;
}

// Where the mask of a choice is an activation, its gradients read it.
bool linear(const Elementwise& op) {
    return row_of(op).linear && (op.function != "where" || !op.order.starts_with('x'));
}

double slope(const Elementwise& op) {
    if (op.function == "compound" && !op.numbers.empty()) return op.numbers.front();
    return linear(op) ? 0 : std::max(1.0, row_of(op).flops);
}

}  // namespace

std::span<const ElementwiseFunction> elementwise_functions() { return functions; }

std::int64_t gates_of(const Recurrent& op) { return op.cell == "lstm" ? 4 : op.cell == "gru" ? 3 : 1; }

bool Shared::operator==(const Shared& other) const {
    return op == other.op || (op != nullptr && other.op != nullptr && op->op == other.op->op);
}

const Op& computed(const Op& op) {
    const auto* shared = std::get_if<Shared>(&op);
    return shared == nullptr ? op : shared->op->op;
}

bool is_general(const Op& op) {
    return general::movements(op, Pass::forward).has_value() || std::holds_alternative<Shared>(op);
}

double multiply_adds(const Op& op) {
    if (const auto* shared = std::get_if<Shared>(&op)) return multiply_adds(shared->op->op);
    if (const auto* stack = std::get_if<BatchedMatMul>(&op)) return general::Forward{}(*stack) / 2;
    if (const auto* cells = std::get_if<Recurrent>(&op)) {
        return static_cast<double>(cells->steps * cells->directions * gates_of(*cells) * cells->hidden *
                                   (cells->inputs + cells->hidden));
    }
    if (const auto* dense = std::get_if<MatMul>(&op)) {
        return static_cast<double>(dense->m * dense->n) * static_cast<double>(dense->k);
    }
    if (const auto* heads = std::get_if<Attention>(&op)) {  // a hidden half is counted: it is there to be multiplied
        return static_cast<double>(heads->heads * heads->queries) *
               static_cast<double>(heads->keys * (heads->head_size + value_size(*heads)));
    }
    if (const auto* experts = std::get_if<GroupedMatMul>(&op))
        return count(output_shape(op)) * static_cast<double>(experts->k);
    if (!is_convolution(op)) return 0;
    const Shape filters = weights(op).front().shape;
    const bool transposed = std::holds_alternative<ConvTranspose>(op);
    const Shape positions = transposed ? input_shapes(op).front() : output_shape(op);
    return count(positions) * static_cast<double>(elements(filters) / filters.front());
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

Shape Output::operator()(const Rearrangement& op) const {
    if (std::ranges::find(moves, op.kind) == moves.end())
        throw InputError(fmt::format("rearrangement: no kind '{}'", op.kind));
    positive("rearrangement", op.output);
    for (const Shape& input : op.inputs) positive("rearrangement", input);
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

double Forward::operator()(const Elementwise& op) const {
    const bool folds = op.function == "add" || op.function == "mul" || op.function == "min" || op.function == "max" ||
                       op.function == "mean";
    const double times = folds ? std::max<double>(1, static_cast<double>(operands(op)) - 1) : 1;
    // Of rotary embeddings, each row's numbers[0] first numbers may be all that is turned; of a compound function,
    // numbers[0] is what an element of the result takes.
    double share = 1;
    if (op.function == "rotary" && !op.numbers.empty() && !op.shape.empty())
        share = op.numbers.front() / static_cast<double>(op.shape.back());
    if (op.function == "compound" && !op.numbers.empty()) share = op.numbers.front();
    return share * times * row_of(op).flops * count(op.shape);
}

double Forward::operator()(const Reduction& op) const {
    const bool two = op.function == "l1" || op.function == "l2" || op.function == "sumsquare";
    const double each = op.function == "logsumexp" ? 9 : two ? 2 : 1;
    return each * count(op.shape);
}

double Forward::operator()(const BatchedMatMul& op) const {
    return 2 * static_cast<double>(op.a.back()) * count(output_shape(Op{op}));
}

// The products, their biases, and the gates: of an LSTM three sigmoids and two tanh of 8, and four operations between
// them; of a GRU two sigmoids, a tanh and six; else a tanh.
double Forward::operator()(const Recurrent& op) const {
    const double cells = static_cast<double>(op.steps * op.directions * op.hidden);
    const double gates = op.cell == "lstm" ? 5 * 8 + 4 : op.cell == "gru" ? 3 * 8 + 6 : 8;
    const double biases = static_cast<double>((op.bias ? 2 : 0) * gates_of(op));
    return 2 * multiply_adds(Op{op}) + cells * (biases + gates);
}

double Forward::operator()(const Normalization& op) const {
    return ((op.centred ? 5 : 3) + (op.gamma > 0 ? 1 : 0) + (op.beta > 0 ? 1 : 0)) * count(op.shape);
}

double BackwardData::operator()(const Elementwise& op) const {
    return static_cast<double>(op.inputs.size()) * slope(op) * count(op.shape) + sums(op, op.inputs);
}

double BackwardData::operator()(const BatchedMatMul& op) const { return (op.trained == 0 ? 2 : 1) * Forward{}(op); }

double BackwardData::operator()(const Normalization& op) const {
    return (op.centred ? 8 : 6) * count(op.shape) + 3 * (op.gamma > 0 ? 1 : 0) * count(op.shape);
}

double BackwardWeights::operator()(const Elementwise& op) const {
    return static_cast<double>(op.weights.size()) * (slope(op) + 1) * count(op.shape);
}

std::optional<Movements> movements(const Op& op, Pass pass) {
    const bool forward = pass == Pass::forward;
    if (const auto* shared = std::get_if<Shared>(&op)) return movements(shared->op->op, pass);
    if (const auto* each = std::get_if<Elementwise>(&op)) {
        const bool reads = forward || !linear(*each);
        if (pass == Pass::backward_weights) return Movements{reads ? 1.0 : 0.0, 1, count(each->constants)};
        if (forward) return Movements{1, 1, count(each->constants)};
        return Movements{reads ? 2.0 : 1.0, 1, reads ? count(each->constants) : 0, reads};
    }
    if (const auto* reduction = std::get_if<Reduction>(&op)) {
        const bool linear =
            reduction->function == "sum" || reduction->function == "mean" || reduction->function == "cumsum";
        return forward || linear ? Movements{} : Movements{2, 2};
    }
    if (const auto* moved = std::get_if<Rearrangement>(&op)) {
        // Of a slice only what stays is read; its gradient clears the rest.
        const double read = moved->inputs.empty() ? 1 : std::min(1.0, count(moved->output) / count(moved->inputs));
        return Movements{forward ? read : 1.0, 1};
    }
    if (const auto* picked = std::get_if<Gather>(&op)) {
        const double indices = static_cast<double>(picked->indices);
        const double inputs = std::max(1.0, count(Inputs{}(*picked)));
        if (picked->scatter) return Movements{1, 1 + indices / count(picked->table)};
        if (!forward) return Movements{picked->trained ? 0.0 : 1.0, 2 + indices / count(picked->output)};
        const double rows = picked->trained ? 0 : count(picked->output) / inputs;
        return Movements{rows, (picked->trained ? 2 : 1) + indices / count(picked->output), 0, false};
    }
    if (std::holds_alternative<BatchedMatMul>(op)) return Movements{pass == Pass::backward_data ? 2.0 : 1.0, 1};
    // Gates and states stay from forward: as many values a gate as the output has.
    if (const auto* cells = std::get_if<Recurrent>(&op)) {
        const auto kept = static_cast<double>(gates_of(*cells));
        return Movements{1, forward ? 1 + kept : 2 + kept};
    }
    if (std::holds_alternative<Normalization>(op)) return forward ? Movements{} : Movements{2, 1};
    if (std::holds_alternative<SoftmaxAlong>(op)) return forward ? Movements{} : Movements{1, 2};
    if (std::holds_alternative<Parameter>(op)) return Movements{0, 1};
    return std::nullopt;
}

bool has_gradient(const Op& op, Pass pass) {
    if (const auto* shared = std::get_if<Shared>(&op)) return has_pass(shared->op->op, pass);
    if (const auto* each = std::get_if<Elementwise>(&op)) {
        return row_of(*each).sloped && (pass != Pass::backward_data || !each->inputs.empty());
    }
    if (const auto* reduction = std::get_if<Reduction>(&op)) return !reduction->function.starts_with("arg");
    if (const auto* picked = std::get_if<Gather>(&op)) return pass != Pass::backward_data || !picked->trained;
    if (const auto* moved = std::get_if<Rearrangement>(&op)) return !moved->inputs.empty();
    return pass != Pass::backward_data || !std::holds_alternative<Parameter>(op);
}

std::optional<Needs> needs(const Op& op) {
    if (const auto* shared = std::get_if<Shared>(&op)) return needs(shared->op->op);
    if (const auto* each = std::get_if<Elementwise>(&op)) {
        return Needs{!linear(*each), false, !linear(*each)};
    }
    if (const auto* reduction = std::get_if<Reduction>(&op)) {
        const bool linear =
            reduction->function == "sum" || reduction->function == "mean" || reduction->function == "cumsum";
        return Needs{!linear, !linear};
    }
    if (std::holds_alternative<Rearrangement>(op)) return Needs{};
    if (std::holds_alternative<Gather>(op)) return Needs{false, false, false};
    if (std::holds_alternative<BatchedMatMul>(op)) return Needs{.src = true};
    if (std::holds_alternative<Recurrent>(op)) return Needs{.dst = true};  // the states; gates are kept besides
    if (std::holds_alternative<Normalization>(op)) return Needs{.src = true};
    if (std::holds_alternative<SoftmaxAlong>(op)) return Needs{.dst = true};
    if (std::holds_alternative<Parameter>(op)) return Needs{false, false, false};
    return std::nullopt;
}

}  // namespace general

}  // namespace rehearse
