// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: products with the input are one large product of all steps; those with the state are one of a
// worker's samples at each step, whose weights are packed once for all steps. Backward through time leaves the gates'
// gradients of all steps, of which the gradients of input and weights are large products again.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/general/curves.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels::cpu {
namespace {

float of_logistic(float y) { return y * (1 - y); }
float of_tanh(float y) { return 1 - y * y; }

enum class Cell { rnn, lstm, gru };

class Steps final : public Shared {
public:
    explicit Steps(const Problem& problem)
        : Shared(problem, kernels::general::recurrent_workspace(std::get<Recurrent>(problem.op), problem.batch)),
          op_(std::get<Recurrent>(problem.op)),
          pass_(problem.pass),
          cell_(op_.cell == "lstm"  ? Cell::lstm
                : op_.cell == "gru" ? Cell::gru
                                    : Cell::rnn),
          batch_(problem.batch),
          rows_(gates_of(op_) * op_.hidden),
          kept_(kernels::general::kept_values(op_)) {
        const std::int64_t all = batch_ * op_.steps;
        gemm_ = whole_lines(std::max(
            {gemm_workspace({all, rows_, op_.inputs}), gemm_workspace({all, op_.inputs, rows_}),
             gemm_workspace({rows_, op_.inputs, all}), gemm_workspace({rows_, op_.hidden, all}), packed_left(rows_)}));
        sums_ = whole_lines(all * rows_);
        states_ = whole_lines(batch_ * std::max(rows_, op_.hidden));
        packed_ = whole_lines(std::max(packed_b_floats(rows_, op_.hidden), packed_b_floats(op_.hidden, rows_)));
        hidden_ = cell_ == Cell::gru ? whole_lines(packed_b_floats(op_.hidden, op_.hidden)) : 0;
        reserve(2 * sums_ + whole_lines(all * op_.hidden) + 4 * states_ + packed_ + hidden_ + workers_ * gemm_);
    }

private:
    // Of the samples of a worker: panels of fewer rows than all together may be cut so that more lines are filled up.
    std::int64_t packed_left(std::int64_t k) const { return (batch_ + panel_rows(batch_) + most_rows) * k; }
    static constexpr std::int64_t most_rows = 16;

    // One direction's weights, and the gradients of them.
    struct Weights {
        const float *input, *state, *bias;
    };
    Weights weights(const float* all, std::int64_t direction) const {
        const std::int64_t d = op_.directions;
        return {all + direction * rows_ * op_.inputs, all + d * rows_ * op_.inputs + direction * rows_ * op_.hidden,
                op_.bias ? all + d * rows_ * (op_.inputs + op_.hidden) + direction * 2 * rows_ : nullptr};
    }
    std::int64_t time(std::int64_t step, std::int64_t direction) const {
        return op_.reverse || direction == 1 ? op_.steps - 1 - step : step;
    }
    // Of the state behind a step of a sample, and of what is kept of it.
    std::int64_t output(std::int64_t n, std::int64_t t, std::int64_t direction) const {
        return ((n * op_.steps + t) * op_.directions + direction) * op_.hidden;
    }
    std::int64_t kept(std::int64_t n, std::int64_t t, std::int64_t direction) const {
        return ((n * op_.steps + t) * op_.directions + direction) * kept_ * op_.hidden;
    }

    struct Room {
        float *sums, *inner, *lefts, *states, *products, *carry, *cells;
        float *packed, *hidden;  // weights of the states, and of a GRU's hidden gate alone
        float* gemm;
    };
    Room room(float* scratch) const {
        Room all{};
        all.sums = scratch;
        all.inner = all.sums + sums_;
        all.lefts = all.inner + sums_;
        all.states = all.lefts + whole_lines(batch_ * op_.steps * op_.hidden);
        all.products = all.states + states_;
        all.carry = all.products + states_;
        all.cells = all.carry + states_;
        all.packed = all.cells + states_;
        all.hidden = all.packed + packed_;
        all.gemm = all.hidden + hidden_;
        return all;
    }

