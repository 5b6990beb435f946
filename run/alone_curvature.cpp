// SPDX-License-Identifier: Apache-2.0
// What K-FAC means, written out for one rank: factors by plain sums over all rows, equations solved by elimination.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/curvature.hpp"
#include "core/index.hpp"
#include "run/alone.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

using Square = std::vector<std::vector<double>>;

Square zeros(std::int64_t size) { return Square(at(size), std::vector<double>(at(size))); }

/// sum += share * row row^T
void add_products(std::span<const double> row, double share, Square& sum) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        for (std::size_t j = 0; j < row.size(); ++j) sum[i][j] += share * row[i] * row[j];
    }
}

/// X with (square + damping I) X = right, by elimination with pivots; `right` has as many rows.
std::vector<std::vector<double>> solved(Square square, double damping, std::vector<std::vector<double>> right) {
    const std::size_t size = square.size();
    for (std::size_t i = 0; i < size; ++i) square[i][i] += damping;
    const auto subtract = [](std::vector<double>& from, double factor, const std::vector<double>& what) {
        for (std::size_t i = 0; i < from.size(); ++i) from[i] -= factor * what[i];
    };
    for (std::size_t k = 0; k < size; ++k) {
        std::size_t pivot = k;
        for (std::size_t i = k; i < size; ++i) {
            if (std::abs(square[i][k]) > std::abs(square[pivot][k])) pivot = i;
        }
        std::swap(square[k], square[pivot]);
        std::swap(right[k], right[pivot]);
        for (std::size_t i = 0; i < size; ++i) {
            if (i == k) continue;
            const double factor = square[i][k] / square[k][k];
            subtract(square[i], factor, square[k]);
            subtract(right[i], factor, right[k]);
        }
    }
    for (std::size_t i = 0; i < size; ++i) {
        for (double& value : right[i]) value /= square[i][i];
    }
    return right;
}

std::vector<std::vector<double>> transposed(const std::vector<std::vector<double>>& matrix) {
    std::vector<std::vector<double>> result(matrix.front().size(), std::vector<double>(matrix.size()));
    for (std::size_t i = 0; i < matrix.size(); ++i) {
        for (std::size_t j = 0; j < matrix[i].size(); ++j) result[j][i] = matrix[i][j];
    }
    return result;
}

/// Of one dense layer: sums over rows, and how many there were.
struct Factors {
    Square inputs, errors;
    double rows = 0;
};

void add_rows(Program& program, int index, const MatMul& dense, Factors& factors) {
    const int input = program.part().network.layers[at(index)].inputs.front();
    const std::vector<float> inputs = floats_of(program.tensors().layer(input).output);
    const std::vector<float> errors = floats_of(program.tensors().layer(index).diff);
    const std::int64_t rows = program.samples() * dense.m;
    for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<double> a(inputs.begin() + r * dense.k, inputs.begin() + (r + 1) * dense.k);
        if (dense.bias) a.push_back(1);
        // The mean of the losses of these rows has a part of each one's own.
        std::vector<double> g(errors.begin() + r * dense.n, errors.begin() + (r + 1) * dense.n);
        for (double& each : g) each *= static_cast<double>(rows);
        add_products(a, 1, factors.inputs);
        add_products(g, 1, factors.errors);
    }
    factors.rows += static_cast<double>(rows);
}

/// By how much of itself a sum of so many terms, each rounded to f32, may be off (check_part): at random, or 0.
class Rounding {
public:
    explicit Rounding(int perturbation)
        : random_(key(static_cast<std::uint64_t>(perturbation), 0xFAC)), on_(perturbation > 0) {}
    double factor(double terms) { return on_ ? 1 + std::sqrt(terms) * 0x1p-24 * (2 * random_.next() - 1) : 1; }

private:
    Uniform random_;
    bool on_;
};

/// The layer's gradient becomes (A + d I)^-1 D (G + d I)^-1.
void precondition(Factors factors, double damping, const MatMul& dense, Rounding& rounding, std::span<float> gradient) {
    for (Square* square : {&factors.inputs, &factors.errors}) {
        for (std::size_t i = 0; i < square->size(); ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                (*square)[j][i] = (*square)[i][j] /= factors.rows / rounding.factor(factors.rows);
            }
        }
    }
    const auto round = [&rounding](std::vector<std::vector<double>> factor) {
        for (std::vector<double>& row : factor) {
            for (double& value : row) value *= rounding.factor(static_cast<double>(factor.size()));
        }
        return factor;
    };
    std::vector<std::vector<double>> direction;
    for (std::size_t begin = 0; begin < gradient.size(); begin += at(dense.n)) {
        const auto row = gradient.subspan(begin, at(dense.n));
        direction.emplace_back(row.begin(), row.end());
    }
    direction = solved(std::move(factors.inputs), damping, round(std::move(direction)));
    direction = transposed(solved(std::move(factors.errors), damping, round(transposed(direction))));
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<float>(direction[i / at(dense.n)][i % at(dense.n)]);
    }
}

}  // namespace

Trained Alone::train_by_curvature(int perturbation) const {
    const std::unique_ptr<Program> model = this->model(perturbation);
    Program& program = *model;
    const std::vector<Layer>& layers = program.part().network.layers;
    Trained trained;
    Rounding rounding{perturbation};
    for (int step = 0; step < options_.steps; ++step) {
        std::map<int, Factors> factors;  // by layer
        for (int m = 0; m < schedule_.micro_batches; ++m) {
            const std::span<float> gradients = program.tensors().gradients();
            std::vector<double> sum(gradients.size());
            const std::int64_t size = micro_batch_size(schedule_), ranks = shards(schedule_.mesh);
            for (std::int64_t rank = 0; rank < ranks; ++rank) {
                const std::int64_t first = rank * schedule_.batch_per_rank + m * size;
                options_.load(step, first, program);
                program.compute_gradients(options_.dropout_seed(step), first);
                for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[i] / static_cast<double>(ranks);
                for (std::size_t i = 0; i < layers.size() && m == 0; ++i) {
                    if (!is_preconditioned(layers[i].op)) continue;
                    const auto& dense = std::get<MatMul>(layers[i].op);
                    const auto [known, fresh] = factors.try_emplace(static_cast<int>(i));
                    if (fresh) known->second = {zeros(input_rows(dense)), zeros(dense.n), 0};
                    add_rows(program, static_cast<int>(i), dense, known->second);
                }
            }
            std::ranges::transform(sum, gradients.begin(), [](double value) { return static_cast<float>(value); });
            for (const auto& [i, of] : factors) {
                precondition(of, schedule_.curvature.damping, std::get<MatMul>(layers[at(i)].op), rounding,
                             program.tensors().layer(i).gradients);
            }
            if (last(step) && m + 1 == schedule_.micro_batches) trained.gradients = result(program).gradients;
            update(program);
        }
    }
    trained.weights = result(program).weights;
    return trained;
}

}  // namespace rehearse::run
