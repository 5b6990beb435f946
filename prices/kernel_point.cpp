// SPDX-License-Identifier: Apache-2.0
#include "prices/kernel_point.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "prices/host_point.hpp"
#include "prices/library_point.hpp"

namespace rehearse {

namespace {

double number(std::int64_t value) { return static_cast<double>(value); }
double round_up(std::int64_t value, std::int64_t multiple) {
    return number((value + multiple - 1) / multiple * multiple);
}

/// How a product fills tiles of a x b, and tiles the processors.
struct Tiling {
    double tiles = 1, waves = 1;  // waves: tiles a processor, not rounded
    double waste = 0;             // log of tiled over wanted area
    double last_wave = 0;         // log of whole waves over waves
};

Tiling tiling(const ProductSizes& sizes, double a, double b, const DeviceSheet& sheet) {
    Tiling result;
    result.tiles = std::ceil(sizes.m / a) * std::ceil(sizes.n / b);
    result.waves = result.tiles / number(sheet.processors);
    result.waste = std::log(result.tiles * a * b / (sizes.m * sizes.n));
    result.last_wave = std::log(std::ceil(result.waves) / result.waves);
    return result;
}

// Of a convolution the bytes that must move: of a window that skips pixels only what it touches, except where the
// gradient of every pixel is written. Channels padded as the device wants them.
Bounds bounds(const Conv& op, Pass pass, std::int64_t batch, const DeviceSheet& sheet) {
    const Shape out = output_shape(Op{op});
    const Window& w = op.window;
    const double channels = round_up(op.channels, sheet.channel_multiple);
    const double filters = round_up(op.filters, sheet.channel_multiple);
    const double outputs = number(out[1] * out[2]);
    const double taps = number(w.kernel_h * w.kernel_w);
    double height = number(op.height), width = number(op.width);
    if (pass != Pass::backward_data) {
        if (w.kernel_h < w.stride_h) height = std::min(height, number(out[1] * w.kernel_h));
        if (w.kernel_w < w.stride_w) width = std::min(width, number(out[2] * w.kernel_w));
    }
    const double elements = number(batch) * (channels * height * width + filters * outputs) + channels * filters * taps;
    return {Flops{2 * number(batch) * filters * outputs * channels * taps} / sheet.peak,
            sheet.element * elements / sheet.bandwidth};
}

// The device as the algorithms of its library see it.
prices::Board board_of(const DeviceSheet& sheet) {
    return {.peak = sheet.peak,
            .bandwidth = sheet.bandwidth,
            .processors = number(sheet.processors),
            .element = sheet.element,
            .small_image_blocks = sheet.image_blocks == ImageBlocks::several};
}

// Adds the bound of the device's library, and as features how far each of its algorithms is behind the best, and how
// far the best is from arithmetic and memory in turn.
void add_library(const Problem& problem, const DeviceSheet& sheet, KernelPoint& point) {
    const prices::LibraryChoice choice =
        prices::library_choice(prices::convolution_shape(problem).value(), board_of(sheet));
    point.bounds.library = choice.best().time;
    std::vector<double>& features = point.point.features;
    for (const std::size_t family : prices::measured_families) features.push_back(choice.behind(family));
    features.push_back(2 * std::log(point.bounds.library / point.bounds.in_turn()));
}

// DeepBench's products add to their result (beta = 1): it is read and written.
Bounds bounds(const ProductSizes& p, const DeviceSheet& sheet) {
    return {Flops{2 * p.m * p.n * p.k} / sheet.peak,
            sheet.element * (p.m * p.k + p.k * p.n + 2 * p.m * p.n) / sheet.bandwidth, sheet.start};
}

std::vector<double> features(const Conv& op, const ProductSizes& p, const Bounds& bounds, const DeviceSheet& sheet) {
    const Shape out = output_shape(Op{op});
    const Window& w = op.window;
    const bool winograd = w.kernel_h == 3 && w.kernel_w == 3 && w.stride_h == 1 && w.stride_w == 1;
    const bool pointwise = w.kernel_h == 1 && w.kernel_w == 1;
    const Tiling square = tiling(p, 128, 128, sheet), narrow = tiling(p, 128, 64, sheet);
    return {std::log2(p.m),
            std::log2(p.n),
            std::log2(p.k),
            std::log2(number(w.kernel_h * w.kernel_w)),
            std::log2(number(w.stride_h * w.stride_w)),
            winograd ? 2.0 : 0.0,
            pointwise ? 2.0 : 0.0,
            std::log(bounds.memory / bounds.compute),
            w.pad_top > 0 ? 2.0 : 0.0,
            std::log2(number(out[1] * out[2])),
            2 * square.waste,
            narrow.last_wave,
            std::log2(std::max(square.waves, 1.0 / 64))};
}

std::vector<double> features(const ProductSizes& p, const Bounds& bounds, const DeviceSheet& sheet) {
    const Tiling square = tiling(p, 128, 128, sheet);
    return {std::log2(p.m),
            std::log2(p.n),
            std::log2(p.k),
            std::log(bounds.memory / bounds.compute),
            2 * square.waste,
            2 * square.last_wave,
            std::log2(std::max(square.waves, 1.0 / 64))};
}

// The largest power of two in the distance of two rows, up to 2,048 values: which channels of the memory and which
// banks of a cache the rows of a tile fall on. Where the sheet says so, only whether they lie a multiple of 4 KB apart.
double alignment(std::int64_t distance, const DeviceSheet& sheet) {
    constexpr std::int64_t page = 4096;
    if (sheet.paged) return distance * static_cast<std::int64_t>(sheet.element.value) % page == 0 ? 4.0 : 0.0;
    return number(std::min(std::countr_zero(static_cast<std::uint64_t>(distance)), 11));
}

// Libraries have kernels for products of few columns, of a width each, which share nothing but the product: whether n
// is above 16, 32 and 64 (docs/device_prices.md).
std::array<double, 3> widths(double n, const DeviceSheet& sheet) {
    if (sheet.start == Seconds{0}) return {};
    return {n > 16 ? 2.0 : 0.0, n > 32 ? 2.0 : 0.0, n > 64 ? 2.0 : 0.0};
}

// The features of a product, after the fourth what its rows' distances do: loads of 16 bytes, on which tensor cores of
// older libraries depend, need rows that begin at multiples of them; then how wide its kernel is.
std::vector<double> features_of_rows(const ProductSizes& p, const Bounds& bounds, const DeviceSheet& sheet) {
    std::vector<double> values = features(p, bounds, sheet);
    const std::array<double, 3> distances = row_distances(p);
    const double wide = std::floor(16 / sheet.element.value);
    const bool aligned =
        std::ranges::all_of(distances, [&](double distance) { return std::fmod(distance, wide) == 0; });
    const auto left = static_cast<std::int64_t>(distances[0]), right = static_cast<std::int64_t>(distances[1]);
    const auto [over_16, over_32, over_64] = widths(p.n, sheet);
    values.insert(values.begin() + 4,
                  {aligned ? 0.0 : 2.0, alignment(left, sheet), alignment(right, sheet), over_16, over_32, over_64});
    return values;
}

// Of the product with the state of one step, or of all steps' gates for the gradient of the weights.
KernelPoint point_of_steps(const Recurrent& op, const Problem& problem, const DeviceSheet& sheet) {
    const bool together = problem.pass == Pass::backward_weights;
    const MatMul product{.m = together ? op.steps : 1, .n = gates_of(op) * op.hidden, .k = op.hidden, .bias = false};
    const ProductSizes sizes = product_sizes(product, problem.pass, problem.batch);
    Bounds at_best = bounds(sizes, sheet);
    std::vector<double> values = features(sizes, at_best, sheet);
    values.push_back(std::log2(number(op.steps)));
    values.push_back(op.cell == "gru" ? 2.0 : 0.0);
    const double times = number(op.directions * (together ? 1 : op.steps));
    at_best = {at_best.compute * times, at_best.memory * times, at_best.start * times};
    return {{std::move(values), static_cast<int>(problem.pass)}, at_best};
}

// With as much padding on one side as on the other, where there are as many windows then: as much work.
Conv evened(const Conv& op) {
    Conv even = op;
    Window& w = even.window;
    w.pad_top = w.pad_bottom = std::max(w.pad_top, w.pad_bottom);
    w.pad_left = w.pad_right = std::max(w.pad_left, w.pad_right);
    return output_shape(Op{even}) == output_shape(Op{op}) ? even : op;
}

// What is written is computed in tiles as wide as 32, 64 or 128 filters (backward_data: channels): of more than 64,
// those that fill no tile are computed and thrown away. DeepBench has filters of whole tiles alone.
Conv in_whole_tiles(Conv op, Pass pass) {
    constexpr std::int64_t tile = 64;
    std::int64_t& written = pass == Pass::backward_data ? op.channels : op.filters;
    if (written > tile) written = (written + tile - 1) / tile * tile;
    return op;
}

bool dilated(const Window& w) { return w.dilation_h != 1 || w.dilation_w != 1; }

bool was_measured(const Conv& op) {
    const Window& w = op.window;
    return op.groups == 1 && w.pad_top == w.pad_bottom && w.pad_left == w.pad_right &&
           (!dilated(w) || (w.stride_h == 1 && w.stride_w == 1));
}

// A filter of one row or column, or with gaps, of which DeepBench has none, goes neither by Winograd's nor by Fourier's
// transform. What is left is the product that it is: of one pixel, and of as many more channels (backward: filters) as
// it has taps.
Conv as_product(const Conv& op, Pass pass) {
    const Window& w = op.window;
    if (w.stride_h != 1 || w.stride_w != 1) return op;
    const Shape out = output_shape(Op{op});
    const std::int64_t taps = w.taps();
    if (pass == Pass::backward_data) return {op.channels, op.height, op.width, op.filters * taps, Window{}};
    return {op.channels * taps, out[1], out[2], op.filters, Window{}};
}

}  // namespace

bool may_transform(const Problem& problem) {
    const Conv* conv = as_conv2d(problem.op);
    if (conv == nullptr) return false;
    const Window& w = conv->window;
    return w.kernel_h > 1 && w.kernel_w > 1 && w.stride_h == 1 && w.stride_w == 1 && !dilated(w) && conv->groups == 1;
}

Problem without_transform(const Problem& problem) {
    if (!may_transform(problem) || problem.pass == Pass::update) return problem;
    return {as_product(*as_conv2d(problem.op), problem.pass), problem.pass, problem.batch, problem.type};
}

ProductSizes product_sizes(const Conv& op, Pass pass, std::int64_t batch) {
    const Shape out = output_shape(Op{op});
    const double taps = number(op.window.kernel_h * op.window.kernel_w);
    const double outputs = number(batch * out[1] * out[2]);
    if (pass == Pass::forward) return {number(op.filters), outputs, number(op.channels) * taps};
    if (pass == Pass::backward_data) {
        return {number(op.channels), number(batch * op.height * op.width), number(op.filters) * taps};
    }
    return {number(op.filters), number(op.channels) * taps, outputs};
}

ProductSizes product_sizes(const MatMul& op, Pass pass, std::int64_t batch) {
    const double rows = number(batch * op.m);
    if (pass == Pass::forward) return {number(op.n), rows, number(op.k), pass};
    if (pass == Pass::backward_data) return {number(op.k), rows, number(op.n), pass};
    return {number(op.n), number(op.k), rows, pass};
}

// The table in kernel_point.hpp says which operand is transposed.
std::array<double, 3> row_distances(const ProductSizes& sizes) {
    return {sizes.pass == Pass::backward_data ? sizes.k : sizes.m,
            sizes.pass == Pass::backward_weights ? sizes.n : sizes.k, sizes.m};
}

std::optional<KernelPoint> kernel_point(const Problem& problem, const DeviceSheet& sheet) {
    if (sheet.host) return host_point(problem, sheet);
    if (problem.pass == Pass::update) return std::nullopt;
    if (sheet.board) {
        auto library = library_point(problem, *sheet.board);
        if (!library) return std::nullopt;
        return KernelPoint{std::move(library->point), {library->bound, Seconds{0}}};
    }
    const int task = static_cast<int>(problem.pass);
    if (const Conv* asked = as_conv2d(problem.op)) {
        const Conv even = evened(*asked);
        if (!was_measured(even)) return std::nullopt;
        const Conv conv = may_transform(problem) ? even : as_product(even, problem.pass);
        const Conv tiled = in_whole_tiles(conv, problem.pass);
        const Bounds at_best{bounds(tiled, problem.pass, problem.batch, sheet).compute,
                             bounds(conv, problem.pass, problem.batch, sheet).memory};
        const ProductSizes sizes = product_sizes(tiled, problem.pass, problem.batch);
        KernelPoint point{{features(tiled, sizes, at_best, sheet), task}, at_best};
        if (sheet.image_blocks != ImageBlocks::unknown)
            add_library({even, problem.pass, problem.batch, problem.type}, sheet, point);
        return point;
    }
    if (const auto* product = std::get_if<MatMul>(&problem.op)) {
        const ProductSizes sizes = product_sizes(*product, problem.pass, problem.batch);
        const Bounds at_best = bounds(sizes, sheet);
        return KernelPoint{{features_of_rows(sizes, at_best, sheet), task}, at_best};
    }
    if (const auto* cells = std::get_if<Recurrent>(&problem.op)) return point_of_steps(*cells, problem, sheet);
    return std::nullopt;
}

std::vector<std::string_view> feature_names(std::string_view kind) {
    if (kind == "recurrent") return {"m", "n", "k", "memory", "tiles", "wave", "fill", "steps", "gru"};
    if (kind == "conv2d")
        return {"m", "n", "k", "taps", "stride", "winograd", "1x1", "memory", "pad", "pixels", "tiles", "wave", "fill"};
    return {"m",    "n",    "k",    "memory", "unaligned", "left rows", "right rows",
            "n>16", "n>32", "n>64", "tiles",  "wave",      "fill"};
}

}  // namespace rehearse