    void compute(const Buffers& b, float* scratch) override {
        const Room r = room(scratch);
        const std::int64_t all = batch_ * op_.steps;
        for (std::int64_t direction = 0; direction < op_.directions; ++direction) {
            const Weights w = weights(b.weights.data(), direction);
            pack(w, r);
            if (pass_ == Pass::forward) {
                by_rows(all, [&](std::int64_t worker, Stretch part) {
                    gemm({part.end - part.begin, rows_, op_.inputs},
                         {b.src[0].data() + part.begin * op_.inputs, op_.inputs, 1}, {w.input, 1, op_.inputs},
                         r.sums + part.begin * rows_, rows_, false, r.gemm + worker * gemm_);
                });
                by_rows(batch_, [&](std::int64_t worker, Stretch part) { forward(b, w, r, direction, worker, part); });
                continue;
            }
            by_rows(batch_, [&](std::int64_t worker, Stretch part) { backward(b, w, r, direction, worker, part); });
            if (pass_ == Pass::backward_data) {
                by_rows(all, [&](std::int64_t worker, Stretch part) {
                    gemm({part.end - part.begin, op_.inputs, rows_}, {r.sums + part.begin * rows_, rows_, 1},
                         {w.input, op_.inputs, 1}, b.diff_src[0].data() + part.begin * op_.inputs, op_.inputs,
                         direction > 0, r.gemm + worker * gemm_);
                });
            } else {
                of_weights(b, r, direction);
            }
        }
    }

    // What goes through the reset gate of a GRU first is a product of its own.
    bool resets_first() const { return cell_ == Cell::gru && !op_.reset_after; }
    std::int64_t through() const { return resets_first() ? 2 * op_.hidden : rows_; }

    void pack(const Weights& w, const Room& r) const {
        const std::int64_t h = op_.hidden;
        const float* const of_hidden = w.state + 2 * h * h;
        if (pass_ == Pass::forward) {
            pack_b({0, through(), h}, {w.state, 1, h}, r.packed);
            if (resets_first()) pack_b({0, h, h}, {of_hidden, 1, h}, r.hidden);
        } else {
            pack_b({0, h, through()}, {w.state, h, 1}, r.packed);
            if (resets_first()) pack_b({0, h, h}, {of_hidden, h, 1}, r.hidden);
            if (cell_ == Cell::gru && op_.reset_after) pack_b({0, h, h}, {of_hidden, 1, h}, r.hidden);
        }
    }

    // c = or += left times what was packed.
    static void step_product(GemmShape shape, MatrixView left, const float* packed, float* c, std::int64_t ldc,
                             bool accumulate, float* work) {
        pack_a(shape, left, work);
        gemm_packed(shape, work, packed, c, ldc, accumulate);
    }

    template <typename Act>
    void by_rows(std::int64_t count, Act act) const {
        share(count, 1, workers_, act);
    }

    // Rows of `states` are the state before the step of each sample of the part.
    void forward(const Buffers& b, const Weights& w, const Room& r, std::int64_t direction, std::int64_t worker,
                 Stretch part) const {
        const std::int64_t h = op_.hidden, samples = part.end - part.begin;
        float* const states = r.states + part.begin * h;
        float* const products = r.products + part.begin * rows_;
        float* const cells = r.cells + part.begin * h;
        float* const work = r.gemm + worker * gemm_;
        std::fill_n(states, samples * h, 0.0F);
        std::fill_n(cells, samples * h, 0.0F);
        for (std::int64_t step = 0; step < op_.steps; ++step) {
            const std::int64_t t = time(step, direction);
            step_product({samples, through(), h}, {states, h, 1}, r.packed, products, rows_, false, work);
            for (std::int64_t n = part.begin; n < part.end; ++n) {
                const float* const own = r.sums + (n * op_.steps + t) * rows_;
                const float* const again = products + (n - part.begin) * rows_;
                float* const gates = b.workspace.data() + kept(n, t, direction);
                const std::int64_t first = cell_ == Cell::gru ? 2 * h : rows_;  // the hidden gate of a GRU comes later
                for (std::int64_t i = 0; i < first; ++i) gates[i] = own[i] + again[i];
                for (std::int64_t i = 0; w.bias != nullptr && i < first; ++i) gates[i] += w.bias[i] + w.bias[rows_ + i];
                activate(gates, first);
            }
            if (cell_ == Cell::gru) hidden_gates(b, w, r, direction, t, worker, part);
            for (std::int64_t n = part.begin; n < part.end; ++n) {
                next(b.workspace.data() + kept(n, t, direction), states + (n - part.begin) * h,
                     cells + (n - part.begin) * h);
                std::copy_n(states + (n - part.begin) * h, h, b.dst.data() + output(n, t, direction));
            }
        }
    }

