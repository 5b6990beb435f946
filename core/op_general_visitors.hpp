// SPDX-License-Identifier: Apache-2.0
// What the general operators answer; the visitors of op.cpp, op_shapes.cpp, op_costs.cpp and problem.cpp inherit these.
#pragma once

#include <string>
#include <vector>

#include "core/op.hpp"
#include "core/problem_parts.hpp"

namespace rehearse::general {

/// InputError where there is no such function.
const ElementwiseFunction& row_of(const Elementwise& op);
/// Whether where values go depends on what they are.
bool by_data(const Rearrangement& op);
/// Rows that are picked, or added up, by numbers of rows in the second input: messages of a graph.
bool of_rows(const Rearrangement& op);

struct Inputs {
    std::vector<Shape> operator()(const Elementwise& op) const { return op.inputs; }
    std::vector<Shape> operator()(const Reduction& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Rearrangement& op) const { return op.inputs; }
    std::vector<Shape> operator()(const Gather& op) const;
    std::vector<Shape> operator()(const BatchedMatMul& op) const;
    std::vector<Shape> operator()(const Recurrent& op) const { return {{op.steps, op.inputs}}; }
    std::vector<Shape> operator()(const Normalization& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const SoftmaxAlong& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Parameter&) const { return {}; }
    std::vector<Shape> operator()(const Shared& op) const { return input_shapes(op.op->op); }
};

/// Checks the sizes too: InputError says what is wrong.
struct Output {
    Shape operator()(const Elementwise& op) const;
    Shape operator()(const Reduction& op) const;
    Shape operator()(const Rearrangement& op) const;
    Shape operator()(const Gather& op) const;
    Shape operator()(const BatchedMatMul& op) const;
    Shape operator()(const Recurrent& op) const;
    Shape operator()(const Normalization& op) const;
    Shape operator()(const SoftmaxAlong& op) const;
    Shape operator()(const Parameter& op) const { return op.shape; }
    Shape operator()(const Shared& op) const { return output_shape(op.op->op); }
};

struct Weights {
    std::vector<WeightTensor> operator()(const Elementwise& op) const;
    std::vector<WeightTensor> operator()(const Gather& op) const;
    std::vector<WeightTensor> operator()(const BatchedMatMul& op) const;
    std::vector<WeightTensor> operator()(const Recurrent& op) const;
    std::vector<WeightTensor> operator()(const Normalization& op) const;
    std::vector<WeightTensor> operator()(const Parameter& op) const { return {{"weights", op.shape}}; }
};

/// Operations of one sample: what the function takes, backward that of each gradient.
struct Forward {
    double operator()(const Elementwise& op) const;
    double operator()(const Reduction& op) const;
    double operator()(const Rearrangement& op) const;
    double operator()(const Gather&) const { return 0; }
    double operator()(const BatchedMatMul& op) const;
    double operator()(const Recurrent& op) const;
    double operator()(const Normalization& op) const;
    double operator()(const SoftmaxAlong& op) const { return 4 * static_cast<double>(elements(op.shape)); }
    double operator()(const Parameter&) const { return 0; }
    double operator()(const Shared&) const { return 0; }  // flops() asks what it computes
};
struct BackwardData {
    double operator()(const Elementwise& op) const;
    double operator()(const Rearrangement& op) const;
    double operator()(const Gather& op) const { return static_cast<double>(op.scatter ? 0 : elements(op.output)); }
    double operator()(const BatchedMatMul& op) const;
    double operator()(const Recurrent& op) const { return Forward{}(op); }
    double operator()(const Normalization& op) const;
};
struct BackwardWeights {
    double operator()(const Elementwise& op) const;
    double operator()(const Gather& op) const { return static_cast<double>(elements(op.output)); }
    double operator()(const Parameter& op) const { return static_cast<double>(elements(op.shape)); }
};

struct Text {
    std::string operator()(const Elementwise& op) const;
    std::string operator()(const Reduction& op) const;
    std::string operator()(const Rearrangement& op) const;
    std::string operator()(const Gather& op) const;
    std::string operator()(const BatchedMatMul& op) const;
    std::string operator()(const Recurrent& op) const;
    std::string operator()(const Normalization& op) const;
    std::string operator()(const SoftmaxAlong& op) const;
    std::string operator()(const Parameter& op) const { return to_string(op.shape); }
    std::string operator()(const Shared& op) const { return to_string(op.op->op); }
};

/// Nothing when the kind is none of these; Shared is read by parse_op itself.
std::optional<Op> parse(const ProblemParts& parts, std::string_view kind);

/// How often a pass reads or writes the inputs' and the output's elements, and how many elements of no sample it reads
/// besides weights; nothing for operators that are not general.
struct Movements {
    double inputs = 1, output = 1, fixed = 0;
    bool weights = true;  // all of them cross memory; of a table only the rows picked
};
std::optional<Movements> movements(const Op& op, Pass pass);

/// Whether the operator has anything to compute: Parameter has no data gradient, a comparison no gradient at all.
bool has_gradient(const Op& op, Pass pass);

/// What the data gradient needs of the forward pass: its inputs, its output.
struct Needs {
    bool src = false, dst = false;
    bool weights_src = true;  // the weights' gradient takes src
};
std::optional<Needs> needs(const Op& op);

}  // namespace rehearse::general
