// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, forward and backward through time: every step of every sample by itself.
#include <cmath>
#include <string_view>
#include <vector>

#include "core/index.hpp"
#include "kernels/general/places.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// One direction of one sample. Gates are numbered as ONNX has them: of an LSTM input, output, forget, cell; of a GRU
// update, reset, hidden.
class Line {
public:
    Line(const Recurrent& op, const Buffers& b, std::int64_t sample, std::int64_t direction)
        : op_(op), b_(b), sample_(sample), direction_(direction), gates_(gates_of(op)) {}

    void forward() {
        std::vector<double> state(at(op_.hidden)), cell(at(op_.hidden));
        for (std::int64_t step = 0; step < op_.steps; ++step) {
            const std::int64_t t = time(step);
            std::vector<double> next(at(op_.hidden)), gates(at(gates_ * op_.hidden));
            for (std::int64_t gate = 0; gate < gates_; ++gate) {
                for (std::int64_t j = 0; j < op_.hidden; ++j) {
                    const std::int64_t row = gate * op_.hidden + j;
                    const double own = of_input(t, row), again = of_state(row, state, gates, gate);
                    gates[at(row)] = activate(gate, own + again);
                }
            }
            for (std::int64_t j = 0; j < op_.hidden; ++j) {
                const auto gate = [&](std::int64_t g) { return gates[at(g * op_.hidden + j)]; };
                if (op_.cell == "lstm") {
                    cell[at(j)] = gate(2) * cell[at(j)] + gate(0) * gate(3);
                    next[at(j)] = gate(1) * std::tanh(cell[at(j)]);
                } else if (op_.cell == "gru") {
                    next[at(j)] = (1 - gate(0)) * gate(2) + gate(0) * state[at(j)];
                } else {
                    next[at(j)] = gate(0);
                }
                for (std::int64_t g = 0; g < gates_; ++g) kept(t, g, j) = static_cast<float>(gate(g));
                if (op_.cell == "lstm") kept(t, gates_, j) = static_cast<float>(cell[at(j)]);
                b_.dst[output(t, j)] = static_cast<float>(next[at(j)]);
            }
            state = next;
        }
    }

    // What `step`s leave behind in `diff_input` {steps, inputs} and `diff_weights`, each where it is not empty.
    void backward(std::span<double> diff_input, std::span<double> diff_weights) {
        std::vector<double> of_next(at(op_.hidden)), of_cell(at(op_.hidden));
        for (std::int64_t step = op_.steps; step-- > 0;) {
            const std::int64_t t = time(step), before = step == 0 ? -1 : time(step - 1);
            std::vector<double> slopes(at(gates_ * op_.hidden)), back(at(op_.hidden));
            // What goes back through the recurrent product; of a GRU's hidden gate it is not what enters the gate.
            std::vector<double> inner;
            for (std::int64_t j = 0; j < op_.hidden; ++j) {
                const double g = b_.diff_dst[output(t, j)] + of_next[at(j)];
                slopes_of(t, before, j, g, slopes, back, of_cell);
            }
            inner = slopes;
            if (op_.cell == "gru") reset_slopes(t, before, slopes, inner, back);
            spread(t, before, slopes, inner, back, diff_input, diff_weights);
            of_next = back;
        }
    }

private:
    std::int64_t time(std::int64_t step) const {
        const bool backwards = op_.reverse || direction_ == 1;
        return backwards ? op_.steps - 1 - step : step;
    }
    std::int64_t output(std::int64_t t, std::int64_t j) const {
        return ((sample_ * op_.steps + t) * op_.directions + direction_) * op_.hidden + j;
    }
    float& kept(std::int64_t t, std::int64_t which, std::int64_t j) const {
        const std::int64_t place = (sample_ * op_.steps + t) * op_.directions + direction_;
        return b_.workspace[at((place * general::kept_values(op_) + which) * op_.hidden + j)];
    }
    double state(std::int64_t t, std::int64_t j) const { return t < 0 ? 0.0 : b_.dst_in[output(t, j)]; }
    double input(std::int64_t t, std::int64_t i) const { return b_.src[0][(sample_ * op_.steps + t) * op_.inputs + i]; }
    // Places in the weights: of the input's, of the recurrence, of their biases.
    std::int64_t of_w(std::int64_t row, std::int64_t i) const { return (direction_ * rows() + row) * op_.inputs + i; }
    std::int64_t of_r(std::int64_t row, std::int64_t i) const {
        return op_.directions * rows() * op_.inputs + (direction_ * rows() + row) * op_.hidden + i;
    }
    std::int64_t of_bias(std::int64_t row, bool recurrent) const {
        const std::int64_t first = op_.directions * rows() * (op_.inputs + op_.hidden);
        return first + (2 * direction_ + (recurrent ? 1 : 0)) * rows() + row;
    }
    std::int64_t rows() const { return gates_ * op_.hidden; }
    double bias(std::int64_t row, bool recurrent) const {
        return op_.bias ? b_.weights[of_bias(row, recurrent)] : 0.0F;
    }

