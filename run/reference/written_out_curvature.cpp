// SPDX-License-Identifier: Apache-2.0
#include "run/reference/written_out_curvature.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/half.hpp"
#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/curvature.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

using Square = WrittenOutCurvature::Square;
using Factors = WrittenOutCurvature::Factors;
using Piece = WrittenOutCurvature::Piece;

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
    factors.of_inputs += static_cast<double>(rows);
    factors.of_errors += static_cast<double>(rows);
}

/// What the filters see of sample n at row y and column x of the output, channel by channel.
std::vector<double> seen(const Conv& conv, std::span<const float> images, std::int64_t n, std::int64_t y,
                         std::int64_t x) {
    const Window& w = conv.window;
    std::vector<double> patch;
    for (std::int64_t c = 0; c < conv.channels; ++c) {
        for (std::int64_t r = 0; r < w.kernel_h; ++r) {
            for (std::int64_t s = 0; s < w.kernel_w; ++s) {
                const std::int64_t row = y * w.stride_h + r * w.dilation_h - w.pad_top;
                const std::int64_t column = x * w.stride_w + s * w.dilation_w - w.pad_left;
                const bool beyond = row < 0 || column < 0 || row >= conv.height || column >= conv.width;
                patch.push_back(
                    beyond ? 0 : images[at(((n * conv.channels + c) * conv.height + row) * conv.width + column)]);
            }
        }
    }
    return patch;
}

/// Grosse and Martens 2016: A the mean over samples of the sum over pixels, G the mean over both.
void add_pixels(Program& program, int index, const Conv& conv, Factors& factors) {
    const int input = program.part().network.layers[at(index)].inputs.front();
    const std::vector<float> images = floats_of(program.tensors().layer(input).output);
    const std::vector<float> errors = floats_of(program.tensors().layer(index).diff);
    const Shape out = output_shape(Op{conv});
    const std::int64_t samples = program.samples();
    for (std::int64_t n = 0; n < samples; ++n) {
        for (std::int64_t y = 0; y < out[1]; ++y) {
            for (std::int64_t x = 0; x < out[2]; ++x) {
                std::vector<double> a = seen(conv, images, n, y, x), g;
                if (conv.bias) a.push_back(1);
                for (std::int64_t f = 0; f < conv.filters; ++f) {
                    const float error = errors[at(((n * conv.filters + f) * out[1] + y) * out[2] + x)];
                    g.push_back(error * static_cast<double>(samples));
                }
                add_products(a, 1, factors.inputs);
                add_products(g, 1, factors.errors);
            }
        }
    }
    factors.of_inputs += static_cast<double>(samples);
    factors.of_errors += static_cast<double>(samples * out[1] * out[2]);
}

/// Where row l and column j of a layer's matrix lie: filters lie {n, k}, their biases {n} behind them.
std::int64_t place_of(const Op& op, const MatMul& dense, std::int64_t l, std::int64_t j) {
    return is_convolution(op) && l < dense.k ? j * dense.k + l : l * dense.n + j;
}

/// The pieces that ranks have of each layer's matrix; nothing of what they have apart (a bias behind a sum).
std::map<int, std::set<Piece>> pieces_of(const Schedule& schedule) {
    std::map<int, std::set<Piece>> pieces;
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        const Part& part = schedule.classes[at(class_of(schedule, rank))].part;
        const std::vector<std::int64_t> along = places_on(schedule.mesh, rank);
        for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
            const Op& op = part.network.layers[i].op;
            const std::optional<MatMul> own = as_dense(op);
            if (!own) continue;
            const Op& whole_op = schedule.network.layers[at(part.origins[i].layer)].op;
            const MatMul whole = as_dense(whole_op).value();
            const std::vector<std::int64_t> places = indices_of_weights(schedule, part.origins[i], op, along);
            const bool filters = is_convolution(whole_op);
            Piece piece;
            for (std::int64_t l = 0; l < input_rows(*own); ++l) {
                const std::int64_t at_row = places[at(place_of(op, *own, l, 0))];
                piece.first.push_back(filters && at_row < whole.n * whole.k ? at_row % whole.k : at_row / whole.n);
            }
            for (std::int64_t j = 0; j < own->n; ++j) {
                const std::int64_t at_column = places[at(place_of(op, *own, 0, j))];
                piece.second.push_back(filters ? at_column / whole.k : at_column % whole.n);
            }
            pieces[part.origins[i].layer].insert(std::move(piece));
        }
    }
    return pieces;
}

