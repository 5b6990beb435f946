// SPDX-License-Identifier: Apache-2.0
#include "prices/by_likeness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prices/chip_kernels.hpp"
#include "prices/price_model.hpp"
#include "prices/product_bound.hpp"
#include "prices/roofline.hpp"

namespace rehearse {

namespace {

// Assumed: a gradient's operands lie the other way round; its pass over rows is another.
constexpr double transposed_error = 0.15, norm_gradient_error = 0.2;
// Products of attention are short in one size: at k = 64 those of V100, P100, T4, P4 and H100 take 1.2 to 1.4 times a
// multiplication of those at k = 4,096 (f32, 4,096 x 4,096 values: NeuSight).
constexpr double short_products = 1.3, attention_error = 0.35;
// As counted for frameworks that fuse nothing (prices/tile_model.cpp, models/software.toml).
constexpr double score_passes = 6.5, loss_passes = 10, loss_error = 0.4;

// Whose kernels of the kind and type were measured; null where none were.
const prices::Board* board_of(const DeviceClass& device, std::string_view kind, DataType type) {
    if (device.model == nullptr) return nullptr;
    const auto& all = device.model->kernels();
    const auto found = std::ranges::find_if(
        all, [&](const MeasuredKernels& each) { return each.kind == kind && each.type == type && each.sheet.board; });
    return found == all.end() ? nullptr : &*found->sheet.board;
}

bool has_own_share(const DeviceClass& device, const Op& op) {
    return std::ranges::any_of(device.efficiencies, [&](const Efficiency& row) { return row.kind == kind_of(op); });
}

// One pass over so many values a sample: half of what ReLU takes, which reads and writes them.
Seconds one_pass(std::int64_t values, const Problem& problem, const DeviceClass& device) {
    const DataType type = problem.type == DataType::fp8 ? DataType::bf16 : problem.type;
    const Op both = Activation{Nonlinearity::relu, {values}};
    return 0.5 * (price({both, Pass::forward, problem.batch, type}, device).time - device.launch.value);
}

// How many times the seconds at its peak a device's large products take.
double beyond_peak(DataType type, const DeviceClass& device) {
    const Problem large{MatMul{4096, 4096, 4096, false}, Pass::forward, 1, type};
    const std::optional<Seconds> least = roofline_times(large, device).compute;
    return least ? std::max(1.0, price(large, device).time / *least) : 1;
}

std::optional<Price> of_attention(const Attention& op, const Problem& problem, const DeviceClass& device) {
    const RooflineTimes least = roofline_times(problem, device);
    if (!least.compute || !least.memory) return std::nullopt;
    const double passes = device.host && !op.kept ? 0 : score_passes * (problem.pass == Pass::forward ? 1 : 1.5);
    const Seconds scores = passes * one_pass(op.heads * op.queries * op.keys, problem, device);
    const Seconds products = *least.compute * (short_products * beyond_peak(problem.type, device));
    return Price{std::max(products + scores, *least.memory) + device.launch.value, attention_error,
                 fmt::format("attention of {} by its products and {} passes over its scores", device.name, passes)};
}

std::optional<Price> of_loss(std::int64_t scores, const Problem& problem, const DeviceClass& device) {
    if (device.host) return std::nullopt;
    const bool casts = size_of(problem.type) != size_of(DataType::f32);
    const double passes = casts ? loss_passes : loss_passes_without_casts(problem.pass);
    return Price{passes * one_pass(scores, problem, device) + device.launch.value, loss_error,
                 fmt::format("loss of {} by {} passes over its scores", device.name, passes)};
}

// Lanes multiply two f16 at once and sum in f16, which frameworks do not ask for: what runs reads 16 bits and computes
// in f32. Of DeepBench's 111 products on a P100 eight in ten take 0.89 to 1.03 times as long as in f32.
std::optional<Price> product_on_lanes(const Problem& problem, const DeviceClass& device) {
    constexpr double between_types = 0.1;
    if (device.host || problem.type != DataType::f16 || problem.pass == Pass::update) return std::nullopt;
    if (!device.peak.contains(DataType::f32) || has_matrix_units(device, problem.type)) return std::nullopt;
    Price answer = price({problem.op, problem.pass, problem.batch, DataType::f32}, device);
    answer.error = std::hypot(answer.error, between_types);
    answer.source = "16 bits computed in f32: " + answer.source;
    answer.basis = Basis::modelled;
    return answer;
}

// Its batch is 1.
std::optional<MatMul> gradient_as_product(const Problem& problem) {
    const auto* op = std::get_if<MatMul>(&problem.op);
    if (op == nullptr) return std::nullopt;
    const std::int64_t rows = problem.batch * op->m;
    if (problem.pass == Pass::backward_data) return MatMul{.m = rows, .n = op->k, .k = op->n, .bias = false};
    if (problem.pass == Pass::backward_weights) return MatMul{.m = op->k, .n = op->n, .k = rows, .bias = false};
    return std::nullopt;
}

// A product whose k a library cuts into parts is a batch of so many products, whose sum is taken.
Price as_batch(const MatMul& p, std::int64_t parts, DataType type, const DeviceClass& device) {
    const GroupedMatMul batch{.experts = parts, .rows = p.m, .n = p.n, .k = (p.k + parts - 1) / parts, .bias = false};
    Price answer = price({batch, Pass::forward, 1, type}, device);
    if (parts == 1) return answer;
    const double passes = static_cast<double>(parts) + 1;  // reads each part, writes the sum
    answer.time += passes * one_pass(p.m * p.n, {batch, Pass::forward, 1, type}, device) + prices::added_launch;
    answer.source += fmt::format(", k in {} parts", parts);
    return answer;
}

// The rows of a gradient's operands do not lie k values apart, as a dense layer's forward do, and neither do a batch's.
// Where forward is faster nonetheless, its kernels do no worse on rows that are whole.
Price without_strides(const MatMul& p, const Price& forward, DataType type, const DeviceClass& device) {
    Price best = forward;
    for (std::int64_t parts = 1; parts <= prices::most_parts; parts *= 2) {
        if (parts > 1 && p.k < parts * prices::least_depth) break;
        Price some = as_batch(p, parts, type, device);
        if (some.time < best.time) best = std::move(some);
    }
    return best;
}

prices::ProductShape shape_of(const MatMul& p, bool near) {
    const auto m = static_cast<double>(p.n), n = static_cast<double>(p.m), k = static_cast<double>(p.k);
    return {.count = 1, .m = m, .n = n, .k = k, .near = near};
}

// rocBLAS's forward products lose what their tiles share where rows lie far apart, a gradient of these sizes does not:
// it is as far beyond its bound as the forward product of a part of its depth is whose rows lie near.
Price with_near_rows(const MatMul& p, DataType type, const prices::Board& board, const DeviceClass& device) {
    constexpr double lost = 1.01;
    const auto bound = [&](const MatMul& of, bool near) {
        return prices::product_bound(shape_of(of, near), board).time;
    };
    MatMul part = p;
    while (bound(part, false) > lost * bound(part, true)) part.k = (part.k + 1) / 2;
    Price answer = price({part, Pass::forward, 1, type}, device);
    const double times = bound(p, true) / bound(part, true);
    answer.time = times * (answer.time - device.launch.value) + device.launch.value;
    return answer;
}

std::optional<Price> gradient_of_norm(const Problem& problem, const DeviceClass& device) {
    if (!std::holds_alternative<LayerNorm>(problem.op) || problem.pass != Pass::backward_data) return std::nullopt;
    if (board_of(device, "layernorm", problem.type) == nullptr) return std::nullopt;
    const Problem forward{problem.op, Pass::forward, problem.batch, problem.type};
    const std::optional<Seconds> least = roofline_times(forward, device).memory;
    const std::optional<Seconds> bytes = roofline_times(problem, device).memory;
    if (!least || !bytes) return std::nullopt;
    Price answer = price(forward, device);
    answer.time = *bytes * ((answer.time - device.launch.value) / *least) + device.launch.value;
    answer.error = std::hypot(answer.error, norm_gradient_error);
    answer.source = "as far beyond its bytes as the forward pass: " + answer.source;
    answer.basis = Basis::modelled;
    return answer;
}

}  // namespace

std::optional<Price> gradient_price(const Problem& problem, const DeviceClass& device) {
    const std::optional<MatMul> product = gradient_as_product(problem);
    if (!product) return gradient_of_norm(problem, device);
    const prices::Board* board = board_of(device, "matmul", problem.type);
    if (board == nullptr) return std::nullopt;
    const bool lose_sharing = board->library == prices::Library::rocm;
    Price answer = lose_sharing ? with_near_rows(*product, problem.type, *board, device)
                                : price({*product, Pass::forward, 1, problem.type}, device);
    if (board->reads != prices::Reads::contiguous && board_of(device, "groupedmatmul", problem.type) != nullptr)
        answer = without_strides(*product, answer, problem.type, device);
    answer.error = std::hypot(answer.error, transposed_error);
    answer.source = "as the product that it is: " + answer.source;
    answer.basis = Basis::modelled;
    return answer;
}

std::optional<Price> unfused_price(const Problem& problem, const DeviceClass& device) {
    if (device.tiles != nullptr || has_own_share(device, problem.op)) return std::nullopt;
    if (std::holds_alternative<MatMul>(problem.op)) return product_on_lanes(problem, device);
    if (const auto* op = std::get_if<Attention>(&problem.op)) return of_attention(*op, problem, device);
    if (const auto* op = std::get_if<SoftmaxLoss>(&problem.op))
        return of_loss(op->rows * elements(op->image) * op->classes, problem, device);
    if (const auto* op = std::get_if<SoftmaxTerms>(&problem.op))
        return of_loss(op->rows * op->classes, problem, device);
    return std::nullopt;
}

}  // namespace rehearse