    double of_input(std::int64_t t, std::int64_t row) const {
        double sum = bias(row, false);
        for (std::int64_t i = 0; i < op_.inputs; ++i) sum += input(t, i) * b_.weights[of_w(row, i)];
        return sum;
    }
    double recurrent_product(std::int64_t row, const std::vector<double>& state) const {
        double sum = bias(row, true);
        for (std::int64_t i = 0; i < op_.hidden; ++i) sum += state[at(i)] * b_.weights[of_r(row, i)];
        return sum;
    }
    double of_state(std::int64_t row, const std::vector<double>& state, const std::vector<double>& gates,
                    std::int64_t gate) const {
        if (op_.cell != "gru" || gate != 2) return recurrent_product(row, state);
        const auto reset = [&](std::int64_t i) { return gates[at(op_.hidden + i)]; };
        if (op_.reset_after) return reset(row - 2 * op_.hidden) * recurrent_product(row, state);
        std::vector<double> left(state.size());
        for (std::size_t i = 0; i < state.size(); ++i) left[i] = reset(static_cast<std::int64_t>(i)) * state[i];
        return recurrent_product(row, left);
    }
    double activate(std::int64_t gate, double x) const {
        const bool last = gate == gates_ - 1;
        if (!last) return logistic(x);
        return op_.relu ? std::max(x, 0.0) : std::tanh(x);
    }
    static double of_tanh(double y) { return 1 - y * y; }
    static double of_logistic(double y) { return y * (1 - y); }

    // Gradients at the gates' own sums, but for a GRU's reset gate.
    void slopes_of(std::int64_t t, std::int64_t before, std::int64_t j, double g, std::vector<double>& slopes,
                   std::vector<double>& back, std::vector<double>& of_cell) const {
        const auto slope = [&](std::int64_t gate) -> double& { return slopes[at(gate * op_.hidden + j)]; };
        const auto gate = [&](std::int64_t which) -> double { return kept(t, which, j); };
        if (op_.cell == "lstm") {
            const double cell = gate(4), old = before < 0 ? 0.0 : kept(before, 4, j), bent = std::tanh(cell);
            slope(1) = g * bent * of_logistic(gate(1));
            const double c = of_cell[at(j)] + g * gate(1) * of_tanh(bent);
            slope(0) = c * gate(3) * of_logistic(gate(0));
            slope(2) = c * old * of_logistic(gate(2));
            slope(3) = c * gate(0) * of_tanh(gate(3));
            of_cell[at(j)] = c * gate(2);
        } else if (op_.cell == "gru") {
            slope(0) = g * (state(before, j) - gate(2)) * of_logistic(gate(0));
            slope(2) = g * (1 - gate(0)) * of_tanh(gate(2));
            back[at(j)] = g * gate(0);
        } else {
            slope(0) = op_.relu ? (gate(0) > 0 ? g : 0) : g * of_tanh(gate(0));
        }
    }