    // The last gate is what enters the state, the others are open between 0 and 1.
    void activate(float* gates, std::int64_t count) const {
        const std::int64_t open = std::min(count, (gates_of(op_) - 1) * op_.hidden);
        along_curve({kernels::general::Function::sigmoid}, gates, open, gates);
        if (!op_.relu) return along_curve({kernels::general::Function::tanh}, gates + open, count - open, gates + open);
        for (std::int64_t i = open; i < count; ++i) gates[i] = std::max(gates[i], 0.0F);
    }

    void hidden_gates(const Buffers& b, const Weights& w, const Room& r, std::int64_t direction, std::int64_t t,
                      std::int64_t worker, Stretch part) const {
        const std::int64_t h = op_.hidden, samples = part.end - part.begin;
        const float* const states = r.states + part.begin * h;
        float* const products = r.products + part.begin * rows_;
        if (!op_.reset_after) {  // of the state behind the reset gate
            float* const left = r.carry + part.begin * h;
            for (std::int64_t n = part.begin; n < part.end; ++n)
                for (std::int64_t i = 0; i < h; ++i)
                    left[(n - part.begin) * h + i] =
                        states[(n - part.begin) * h + i] * b.workspace[kept(n, t, direction) + h + i];
            step_product({samples, h, h}, {left, h, 1}, r.hidden, products + 2 * h, rows_, false,
                         r.gemm + worker * gemm_);
        }
        for (std::int64_t n = part.begin; n < part.end; ++n) {
            float* const gates = b.workspace.data() + kept(n, t, direction);
            const float* const own = r.sums + (n * op_.steps + t) * rows_;
            const float* const again = products + (n - part.begin) * rows_;
            for (std::int64_t i = 0; i < h; ++i) {
                const std::int64_t row = 2 * h + i;
                const float recurrent = again[row] + (w.bias == nullptr ? 0.0F : w.bias[rows_ + row]);
                const float input = own[row] + (w.bias == nullptr ? 0.0F : w.bias[row]);
                gates[row] = input + (op_.reset_after ? gates[h + i] * recurrent : recurrent);
            }
            along_curve({kernels::general::Function::tanh}, gates + 2 * h, h, gates + 2 * h);
        }
    }

    // The state and, of an LSTM, the cell behind the step, which is kept, too.
    void next(float* gates, float* state, float* cell) const {
        const std::int64_t h = op_.hidden;
        if (cell_ == Cell::lstm) {
            for (std::int64_t i = 0; i < h; ++i) {
                cell[i] = gates[2 * h + i] * cell[i] + gates[i] * gates[3 * h + i];
                gates[4 * h + i] = cell[i];
            }
            along_curve({kernels::general::Function::tanh}, cell, h, state);
            for (std::int64_t i = 0; i < h; ++i) state[i] *= gates[h + i];
            return;
        }
        for (std::int64_t i = 0; i < h; ++i) {
            if (cell_ == Cell::gru) {
                state[i] = (1 - gates[i]) * gates[2 * h + i] + gates[i] * state[i];
            } else {
                state[i] = gates[i];
            }
        }
    }

