// SPDX-License-Identifier: Apache-2.0
// Recurrent layers that begin with given states, or whose last cells are read, for who runs them: step by step. No
// kernel of a whole layer takes or gives these states; prices are those of the whole layer.
//
//   x {steps, inputs} --- products of all steps --- rows --+
//                                                          +-- gates -- h, c of the step -- next step
//   h of the step before -- product ----------------------+
#include "models/onnx/parts.hpp"
#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

class Unrolled {
public:
    Unrolled(Import& import, const onnx::NodeProto& node, const Recurrent& op)
        : import_(import), node_(node), op_(op), rows_(gates_of(op) * op.hidden) {}

    void put() {
        std::vector<std::vector<int>> states(static_cast<std::size_t>(op_.steps));
        std::vector<int> last, cells;
        for (std::int64_t d = 0; d < op_.directions; ++d) {
            go(d, states);
            last.push_back(h_);
            cells.push_back(c_);
        }
        std::vector<int> all;
        for (const auto& step : states) all.insert(all.end(), step.begin(), step.end());
        give(0, std::move(all));
        give(1, std::move(last));
        if (op_.cell == "lstm") give(2, std::move(cells));
    }

private:
    int layer(const std::string& what, Op op, std::vector<int> from) {
        return add_part(import_, node_, what, std::move(op), std::move(from));
    }
    int view(int from, const Shape& shape) { return seen_as(import_, node_, from, shape); }
    // {count, columns} from row `first` of a matrix.
    int rows(int from, std::int64_t first, std::int64_t count) { return cut(from, 0, first, count); }
    int columns(int from, std::int64_t first, std::int64_t count) { return cut(from, 1, first, count); }
    int cut(int from, std::size_t axis, std::int64_t first, std::int64_t count) {
        const Shape lies = import_.builder.shape(from);
        Shape made = lies;
        made[axis] = count;
        if (made == lies) return from;
        std::vector<std::int64_t> numbers{0, 0, 1, 1};
        numbers[axis] = first;
        return layer("piece", Rearrangement{"slice", {lies}, made, numbers}, {from});
    }
    int turned(int from) {
        const Shape lies = import_.builder.shape(from);
        return layer("turned", Rearrangement{"transpose", {lies}, {lies[1], lies[0]}, {1, 0}}, {from});
    }
    int product(int a, int b) {
        return layer("product", BatchedMatMul{import_.builder.shape(a), import_.builder.shape(b)}, {a, b});
    }
    int both(const std::string& function, int a, int b) {
        const Shape left = import_.builder.shape(a), right = import_.builder.shape(b);
        return layer(function, Elementwise{function, left, {left, right}}, {a, b});
    }
    int bent(Nonlinearity kind, int from) {
        return layer(std::string{to_string(kind)}, Activation{kind, import_.builder.shape(from)}, {from});
    }
    int gate(int from, std::int64_t which) { return columns(from, which * op_.hidden, op_.hidden); }

    bool given(int input) const { return input < node_.input_size() && !node_.input(input).empty(); }
    // Of a direction the {1, hidden} that it begins with.
    int begin(int input, std::int64_t direction) {
        if (!given(input))
            return import_.fixed_layer(node_, "zeros", {1, op_.hidden},
                                       std::vector<float>(static_cast<std::size_t>(op_.hidden)));
        return rows(view(import_.source(node_, input), {op_.directions, op_.hidden}), direction, 1);
    }
    // Of a direction {columns, rows of all gates}.
    int matrix(int input, std::int64_t direction, std::int64_t width) {
        const int whole = view(import_.bring(node_, node_.input(input)), {op_.directions * rows_, width});
        return turned(rows(whole, direction * rows_, rows_));
    }
    int bias(std::int64_t direction, bool recurrent) {
        const int whole = view(import_.bring(node_, node_.input(3)), {2 * op_.directions, rows_});
        return rows(whole, 2 * direction + (recurrent ? 1 : 0), 1);
    }

    void go(std::int64_t direction, std::vector<std::vector<int>>& states) {
        const int x = import_.source(node_, 0, {op_.steps, op_.inputs});
        int products = product(x, matrix(1, direction, op_.inputs));
        if (op_.bias) products = both("add", products, bias(direction, false));
        const int again = matrix(2, direction, op_.hidden);
        const int added = op_.bias ? bias(direction, true) : -1;
        h_ = begin(5, direction);
        c_ = op_.cell == "lstm" ? begin(6, direction) : -1;
        for (std::int64_t step = 0; step < op_.steps; ++step) {
            const std::int64_t t = op_.reverse || direction == 1 ? op_.steps - 1 - step : step;
            const int own = rows(products, t, 1);
            int back = product(h_, again);
            if (added >= 0) back = both("add", back, added);
            if (op_.cell == "gru") {
                gru(own, back, again, added);
            } else {
                const int sum = both("add", own, back);
                op_.cell == "lstm" ? lstm(sum) : rnn(sum);
            }
            states[static_cast<std::size_t>(t)].push_back(h_);
        }
    }
    void rnn(int sum) { h_ = bent(op_.relu ? Nonlinearity::relu : Nonlinearity::tanh, sum); }
    void lstm(int sum) {
        const int in = bent(Nonlinearity::sigmoid, gate(sum, 0)), out = bent(Nonlinearity::sigmoid, gate(sum, 1));
        const int forget = bent(Nonlinearity::sigmoid, gate(sum, 2)), fresh = bent(Nonlinearity::tanh, gate(sum, 3));
        c_ = both("add", both("mul", forget, c_), both("mul", in, fresh));
        h_ = both("mul", out, bent(Nonlinearity::tanh, c_));
    }
    void gru(int own, int back, int again, int added) {
        const int update = bent(Nonlinearity::sigmoid, both("add", gate(own, 0), gate(back, 0)));
        const int reset = bent(Nonlinearity::sigmoid, both("add", gate(own, 1), gate(back, 1)));
        int left = -1;
        if (op_.reset_after) {
            left = both("mul", reset, gate(back, 2));
        } else {
            left = product(both("mul", reset, h_), gate(again, 2));
            if (added >= 0) left = both("add", left, gate(added, 2));
        }
        const int fresh = bent(Nonlinearity::tanh, both("add", gate(own, 2), left));
        h_ = both("add", fresh, both("mul", update, both("sub", h_, fresh)));
    }

    // The node's output, of rows {1, hidden}.
    void give(int output, std::vector<int> from) {
        if (output >= node_.output_size() || node_.output(output).empty()) return;
        const std::vector<Shape> shapes(from.size(), Shape{1, op_.hidden});
        const Shape made{static_cast<std::int64_t>(from.size()), op_.hidden};
        const int joined =
            from.size() == 1 ? from.front() : layer("join", Rearrangement{"join", shapes, made, {0}}, from);
        import_.places[node_.output(output)] = {joined, ""};
    }

    Import& import_;
    const onnx::NodeProto& node_;
    const Recurrent& op_;
    std::int64_t rows_;
    int h_ = -1, c_ = -1;
};

}  // namespace

void put_unrolled(Import& import, const onnx::NodeProto& node, const Recurrent& op) {
    Unrolled{import, node, op}.put();
}

}  // namespace rehearse::models