    // Of the reset gate, through the hidden gate's product or what enters it.
    void reset_slopes(std::int64_t t, std::int64_t before, std::vector<double>& slopes, std::vector<double>& inner,
                      std::vector<double>& back) const {
        for (std::int64_t j = 0; j < op_.hidden; ++j) {
            const double reset = kept(t, 1, j);
            double of_reset = 0;
            if (op_.reset_after) {
                const std::int64_t row = 2 * op_.hidden + j;
                double product = bias(row, true);
                for (std::int64_t i = 0; i < op_.hidden; ++i) product += state(before, i) * b_.weights[of_r(row, i)];
                of_reset = slopes[at(row)] * product;
                inner[at(row)] = slopes[at(row)] * reset;
            } else {
                double left = 0;
                for (std::int64_t row = 2 * op_.hidden; row < rows(); ++row)
                    left += slopes[at(row)] * b_.weights[of_r(row, j)];
                of_reset = left * state(before, j);
                back[at(j)] += left * reset;
            }
            slopes[at(op_.hidden + j)] = inner[at(op_.hidden + j)] = of_reset * of_logistic(reset);
        }
    }

    void spread(std::int64_t t, std::int64_t before, const std::vector<double>& slopes,
                const std::vector<double>& inner, std::vector<double>& back, std::span<double> diff_input,
                std::span<double> diff_weights) const {
        for (std::int64_t row = 0; row < rows(); ++row) {
            // Before the product of a GRU's hidden gate the state was multiplied by the reset gate.
            const bool left = op_.cell == "gru" && !op_.reset_after && row >= 2 * op_.hidden;
            for (std::int64_t i = 0; i < op_.inputs && !diff_input.empty(); ++i)
                diff_input[at(t * op_.inputs + i)] += slopes[at(row)] * b_.weights[of_w(row, i)];
            for (std::int64_t i = 0; i < op_.hidden && !left; ++i)
                back[at(i)] += inner[at(row)] * b_.weights[of_r(row, i)];
            if (diff_weights.empty()) continue;
            for (std::int64_t i = 0; i < op_.inputs; ++i)
                diff_weights[at(of_w(row, i))] += slopes[at(row)] * input(t, i);
            for (std::int64_t i = 0; i < op_.hidden; ++i)
                diff_weights[at(of_r(row, i))] += inner[at(row)] * state(before, i) * (left ? kept(t, 1, i) : 1.0F);
            if (!op_.bias) continue;
            diff_weights[at(of_bias(row, false))] += slopes[at(row)];
            diff_weights[at(of_bias(row, true))] += inner[at(row)];
        }
    }

    const Recurrent& op_;
    const Buffers& b_;
    std::int64_t sample_, direction_, gates_;
};

}  // namespace

void run(const Recurrent& op, Pass pass, std::int64_t batch, const Buffers& b) {
    std::vector<double> diff_weights(pass == Pass::backward_weights ? b.diff_weights.size() : 0);
    for (std::int64_t n = 0; n < batch; ++n) {
        const std::int64_t size = op.steps * op.inputs;
        std::vector<double> diff_input(pass == Pass::backward_data ? at(size) : 0);
        for (std::int64_t direction = 0; direction < op.directions; ++direction) {
            Line line{op, b, n, direction};
            if (pass == Pass::forward) line.forward();
            if (pass != Pass::forward) line.backward(diff_input, diff_weights);
        }
        for (std::size_t i = 0; i < diff_input.size(); ++i)
            b.diff_src[0][n * size + static_cast<std::int64_t>(i)] = static_cast<float>(diff_input[i]);
    }
    for (std::size_t i = 0; i < diff_weights.size(); ++i) b.diff_weights[i] = static_cast<float>(diff_weights[i]);
}

}  // namespace rehearse::kernels::reference
