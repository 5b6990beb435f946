// SPDX-License-Identifier: Apache-2.0
#include "predict/framework.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "models/models.hpp"
#include "predict/in_batches.hpp"
#include "prices/kernel_point.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {

namespace {

// Tensor cores take 16-bit images pixel by pixel. A framework that keeps them channel by channel has what a convolution
// reads turned first, and what it writes turned back (cuDNN does it): each is read and written once more.
//
// TensorFlow 1 that keeps them pixel by pixel turns them for cuDNN, which it hands images channel by channel, in any
// type (core/kernels/conv_ops.cc, conv_grad_*_ops.cc); products of 1x1 filters it gives to cuBLAS as they are. So it
// does for normalizations (core/kernels/fused_batch_norm_op.cc): the input and the result forward; backward the input
// and both gradients.
Seconds turned(const Problem& problem, const DeviceClass& device, const Framework& framework) {
    const auto copy = [&](const Shape& shape) {
        return price({Activation{Nonlinearity::relu, shape}, Pass::forward, problem.batch, problem.type}, device).time;
    };
    if (std::holds_alternative<BatchNorm>(problem.op) && has_pass(problem.op, problem.pass)) {
        const double images = problem.pass == Pass::forward ? 2 : problem.pass == Pass::backward_data ? 3 : 0;
        const bool turns = framework.channels_last_turned && images > 0;
        return turns ? images * copy(output_shape(problem.op)) : Seconds{0};
    }
    const Conv* conv = as_conv2d(problem.op);
    if (conv == nullptr || problem.pass == Pass::update) return Seconds{0};
    const Window& window = conv->window;
    const bool product = window.taps() == 1 && window.stride_h == 1 && window.stride_w == 1;
    const bool by_framework = framework.channels_last_turned && !product;
    const bool by_library = problem.type != DataType::f32 && (framework.channels_first || by_framework);
    const double times = (by_framework ? 1 : 0) + (by_library ? 1 : 0);
    if (times == 0) return Seconds{0};
    return times * (copy({conv->channels, conv->height, conv->width}) + copy(output_shape(problem.op)));
}

// What a transform keeps in memory: of the kernel that transforms images by itself (cuDNN's WINOGRAD, of 3x3 filters
// forward and of images' gradients) the 4x4 values of each filter; of others (WINOGRAD_NONFUSED, FFT) images and
// results too, no fewer values than these have.
Bytes kept_by_transform(const Problem& problem) {
    const Conv& conv = *as_conv2d(problem.op);
    const bool fused = conv.window.kernel_h == 3 && conv.window.kernel_w == 3 && problem.pass != Pass::backward_weights;
    if (fused) return static_cast<double>(16 * conv.channels * conv.filters) * size_of(problem.type);
    const Shape out = output_shape(problem.op);
    const std::int64_t pixels = conv.channels * conv.height * conv.width + out[0] * out[1] * out[2];
    return static_cast<double>(problem.batch * pixels) * size_of(problem.type);
}

// Whether a convolution that may take fewer multiplications does so here.
bool transforms(const Problem& problem, const Framework& framework) {
    if (!framework.transforms) return false;
    return !framework.workspace || kept_by_transform(problem) <= *framework.workspace;
}

// The price of the product that a convolution is, no less than its own; of that a bias, which is a kernel of its own.
Price as_product(Price known, const Problem& problem, const DeviceClass& device) {
    Problem plain = without_transform(problem);
    std::get<Conv>(plain.op).bias = false;
    Op op = problem.op;
    std::get<Conv>(op).bias = false;
    const Seconds bias = known.time - price({op, problem.pass, problem.batch, problem.type}, device).time;
    Price product = price(plain, device);
    product.time += bias;
    return product.time > known.time ? product : known;
}

// A convolution of another stride than 1, of which this is the gradient of its input; as transposed convolutions are,
// forward. Nothing of other problems.
std::optional<Conv> strided_gradient(const Problem& problem) {
    const auto* transposed = std::get_if<ConvTranspose>(&problem.op);
    const auto* conv = std::get_if<Conv>(&problem.op);
    if (problem.pass != (transposed != nullptr ? Pass::forward : Pass::backward_data)) return {};
    if (conv == nullptr && transposed == nullptr) return {};
    Conv strided = conv != nullptr ? *conv : mirrored(*transposed);
    const Window& w = strided.window;
    if (w.stride_d == 1 && w.stride_h == 1 && w.stride_w == 1) return {};
    strided.bias = strided.relu = false;
    return strided;
}

// That gradient with zeros between its numbers, and its convolution of stride 1, to as many pixels. It is as fast as
// forward: so are the 19 of stride 1 that DeepBench has of a Xeon Phi (3x3 and 5x5), 0.93 to 1.44 times.
Problem with_zeros(Conv conv, const Problem& problem) {
    std::swap(conv.channels, conv.filters);
    Window& w = conv.window;
    const auto pad = [](std::int64_t kernel, std::int64_t dilation, std::int64_t& before, std::int64_t& after) {
        const std::int64_t both = dilation * (kernel - 1);
        before = both / 2, after = both - before;
    };
    w.stride_d = w.stride_h = w.stride_w = 1;
    pad(w.kernel_d, w.dilation_d, w.pad_front, w.pad_back);
    pad(w.kernel_h, w.dilation_h, w.pad_top, w.pad_bottom);
    pad(w.kernel_w, w.dilation_w, w.pad_left, w.pad_right);
    return {conv, Pass::forward, problem.batch, problem.type};
}

// The price of a strided convolution's gradient whose zeros are multiplied, too; of a transposed one the bias remains.
Price multiplied(const Price& known, const Problem& problem, const DeviceClass& device) {
    const std::optional<Conv> strided = strided_gradient(problem);
    if (!strided) return known;
    Problem plain = problem;
    if (auto* transposed = std::get_if<ConvTranspose>(&plain.op)) transposed->bias = false;
    Price dense = price(with_zeros(*strided, problem), device);
    dense.time += known.time - price(plain, device).time;
    dense.source = fmt::format("of stride 1, with zeros: {}", dense.source);
    return dense;
}

}  // namespace

