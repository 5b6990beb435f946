// SPDX-License-Identifier: Apache-2.0
// Operations and bytes of the general operators, and what their gradients need.
#include <algorithm>
#include <cmath>

#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

using general::row_of;

double count(const Shape& shape) { return static_cast<double>(elements(shape)); }

double count(const std::vector<Shape>& shapes) {
    double sum = 0;
    for (const Shape& shape : shapes) sum += count(shape);
    return sum;
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

// Whether the first operand is an activation.
bool begins_with_input(const Elementwise& op) {
    return op.order.empty() ? !op.inputs.empty() : op.order.front() == 'x';
}

// Whether one activation is multiplied or divided by what no training changes: so is its gradient, which reads that
// and not the activation.
bool scales(const Elementwise& op) {
    if (op.inputs.size() != 1 || !op.weights.empty()) return false;
    return op.function == "mul" || (op.function == "div" && begins_with_input(op));
}

// Where the mask of a choice is an activation, its gradients read it.
bool linear(const Elementwise& op) {
    return scales(op) || (row_of(op).linear && (op.function != "where" || !begins_with_input(op)));
}

double slope(const Elementwise& op) {
    if (op.function == "compound" && !op.numbers.empty()) return op.numbers.front();
    return linear(op) && !scales(op) ? 0 : std::max(1.0, row_of(op).flops);
}

}  // namespace

bool is_general(const Op& op) {
    return general::movements(op, Pass::forward).has_value() || std::holds_alternative<Shared>(op);
}

double multiply_adds(const Op& op) {
    if (const auto* shared = std::get_if<Shared>(&op)) return multiply_adds(shared->op->op);
    if (const auto* stack = std::get_if<BatchedMatMul>(&op)) return general::Forward{}(*stack) / 2;
    if (const auto* cells = std::get_if<Recurrent>(&op)) {
        return static_cast<double>(cells->steps) * static_cast<double>(cells->directions) *
               static_cast<double>(gates_of(*cells)) * static_cast<double>(cells->hidden) *
               (static_cast<double>(cells->inputs) + static_cast<double>(cells->hidden));
    }
    if (const auto* dense = std::get_if<MatMul>(&op)) {
        return static_cast<double>(dense->m) * static_cast<double>(dense->n) * static_cast<double>(dense->k);
    }
    if (const auto* heads = std::get_if<Attention>(&op)) {  // a hidden half is counted: it is there to be multiplied
        return static_cast<double>(heads->heads) * static_cast<double>(heads->queries) *
               static_cast<double>(heads->keys) *
               (static_cast<double>(heads->head_size) + static_cast<double>(value_size(*heads)));
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

// An addition for each value that is added to a row; the gradient of rows that were taken is such a sum.
double Forward::operator()(const Rearrangement& op) const { return op.kind == "addrows" ? count(op.inputs[0]) : 0; }
double BackwardData::operator()(const Rearrangement& op) const { return op.kind == "takerows" ? count(op.output) : 0; }

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

namespace {

// Of what is picked from only the rows that are; sums clear their rows, and read and write one for each that is added.
// Ids are as long as rows are many.
Movements of_rows(const Rearrangement& op, bool forward) {
    const double all = count(op.inputs), ids = count(op.inputs[1]), made = count(op.output),
                 given = count(op.inputs[0]);
    const bool takes = op.kind == "takerows";
    if (takes && forward) return {(ids + made) / all, 1};
    if (takes) return {(ids + given) / all, 3};
    if (forward) return {1, (made + 2 * given) / made};
    return {1, given / made};
}

}  // namespace

std::optional<Movements> movements(const Op& op, Pass pass) {
    const bool forward = pass == Pass::forward;
    if (const auto* shared = std::get_if<Shared>(&op)) return movements(shared->op->op, pass);
    if (const auto* each = std::get_if<Elementwise>(&op)) {
        const bool reads = forward || !linear(*each);
        if (pass == Pass::backward_weights) return Movements{reads ? 1.0 : 0.0, 1, count(each->constants)};
        if (forward) return Movements{1, 1, count(each->constants)};
        return Movements{reads ? 2.0 : 1.0, 1, reads || scales(*each) ? count(each->constants) : 0, reads};
    }
    if (const auto* reduction = std::get_if<Reduction>(&op)) {
        const bool linear =
            reduction->function == "sum" || reduction->function == "mean" || reduction->function == "cumsum";
        return forward || linear ? Movements{} : Movements{2, 2};
    }
    if (const auto* moved = std::get_if<Rearrangement>(&op)) {
        if (of_rows(*moved)) return of_rows(*moved, forward);
        if (by_data(*moved)) return Movements{forward ? 1.0 : 2.0, 1};
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
    if (const auto* moved = std::get_if<Rearrangement>(&op))
        return !moved->inputs.empty() && !moved->kind.ends_with("at");
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
    if (const auto* moved = std::get_if<Rearrangement>(&op)) return Needs{.src = by_data(*moved)};
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
