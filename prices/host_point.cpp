// SPDX-License-Identifier: Apache-2.0
#include "prices/host_point.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace rehearse {

namespace {

double number(std::int64_t value) { return static_cast<double>(value); }

// Vectors of 16 values: what of the last one is wasted, as a logarithm.
double lanes_wasted(double values) { return std::log(std::ceil(values / 16) * 16 / values); }

Bounds bounds(const Problem& problem, const DeviceSheet& sheet) {
    return {flops(problem.op, problem.pass, problem.batch) / sheet.peak,
            bytes_moved(problem.op, problem.pass, problem.type, problem.batch) / sheet.bandwidth};
}

double memory_over_compute(const Bounds& bounds) {
    const double share = bounds.memory.value / std::max(bounds.compute.value, 1e-3 * bounds.memory.value);
    return std::log(std::clamp(share, 1e-3, 1e3));
}

double log2_us(const Bounds& bounds) { return std::log2(std::max(bounds.in_turn().value * 1e6, 0.01)); }

// A transposed convolution runs by the kernels of the convolution that it mirrors.
struct AsConvolution {
    Conv op;
    Pass pass = Pass::forward;
};
AsConvolution as_convolution(const Problem& problem) {
    if (const auto* conv = std::get_if<Conv>(&problem.op)) return {*conv, problem.pass};
    const Pass pass = problem.pass == Pass::forward         ? Pass::backward_data
                      : problem.pass == Pass::backward_data ? Pass::forward
                                                            : problem.pass;
    return {mirrored(std::get<ConvTranspose>(problem.op)), pass};
}

FeaturePoint convolution(const Problem& problem, const Bounds& bounds) {
    const auto [op, pass] = as_convolution(problem);
    const Window& w = op.window;
    const Shape out = output_shape(Op{op});
    const double groups = number(op.groups);
    const double channels = number(op.channels) / groups, filters = number(op.filters) / groups;
    const double pixels = number(elements(out)) / number(out[0]);
    const bool dense = w.dilation_h == 1 && w.dilation_w == 1 && w.dilation_d == 1;
    const bool strided = w.stride_h * w.stride_w * w.stride_d > 1;
    const bool winograd = op.depth == 0 && w.kernel_h == 3 && w.kernel_w == 3 && !strided && dense && op.groups == 1;
    const bool depthwise = op.groups > 1 && op.groups == op.channels;
    return {
        {std::log2(channels), std::log2(filters), std::log2(groups), std::log2(pixels),
         std::log2(number(problem.batch)), std::log2(number(w.taps())), strided ? 1.0 : 0.0, winograd ? 1.0 : 0.0,
         w.taps() == 1 ? 1.0 : 0.0, depthwise ? 1.0 : 0.0, op.depth > 0 ? 1.0 : 0.0, dense ? 0.0 : 1.0,
         memory_over_compute(bounds), lanes_wasted(depthwise ? number(op.channels) : channels),
         lanes_wasted(depthwise ? number(op.channels) : filters), lanes_wasted(number(out.back())), log2_us(bounds)},
        static_cast<int>(pass)};
}

// m rows, n columns, sums of k; how many such products.
struct Product {
    double m = 1, n = 1, k = 1, count = 1;
};

double all_but_last_two(const Shape& shape) {
    double product = 1;
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) product *= number(shape[i]);
    return product;
}

Product of_stack(const BatchedMatMul& op, double batch) {
    const double stacks = std::max(all_but_last_two(op.a), all_but_last_two(op.b));
    return {number(op.a.size() > 1 ? op.a[op.a.size() - 2] : 1), number(op.b.back()), number(op.a.back()),
            stacks * batch};
}

Product product(const Problem& problem) {
    const double batch = number(problem.batch);
    if (const auto* dense = std::get_if<MatMul>(&problem.op))
        return {batch * number(dense->m), number(dense->n), number(dense->k), 1};
    if (const auto* experts = std::get_if<GroupedMatMul>(&problem.op))
        return {number(rows_of_expert(*experts, problem.batch)), number(experts->n), number(experts->k),
                number(experts->experts)};
    if (const auto* stack = std::get_if<BatchedMatMul>(&problem.op)) return of_stack(*stack, batch);
    const auto& attention = std::get<Attention>(problem.op);
    return {number(attention.queries), number(attention.keys), number(attention.head_size),
            batch * number(attention.heads)};
}

FeaturePoint products(const Problem& problem, const Bounds& bounds) {
    const Product p = product(problem);
    const auto* attention = std::get_if<Attention>(&problem.op);
    return {{std::log2(p.m), std::log2(p.n), std::log2(p.k), std::log2(p.count), attention != nullptr ? 1.0 : 0.0,
             attention != nullptr && attention->causal ? 1.0 : 0.0, memory_over_compute(bounds), lanes_wasted(p.m),
             lanes_wasted(p.n), lanes_wasted(p.k), log2_us(bounds)},
            static_cast<int>(problem.pass)};
}

// Operators whose values are treated alike: their kernels are of a sort.
enum class Sort { normalization, simple, function, pooling, joining, random, classes, table, update, other };
constexpr std::size_t sorts = 10;

