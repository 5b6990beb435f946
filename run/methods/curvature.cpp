// SPDX-License-Identifier: Apache-2.0
#include "run/methods/curvature.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/methods/curvature.hpp"
#include "run/methods/factors.hpp"

namespace rehearse::run {

namespace {

using Side = Precondition::Side;

std::int64_t triangle(std::int64_t rows) { return rows * (rows + 1) / 2; }

}  // namespace

// Both factors of a layer lie one after the other, as they are summed.
std::span<float> CurvatureMethod::factor(int bucket, Side side) {
    const MatMul dense = dense_of(rank_.part(), bucket);
    std::vector<float>& both = factors_[bucket];
    both.resize(at(factor_elements(dense)));
    const std::size_t inputs = at(triangle(input_rows(dense)));
    return side == Side::inputs ? std::span{both}.first(inputs) : std::span{both}.subspan(inputs);
}

bool CurvatureMethod::prepare(ReadyStep& ready) {
    if (const auto* step = std::get_if<Precondition>(&ready.step->action)) {
        step->work == Precondition::Work::factor ? prepare_factor(ready, *step) : prepare_owned(ready, *step);
        return true;
    }
    const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
    if (communicate == nullptr) return false;
    if (communicate->content == Content::factors) {
        ready.data = std::span<float>{factors_.at(communicate->bucket())};
    } else if (communicate->content == Content::directions) {
        ready.data = rank_.tensors.bucket(communicate->bucket()).applied;
    } else {
        return false;
    }
    return true;
}

// Who owns more layers than the rank with most to do (small ones) does the rest of them with the last that both have.
void CurvatureMethod::prepare_owned(ReadyStep& ready, const Precondition& step) {
    const std::int64_t sharing = shards_with_factors(rank_.schedule);
    const std::vector<std::int64_t> owners = owners_of(rank_.part(), sharing);
    const std::vector<int> owned = owned_by(rank_.part(), owners, shard_of(rank_.schedule.mesh, rank_.rank) % sharing);
    const bool last = step.place + 1 == static_cast<int>(most_owned(rank_.part(), owners).size());
    const auto end = last ? owned.size() : std::min(owned.size(), at(step.place + 1));
    std::vector<std::function<void()>> all;
    for (std::size_t i = at(step.place); i < end; ++i) {
        const bool inverts = step.work == Precondition::Work::invert;
        all.push_back(inverts ? inversion(owned[i], step.side) : direction(owned[i], step.side));
    }
    ready.before = [all] {
        for (const auto& each : all) each();
    };
}

std::vector<float>& CurvatureMethod::inverse(int bucket, Side side) {
    const MatMul dense = dense_of(rank_.part(), bucket);
    const std::int64_t rows = side == Side::inputs ? input_rows(dense) : dense.n;
    std::vector<float>& made = inverses_[{bucket, side}];
    made.resize(at(rows * rows));
    return made;
}

std::function<void()> CurvatureMethod::inversion(int bucket, Side side) {
    return [packed = factor(bucket, side), damping = rank_.schedule.methods.get<Curvature>().damping,
            &made = inverse(bucket, side)] { invert_factor(packed, damping, made); };
}

std::function<void()> CurvatureMethod::direction(int bucket, Side side) {
    std::vector<float>& between = between_[bucket];
    const kernels::View gradient = rank_.tensors.bucket(bucket).applied;
    between.resize(gradient.size());
    const MatMul dense = dense_of(rank_.part(), bucket);
    const bool filters = is_convolution(op_of(rank_.part(), bucket));
    std::vector<float>& matrix = matrices_[bucket];
    if (filters) matrix.resize(gradient.size());
    const kernels::View turned = filters ? kernels::View{std::span<float>{matrix}} : gradient;
    kernels::Buffers buffers;
    if (side == Side::inputs) {
        buffers.src.emplace_back(inverse(bucket, side));
        buffers.weights = turned;
        buffers.dst = between;
    } else {
        buffers.src.emplace_back(between);
        buffers.weights = inverse(bucket, side);
        buffers.dst = turned;
    }
    kernels::Kernel& kernel = rank_.kernels.of_problem(direction_problem(dense, side));
    const bool before = filters && side == Side::inputs, after = filters && side == Side::errors;
    return [&kernel, buffers, gradient, turned, dense, before, after] {
        if (before) filters_to_matrix(gradient, dense.n, dense.k, turned);
        kernel.run(buffers);
        if (after) matrix_to_filters(turned, dense.n, dense.k, gradient);
    };
}

// The rows whose products a factor is the sum of: of a convolution they are laid out first.
kernels::ConstView CurvatureMethod::rows_of(ReadyStep& ready, const Precondition& step) {
    const int index = rank_.part().buckets[at(step.bucket)].layers.front();
    const Layer& layer = rank_.part().network.layers[at(index)];
    const bool inputs = step.side == Side::inputs;
    const kernels::ConstView from = inputs ? rank_.tensors.layer(layer.inputs.front(), step.micro_batch).output
                                           : kernels::ConstView{rank_.tensors.layer(index, step.micro_batch).diff};
    const Conv* conv = as_conv2d(layer.op);
    if (conv == nullptr) return from;
    const MatMul dense = dense_of(rank_.part(), step.bucket);
    std::vector<float>& rows = rows_[{step.bucket, step.side}];
    rows.resize(at(rank_.micro_batch() * dense.m * (inputs ? dense.k : dense.n)));
    ready.before = [conv, from, dense, inputs, &rows] {
        if (inputs) unfold(*conv, from, rows);
        if (!inputs) pixels_to_rows(from, dense.n, dense.m, rows);
    };
    return std::span<float>{rows};
}

// A row's own loss has as many times its part in the mean as there are losses; the mean of g g^T is over all rows.
void CurvatureMethod::prepare_factor(ReadyStep& ready, const Precondition& step) {
    const MatMul dense = dense_of(rank_.part(), step.bucket);
    const bool inputs = step.side == Side::inputs;
    const kernels::ConstView rows = rows_of(ready, step);
    const std::int64_t size = inputs ? dense.k : dense.n;
    std::vector<float>& sums = sums_[{step.bucket, step.side}];
    sums.resize(at(size * size));
    ready.kernel = &rank_.kernels.of_problem(factor_problem(dense, step.side, rank_.micro_batch()));
    ready.buffers.src.emplace_back(rows);
    ready.buffers.diff_dst = rows;
    ready.buffers.diff_weights = std::span<float>{sums};
    const std::int64_t own = micro_batch_size(rank_.schedule);
    const std::int64_t samples = own * shards_with_factors(rank_.schedule);
    const Origin& origin = rank_.part().origins[at(rank_.part().buckets[at(step.bucket)].layers.front())];
    const Op& whole = rank_.schedule.network.layers[at(origin.layer)].op;  // of which ranks may share the tokens
    const auto losses = static_cast<double>(samples * losses_of_sample(whole));
    // Where Adasum combines ranks' own means, their errors are parts of these.
    const bool own_means = std::ranges::any_of(rank_.schedule.classes, combines_gradients);
    const double averaged = own_means ? static_cast<double>(own * losses_of_sample(whole)) : losses;
    const std::optional<MatMul> all = as_dense(whole);
    require(all.has_value(), "a layer with factors is one in the whole network, too");
    const double of_errors = averaged * averaged / static_cast<double>(samples * all->m);
    const std::span<const float> values = rows;
    ready.after = [&sums, values, size, bias = inputs && dense.bias, share = inputs ? 1 / losses : of_errors,
                   packed = factor(step.bucket, step.side)] { pack_factor(sums, values, size, bias, share, packed); };
}

Reference train_by_curvature;      // run/reference/single_rank_curvature.cpp
extern const MethodRow curvature;  // a row of methods.cpp
constinit const MethodRow curvature{.name = "curvature",
                                    .used = [](const Schedule& s) { return s.methods.get<Curvature>().period > 0; },
                                    .make = make_method<CurvatureMethod>,
                                    .sums_gradients = false,
                                    .reference = train_by_curvature};

}  // namespace rehearse::run