Square between(const Square& whole, std::span<const std::int64_t> rows) {
    Square block;
    for (const std::int64_t i : rows) {
        block.emplace_back();
        for (const std::int64_t j : rows) block.back().push_back(whole[at(i)][at(j)]);
    }
    return block;
}

/// The gradient of a layer's piece becomes (A + d I)^-1 D (G + d I)^-1.
void multiply_with_inverses(const Factors& whole, const Piece& piece, double damping, const Op& op,
                            WrittenOutCurvature::Rounding& rounding, std::span<float> gradient) {
    const MatMul dense = as_dense(op).value();
    const auto& [rows, columns] = piece;
    Factors factors{between(whole.inputs, rows), between(whole.errors, columns), whole.of_inputs, whole.of_errors};
    // Every entry is a sum over rows.
    const auto divide = [&](Square& square, double by) {
        for (std::size_t i = 0; i < square.size(); ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                square[j][i] = square[i][j] /= by / rounding.factor(factors.of_errors);
            }
        }
    };
    divide(factors.inputs, factors.of_inputs);
    divide(factors.errors, factors.of_errors);
    const auto round = [&rounding](std::vector<std::vector<double>> factor) {
        for (std::vector<double>& row : factor) {
            for (double& value : row) value *= rounding.factor(static_cast<double>(factor.size()));
        }
        return factor;
    };
    std::vector<std::vector<double>> direction;
    for (const std::int64_t l : rows) {
        direction.emplace_back();
        for (const std::int64_t j : columns) direction.back().push_back(gradient[at(place_of(op, dense, l, j))]);
    }
    direction = solved(std::move(factors.inputs), damping, round(std::move(direction)));
    direction = transposed(solved(std::move(factors.errors), damping, round(transposed(direction))));
    for (std::size_t l = 0; l < rows.size(); ++l) {
        for (std::size_t j = 0; j < columns.size(); ++j)
            gradient[at(place_of(op, dense, rows[l], columns[j]))] = static_cast<float>(direction[l][j]);
    }
}

}  // namespace

WrittenOutCurvature::Rounding::Rounding(int perturbation)
    : random_(key(static_cast<std::uint64_t>(perturbation), 0xFAC)), on_(perturbation > 0) {}

double WrittenOutCurvature::Rounding::factor(double terms) {
    return on_ ? 1 + std::sqrt(terms) * 0x1p-24 * (2 * random_.next() - 1) : 1;
}

WrittenOutCurvature::WrittenOutCurvature(const Schedule& schedule, int perturbation)
    : damping_(schedule.methods.get<Curvature>().damping), rounding_(perturbation), pieces_(pieces_of(schedule)) {}

void WrittenOutCurvature::add(Program& program) {
    const std::vector<Layer>& layers = program.part().network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const std::optional<MatMul> dense = as_dense(layers[i].op);
        if (!dense) continue;
        const auto [known, fresh] = factors_.try_emplace(static_cast<int>(i));
        if (fresh) known->second = {zeros(input_rows(*dense)), zeros(dense->n)};
        if (const Conv* conv = as_conv2d(layers[i].op)) {
            add_pixels(program, static_cast<int>(i), *conv, known->second);
        } else {
            add_rows(program, static_cast<int>(i), *dense, known->second);
        }
    }
}

void WrittenOutCurvature::precondition(Program& program) {
    for (const auto& [i, of] : factors_) {
        for (const Piece& piece : pieces_[i])
            multiply_with_inverses(of, piece, damping_, program.part().network.layers[at(i)].op, rounding_,
                                   program.tensors().layer(i).gradients);
    }
}

RoundedOnTheWire::RoundedOnTheWire(const Schedule& schedule, int perturbation)
    : random_(key(static_cast<std::uint64_t>(perturbation), 0x16B)) {
    const std::optional<DataType> type = schedule.methods.get<Rounding>().type;
    if (perturbation == 0 || !type) return;
    relative_ = static_cast<double>(shards(schedule.mesh)) * unit_roundoff(*type);
    absolute_ = *type == DataType::f16 ? 0x1p-25 : 0;
}

void RoundedOnTheWire::round(std::span<float> gradients) {
    if (relative_ == 0) return;
    for (float& each : gradients) {
        each += static_cast<float>((relative_ * std::abs(each) + absolute_) * (2 * random_.next() - 1));
    }
}

}  // namespace rehearse::run