Sort sort_of(const Op& op) {
    if (std::holds_alternative<BatchNorm>(op) || std::holds_alternative<LayerNorm>(op) ||
        std::holds_alternative<Normalization>(op) || std::holds_alternative<Lrn>(op))
        return Sort::normalization;
    if (const auto* activation = std::get_if<Activation>(&op))
        return activation->kind == Nonlinearity::relu ? Sort::simple : Sort::function;
    if (std::holds_alternative<Add>(op) || std::holds_alternative<Bias>(op)) return Sort::simple;
    if (std::holds_alternative<Pool>(op) || std::holds_alternative<Resize>(op)) return Sort::pooling;
    if (std::holds_alternative<Concat>(op) || std::holds_alternative<ChannelPad>(op) ||
        std::holds_alternative<Rearrangement>(op) || std::holds_alternative<Communication>(op))
        return Sort::joining;
    if (std::holds_alternative<Dropout>(op)) return Sort::random;
    if (is_loss(op) || std::holds_alternative<Softmax>(op) || std::holds_alternative<SoftmaxAlong>(op))
        return Sort::classes;
    if (std::holds_alternative<Embedding>(op) || std::holds_alternative<EmbeddingBag>(op) ||
        std::holds_alternative<Gather>(op))
        return Sort::table;
    return updated(op) ? Sort::update : Sort::other;
}

// Of kinds of one sort, which: a number that tells them apart.
double kind_within(const Op& op) {
    if (std::holds_alternative<LayerNorm>(op) || std::holds_alternative<Add>(op)) return 1;
    if (const auto* pool = std::get_if<Pool>(&op)) return pool->kind == PoolKind::average ? 1 : 0;
    if (const auto* norm = std::get_if<BatchNorm>(&op)) return norm->relu || norm->add ? -0.5 : 0;
    if (const auto* loss = std::get_if<SoftmaxLoss>(&op)) return loss->image.empty() ? 0 : 1;
    if (std::holds_alternative<Lrn>(op) || std::holds_alternative<Resize>(op) || std::holds_alternative<Softmax>(op) ||
        std::holds_alternative<Bias>(op) || std::holds_alternative<AdamUpdate>(op))
        return 2;
    return std::holds_alternative<Normalization>(op) || std::holds_alternative<LambUpdate>(op) ? 3 : 0;
}

double window_taps(const Op& op) {
    const auto* pool = std::get_if<Pool>(&op);
    return pool == nullptr ? 1 : number(pool->window.taps());
}

FeaturePoint row(const Problem& problem, const Bounds& bounds) {
    const Shape out = output_shape(problem.op);
    const double inner = out.size() > 1 ? number(elements(out)) / number(out[0]) : number(elements(out));
    FeaturePoint point{{log2_us(bounds), std::log2(std::max(inner, 1.0)), std::log2(window_taps(problem.op)),
                        memory_over_compute(bounds), kind_within(problem.op)},
                       static_cast<int>(problem.pass)};
    point.features.resize(point.features.size() + sorts, 0);
    point.features[point.features.size() - sorts + static_cast<std::size_t>(sort_of(problem.op))] = 1;
    return point;
}

}  // namespace

std::string_view host_group(const Op& op) {
    if (is_convolution(op)) return "convolutions";
    const bool product = std::holds_alternative<MatMul>(op) || std::holds_alternative<GroupedMatMul>(op) ||
                         std::holds_alternative<BatchedMatMul>(op) || std::holds_alternative<Attention>(op);
    return product ? "products" : "rows";
}

std::vector<std::string_view> host_groups() { return {"convolutions", "products", "rows"}; }

std::optional<KernelPoint> host_point(const Problem& problem, const DeviceSheet& sheet) {
    const Bounds at_best = bounds(problem, sheet);
    if (at_best.in_turn() <= Seconds{0}) return std::nullopt;
    const std::string_view group = host_group(problem.op);
    if (group == "convolutions") return KernelPoint{convolution(problem, at_best), at_best};
    if (group == "products") return KernelPoint{products(problem, at_best), at_best};
    return KernelPoint{row(problem, at_best), at_best};
}

std::vector<Expert> host_experts(std::string_view group) {
    using Terms = std::array<CovarianceTerm, 2>;
    if (group == "convolutions")
        return {{LowerBound::in_turn,
                 {Smoothness::matern32,
                  Terms{{{0.66, 0.32, {15, 15, 16, 13, 4.5, 27, 4.5, 15, 11, 0.56, 4.5, 4.5, 8.1, 5.9, 0.6, 3.8, 13}},
                         {0.085,
                          0.64,
                          {0.31, 5.7, 3.6, 7.9, 2.7, 4.9, 3, 3.5, 3.2, 2.7, 2.7, 2.7, 3.9, 2.7, 2.7, 3.3, 5.7}}}},
                  0.07}}};
    if (group == "products")
        return {{LowerBound::in_turn,
                 {Smoothness::matern32,
                  Terms{{{1.48, 0.96, {3.9, 12, 14, 5.2, 4.6, 4.6, 5.1, 4.4, 1.8, 4.5, 14}},
                         {0.25, 0.18, {2.3, 0.83, 7.7, 2.8, 2.7, 2.7, 2.8, 2.7, 2.7, 2.7, 7.4}}}},
                  0.05}}};
    return {{LowerBound::in_turn,
             {Smoothness::matern32,
              Terms{{{2.63, 0.96, {17, 23, 8.5, 36, 4.4, 1.7, 10, 8, 4.5, 9, 0.8, 6.4, 4.2, 4.6, 3.9}},
                     {0.24, 0.34, {12, 15, 3.5, 0.55, 2.5, 2.5, 2.5, 2.7, 2.7, 2.7, 2.5, 2.8, 2.7, 2.7, 2.9}}}},
              0.07}}};
}

}  // namespace rehearse
