// SPDX-License-Identifier: Apache-2.0
// General operators: what an imported network computes beside the operators that have a form of their own. Each has
// exact counts of operations and bytes. Included by op.hpp, which says what an operator is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

using Shape = std::vector<std::int64_t>;

/// A function of each element of its operands, which broadcast to `shape` as NumPy's do. `function` is one of
/// elementwise_functions(). Operands are first the activations (`inputs`), then the trainable tensors (`weights`, the
/// same for every sample), then fixed tensors (`constants`, read but not trained), then `numbers`: the bounds of clip,
/// the factor of mul. `order` says otherwise where the function needs them so, a letter an operand: x an input, w a
/// trainable tensor, c a fixed one, n a number ("cxn": where a mask holds the input, else the number). What fixed
/// tensors hold, and which elements of a trainable one are meant where it does not broadcast itself, is Layer::given.
struct Elementwise {
    std::string function = "mul";
    Shape shape;
    std::vector<Shape> inputs;
    std::vector<Shape> weights{};
    std::vector<Shape> constants{};
    std::vector<double> numbers{};
    std::string order{};
    bool operator==(const Elementwise&) const = default;
};
struct ElementwiseFunction {
    std::string_view name;
    double flops;  // an element of the result; as Activation counts, 8 for what a processor takes a series for
    bool linear;   // in each operand alone, so that the gradient reads none of the others
    bool sloped;   // has a gradient at all
};
std::span<const ElementwiseFunction> elementwise_functions();

/// One value of each of the elements along `axes` of `shape`, which stay as sizes of 1 where `keep`: "sum", "mean",
/// "max", "min", "prod", "l1", "l2", "sumsquare", "logsum", "logsumexp", "argmax", "argmin", "topk" and "cumsum", which
/// keeps the shape.
struct Reduction {
    std::string function = "mean";
    Shape shape;
    std::vector<std::int64_t> axes;
    bool keep = false;
    bool operator==(const Reduction&) const = default;
};

/// Values that move: "transpose" (numbers: for each axis of the result the axis it was), "slice" (the first of each
/// axis, then the step of each), "pad" (how many before each axis, cut off where negative; they hold `fill`), "edge",
/// "reflect" and "wrap" (padding with the input's own values), "expand" (to more of the same along axes of size 1),
/// "tile", "join" along numbers[0], "pack" (anything else: Layer::given says which element each of the result is, of
/// the inputs one after the other, -1 for `fill`).
struct Rearrangement {
    std::string kind = "transpose";
    std::vector<Shape> inputs;
    Shape output;
    std::vector<std::int64_t> numbers{};
    double fill = 0;
    bool operator==(const Rearrangement&) const = default;
};

/// Elements of `table` picked by `indices` integers: the result has the shape `output`. The table is an activation, or
/// `trained`. `scatter`: elements of a second input are put there instead, and the result has the table's shape.
/// Layer::given says which element of the table each of `output` is.
struct Gather {
    Shape table, output;
    std::int64_t indices = 1;
    bool trained = false, scatter = false;
    bool operator==(const Gather&) const = default;
};

/// A stack of matrix products {..., m, k} x {..., k, n}, whose leading sizes broadcast. One of the operands may be
/// trainable: `trained` is then 1 (the left one) or 2.
struct BatchedMatMul {
    Shape a, b;
    int trained = 0;
    bool operator==(const BatchedMatMul&) const = default;
};

/// A layer of a recurrent network over all steps: "rnn", "gru" (Cho et al. 2014) or "lstm" (Hochreiter and Schmidhuber
/// 1997); input {steps, inputs}, output {steps, directions, hidden}. Weights as in ONNX: {directions, gates * hidden,
/// inputs}, {directions, gates * hidden, hidden} and, with bias, {directions, 2 * gates * hidden}; gates in its order
/// (input, output, forget, cell; update, reset, hidden). It begins with zeros. With two directions the second goes from
/// the last step to the first, with `reverse` the only one does. `reset_after`: of a GRU, the reset gate multiplies
/// the recurrent product, bias included, as cuDNN has it, and not the state before it. `relu`: in place of an rnn's
/// tanh.
struct Recurrent {
    std::string cell = "lstm";
    std::int64_t steps = 1, inputs = 1, hidden = 1, directions = 1;
    bool bias = true;
    bool reverse = false, reset_after = false, relu = false;
    bool operator==(const Recurrent&) const = default;
};
/// Products of a step with matrices of `hidden` rows: 1, 3 or 4.
std::int64_t gates_of(const Recurrent& op);

/// `sets` equal parts of a sample, each normalized to mean 0 (if `centred`) and variance or mean square 1: instance,
/// group, RMS and layer normalization. Trainable gamma and beta hold `gamma` and `beta` elements (0: none); element i
/// takes number (i / inner) mod gamma.
struct Normalization {
    Shape shape;
    std::int64_t sets = 1;
    std::int64_t gamma = 0, beta = 0, inner = 1;
    bool centred = true;
    double epsilon = 1e-5;
    bool operator==(const Normalization&) const = default;
};

/// Softmax along one axis, or its logarithm.
struct SoftmaxAlong {
    Shape shape;
    std::int64_t axis = 0;
    bool log = false;
    bool operator==(const SoftmaxAlong&) const = default;
};

/// A trainable tensor that stands beside each sample, as a class token does.
struct Parameter {
    Shape shape;
    bool operator==(const Parameter&) const = default;
};

/// A layer that computes `op` with all the weights of an earlier layer (Layer::weights_of). It has none of its own; its
/// gradient is added to the owner's. Problems hold `op` itself: computed() in op.hpp.
struct SharedOp;
struct Shared {
    std::shared_ptr<const SharedOp> op;
    bool operator==(const Shared& other) const;
};

}  // namespace rehearse