    // Leaves in `sums` the gradients of the gates' sums, in `inner` those of the recurrent products, in `lefts` what
    // entered the product of a GRU's hidden gate.
    void backward(const Buffers& b, const Weights& w, const Room& r, std::int64_t direction, std::int64_t worker,
                  Stretch part) const {
        const std::int64_t h = op_.hidden, samples = part.end - part.begin;
        float* const carry = r.carry + part.begin * h;
        float* const cells = r.cells + part.begin * h;
        float* const work = r.gemm + worker * gemm_;
        std::fill_n(carry, samples * h, 0.0F);
        std::fill_n(cells, samples * h, 0.0F);
        for (std::int64_t step = op_.steps; step-- > 0;) {
            const std::int64_t t = time(step, direction), before = step == 0 ? -1 : time(step - 1, direction);
            if (cell_ == Cell::gru && op_.reset_after) recurrent_products(b, w, r, direction, before, worker, part);
            for (std::int64_t n = part.begin; n < part.end; ++n) gradients(b, w, r, direction, n, t, before, part);
            if (cell_ == Cell::gru && !op_.reset_after) {  // first through the product, then through the reset gate
                float* const left = r.states + part.begin * h;
                step_product({samples, h, h},
                             {r.inner + (part.begin * op_.steps + t) * rows_ + 2 * h, op_.steps * rows_, 1}, r.hidden,
                             left, h, false, work);
                for (std::int64_t n = part.begin; n < part.end; ++n)
                    through_reset(b, r, direction, n, t, before, left + (n - part.begin) * h,
                                  carry + (n - part.begin) * h);
            }
            step_product({samples, h, through()},
                         {r.inner + (part.begin * op_.steps + t) * rows_, op_.steps * rows_, 1}, r.packed, carry, h,
                         true, work);
        }
    }

    float state(const Buffers& b, std::int64_t n, std::int64_t t, std::int64_t direction, std::int64_t i) const {
        return t < 0 ? 0.0F : b.dst_in.data()[output(n, t, direction) + i];
    }

    // What a GRU's reset gate multiplied: into `products`.
    void recurrent_products(const Buffers& b, const Weights& w, const Room& r, std::int64_t direction,
                            std::int64_t before, std::int64_t worker, Stretch part) const {
        const std::int64_t h = op_.hidden, samples = part.end - part.begin;
        float* const products = r.products + part.begin * rows_;
        if (before < 0) {
            std::fill_n(products, samples * h, 0.0F);
        } else {
            step_product({samples, h, h},
                         {b.dst_in.data() + output(part.begin, before, direction), op_.steps * op_.directions * h, 1},
                         r.hidden, products, h, false, r.gemm + worker * gemm_);
        }
        for (std::int64_t i = 0; w.bias != nullptr && i < samples * h; ++i)
            products[i] += w.bias[rows_ + 2 * h + i % h];
    }

    void gradients(const Buffers& b, const Weights& /*w*/, const Room& r, std::int64_t direction, std::int64_t n,
                   std::int64_t t, std::int64_t before, Stretch part) const {
        const std::int64_t h = op_.hidden;
        const float* const gates = b.workspace.data() + kept(n, t, direction);
        const float* const g = b.diff_dst.data() + output(n, t, direction);
        float* const sums = r.sums + (n * op_.steps + t) * rows_;
        float* const inner = r.inner + (n * op_.steps + t) * rows_;
        float* const carry = r.carry + n * h;
        float* const cells = r.cells + n * h;
        float* const products = r.products + part.begin * rows_ + (n - part.begin) * h;
        float* const bent = products;  // of an LSTM, which has no products here: tanh of its cells
        if (cell_ == Cell::lstm) along_curve({kernels::general::Function::tanh}, gates + 4 * h, h, bent);
        for (std::int64_t i = 0; i < h; ++i) {
            const float d = g[i] + carry[i];
            carry[i] = 0;
            if (cell_ == Cell::lstm) {
                const float old = before < 0 ? 0.0F : b.workspace[kept(n, before, direction) + 4 * h + i];
                const float c = cells[i] + d * gates[h + i] * of_tanh(bent[i]);
                sums[i] = c * gates[3 * h + i] * of_logistic(gates[i]);
                sums[h + i] = d * bent[i] * of_logistic(gates[h + i]);
                sums[2 * h + i] = c * old * of_logistic(gates[2 * h + i]);
                sums[3 * h + i] = c * gates[i] * of_tanh(gates[3 * h + i]);
                cells[i] = c * gates[2 * h + i];
            } else if (cell_ == Cell::gru) {
                sums[i] = d * (state(b, n, before, direction, i) - gates[2 * h + i]) * of_logistic(gates[i]);
                sums[2 * h + i] = d * (1 - gates[i]) * of_tanh(gates[2 * h + i]);
                carry[i] = d * gates[i];
                if (op_.reset_after) sums[h + i] = sums[2 * h + i] * products[i] * of_logistic(gates[h + i]);
            } else {
                sums[i] = op_.relu ? (gates[i] > 0 ? d : 0.0F) : d * of_tanh(gates[i]);
            }
        }
        std::copy_n(sums, rows_, inner);
        for (std::int64_t i = 0; cell_ == Cell::gru && op_.reset_after && i < h; ++i) inner[2 * h + i] *= gates[h + i];
    }