const Issue& HostIssue::of(const Op& op) const {
    const bool convolves = std::holds_alternative<Conv>(op) || std::holds_alternative<ConvTranspose>(op);
    const bool multiplies = std::holds_alternative<MatMul>(op) || std::holds_alternative<GroupedMatMul>(op) ||
                            std::holds_alternative<Attention>(op);
    const bool normalizes = std::holds_alternative<BatchNorm>(op) || std::holds_alternative<LayerNorm>(op);
    const Issue& own = convolves ? convolution : multiplies ? product : normalizes ? normalization : other;
    return own.time > Seconds{} ? own : other;
}

void await_sums(Schedule& schedule) {
    for (RankClass& rank_class : schedule.classes) {
        const auto updates = [](const Step& step) { return std::holds_alternative<Update>(step.action); };
        const auto first = std::ranges::find_if(rank_class.steps, updates);
        if (first == rank_class.steps.end()) continue;
        for (auto step = rank_class.steps.begin(); step != first; ++step) {
            const auto* sum = std::get_if<Communicate>(&step->action);
            const auto index = static_cast<int>(step - rank_class.steps.begin());
            if (sum != nullptr && sum->of_bucket() && std::ranges::find(first->after, index) == first->after.end())
                first->after.push_back(index);
        }
    }
}

Machine with_fused_attention(Machine machine) {
    for (DeviceClass& device : machine.classes) {
        if (device.tiles == nullptr) continue;
        TileModel tiles = *device.tiles;
        tiles.score_passes = {0, "attention=fused: its scores never cross memory"};
        tiles.masked_passes = {};
        device.tiles = std::make_shared<const TileModel>(std::move(tiles));
    }
    return machine;
}

Machine for_network(Machine machine, const Network& network) {
    const auto attends = [](const Layer& layer) { return std::holds_alternative<Attention>(computed(layer.op)); };
    if (!has_tiles(machine) || std::ranges::any_of(network.layers, attends)) return machine;
    machine.software = models::load_software(std::string{models::generic_software});
    for (DeviceClass& device : machine.classes) {
        if (device.tiles == nullptr) continue;
        device.tiles = std::make_shared<const TileModel>(with_software(*device.tiles, machine.software, device.launch));
    }
    return machine;
}

Machine with_passes(Machine machine, const Software& passes) {
    for (DeviceClass& device : machine.classes) {
        if (device.tiles == nullptr) continue;
        TileModel tiles = *device.tiles;
        tiles.elementwise_passes = passes.elementwise_passes;
        tiles.score_passes = passes.score_passes;
        tiles.masked_passes = passes.masked_passes;
        tiles.loss_passes = passes.loss_passes;
        tiles.attention_kernel = passes.attention_kernel;
        tiles.modules = passes.modules;
        tiles.mixture_kernels = passes.mixture_kernels;
        tiles.issues_ahead = passes.issues_ahead;
        device.tiles = std::make_shared<const TileModel>(std::move(tiles));
    }
    return machine;
}

Price with_basis(Price price, const Price& plain) {
    if (price.time == plain.time) return price;
    price.basis = Basis::modelled;
    if (price.source == plain.source) price.source = fmt::format("with what the framework adds: {}", plain.source);
    return price;
}

Price with_overheads(Price price, const Problem& problem, const DeviceClass& device, const Framework& framework) {
    const Price plain = price;
    if (const std::optional<InBatches> in = in_batches(problem); in && framework.dilated_in_batches) {
        Price dense = with_overheads(rehearse::price(in->problem, device), in->problem, device, framework);
        dense.time += copied_together(*in, problem, device);
        dense.source = fmt::format("as images of every so many-th pixel: {}", dense.source);
        return with_basis(std::move(dense), plain);
    }
    if (framework.dense_gradients) price = multiplied(price, problem, device);
    if (may_transform(problem) && !transforms(problem, framework))
        price = as_product(std::move(price), problem, device);
    price.time += turned(problem, device, framework);
    if (framework.update_passes && updated(problem.op)) {
        const double once = static_cast<double>(*updated(problem.op)) * size_of(problem.type).value;
        const Bytes moved = bytes_moved(problem.op, problem.pass, problem.type, problem.batch);
        price.time = framework.update_rate > Bandwidth{}
                         ? Bytes{*framework.update_passes * once} / framework.update_rate
                         : price.time * (*framework.update_passes * once / moved.value);
    }
    const Issue& issue = framework.issue.of(problem.op);
    if (has_pass(problem.op, problem.pass) && issue.time > price.time)
        return {issue.time, issue.error, fmt::format("the host's issue: {}", issue.source), Basis::modelled};
    return with_basis(std::move(price), plain);
}

}  // namespace rehearse::predict