    void through_reset(const Buffers& b, const Room& r, std::int64_t direction, std::int64_t n, std::int64_t t,
                       std::int64_t before, const float* left, float* carry) const {
        const std::int64_t h = op_.hidden;
        const float* const gates = b.workspace.data() + kept(n, t, direction);
        for (std::int64_t i = 0; i < h; ++i) {
            const float old = state(b, n, before, direction, i), slope = left[i] * old * of_logistic(gates[h + i]);
            r.sums[(n * op_.steps + t) * rows_ + h + i] = slope;
            r.inner[(n * op_.steps + t) * rows_ + h + i] = slope;
            carry[i] += left[i] * gates[h + i];
        }
    }

    // Sums over all steps and samples, some columns at a time: what lies side by side is read side by side.
    void sum_columns(const float* from, std::int64_t all, Stretch part, float* to) const {
        constexpr std::int64_t most = 64;
        for (std::int64_t first = part.begin; first < part.end; first += most) {
            const std::int64_t count = std::min(most, part.end - first);
            double sums[most] = {};
            for (std::int64_t i = 0; i < all; ++i)
                for (std::int64_t column = 0; column < count; ++column)
                    sums[column] += from[i * rows_ + first + column];
            for (std::int64_t column = 0; column < count; ++column)
                to[first + column] = static_cast<float>(sums[column]);
        }
    }

    // Products over all steps and samples; each row of the recurrence met the state before its step.
    void of_weights(const Buffers& b, const Room& r, std::int64_t direction) const {
        const std::int64_t h = op_.hidden, all = batch_ * op_.steps;
        float* const first = b.diff_weights.data();
        const Weights w = weights(first, direction);
        float* const input = first + (w.input - first);
        float* const recurrence = first + (w.state - first);
        float* const bias = w.bias == nullptr ? nullptr : first + (w.bias - first);
        for (std::int64_t n = 0; n < batch_; ++n) {
            for (std::int64_t step = 0; step < op_.steps; ++step) {
                const std::int64_t t = time(step, direction), before = step == 0 ? -1 : time(step - 1, direction);
                for (std::int64_t i = 0; i < h; ++i)
                    r.lefts[(n * op_.steps + t) * h + i] = state(b, n, before, direction, i);
            }
        }
        const bool apart = resets_first();
        const std::int64_t plain = through();
        share(rows_, 1, workers_, [&](std::int64_t worker, Stretch part) {
            const std::int64_t own = part.end - part.begin, until = std::min(part.end, plain);
            float* const work = r.gemm + worker * gemm_;
            gemm({own, op_.inputs, all}, {r.sums + part.begin, 1, rows_}, {b.src[0].data(), op_.inputs, 1},
                 input + part.begin * op_.inputs, op_.inputs, false, work);
            if (part.begin < until)
                gemm({until - part.begin, h, all}, {r.inner + part.begin, 1, rows_}, {r.lefts, h, 1},
                     recurrence + part.begin * h, h, false, work);
            if (bias != nullptr) {
                sum_columns(r.sums, all, part, bias);
                sum_columns(r.inner, all, part, bias + rows_);
            }
        });
        if (!apart) return;
        for (std::int64_t n = 0; n < batch_; ++n)  // the reset gate came before the product
            for (std::int64_t t = 0; t < op_.steps; ++t)
                for (std::int64_t i = 0; i < h; ++i)
                    r.lefts[(n * op_.steps + t) * h + i] *= b.workspace[kept(n, t, direction) + h + i];
        gemm({h, h, all}, {r.inner + 2 * h, 1, rows_}, {r.lefts, h, 1}, recurrence + 2 * h * h, h, false, r.gemm);
    }

    Recurrent op_;
    Pass pass_;
    Cell cell_;
    std::int64_t batch_, rows_, kept_, gemm_ = 0, sums_ = 0, states_ = 0, packed_ = 0, hidden_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrent(const Problem& problem) { return std::make_unique<Steps>(problem); }

}  // namespace rehearse::kernels::cpu
