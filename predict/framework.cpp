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

// Whether the gradients of the weights that this step updates have been summed over ranks.
bool summed_before(const Step& step, const Schedule& schedule, const RankClass& rank_class) {
    const auto* update = std::get_if<Update>(&step.action);
    if (update == nullptr) return false;
    const Bucket& bucket = rank_class.part.buckets[static_cast<std::size_t>(int{update->bucket})];
    return bucket.axis >= 0 && size_of(schedule.mesh, bucket.axis) > 1;
}

Seconds copied(const Problem& update, const DeviceClass& device, double times) {
    const double elements = static_cast<double>(updated(update.op).value_or(0));
    return times * 2 * elements * size_of(update.type) / device.memory_bandwidth.value;
}

// What the copies of a bucket's weights and gradients take in a step that gathers the former from shards and leaves the
// latter in shards; they are counted where the bucket is updated.
Seconds copied_beside_shards(const Update& update, const RankClass& rank_class, const DeviceClass& device,
                             const Copies& copies) {
    Bytes moved{};
    for (const Step& step : rank_class.steps) {
        const auto* message = std::get_if<Communicate>(&step.action);
        if (message == nullptr || !message->of_bucket() || message->bucket() != update.bucket) continue;
        if (message->content != Content::usual) continue;
        const double passes = message->kind == CollectiveKind::all_gather       ? copies.gathered
                              : message->kind == CollectiveKind::reduce_scatter ? copies.scattered
                                                                                : 0;
        moved += passes * static_cast<double>(message->elements) * size_of(message->type);
    }
    const double share = device.tiles ? device.tiles->memory.value : 1;
    return moved / (device.memory_bandwidth.value * share);
}

// What statistics of the gradients of a bucket take: each operator as long as its issue, or as its part of the
// gradients takes to cross memory.
Seconds counted(const Update& update, bool shared, const RankClass& rank_class, const DeviceClass& device,
                const Framework& framework) {
    const double operators = shared ? framework.statistics.shared : framework.statistics.alone;
    if (operators == 0) return Seconds{};
    double tensors = 0;
    const rehearse::Part& part = rank_class.part;
    for (const int layer : part.buckets[static_cast<std::size_t>(int{update.bucket})].layers)
        tensors += static_cast<double>(weights(part.network.layers[static_cast<std::size_t>(layer)].op).size());
    const double elements = static_cast<double>(updated(update.problem.op).value_or(0));
    const Seconds crossing = 1.4 * elements * size_of(update.problem.type) / device.memory_bandwidth.value;
    return operators * std::max(tensors * framework.issue.other.time, crossing);
}

// What was measured is no longer what it was once a framework has added to it, or taken away.
Price with_basis(Price price, const Price& plain) {
    if (price.time == plain.time) return price;
    price.basis = Basis::modelled;
    if (price.source == plain.source) price.source = fmt::format("with what the framework adds: {}", plain.source);
    return price;
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
        device.tiles = std::make_shared<const TileModel>(std::move(tiles));
    }
    return machine;
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

Machine priced(Machine machine, const Schedule& schedule, const Framework& framework) {
    for (DeviceClass& device : machine.classes) {
        std::map<std::string, Measured> prices;
        const auto add = [&](const Problem& problem, bool summed, Seconds beside) {
            std::string name = to_string(problem);
            if (prices.contains(name)) return;
            const Price alone = with_overheads(price(problem, device), problem, device, framework);
            Price known = alone;
            if (summed) known.time += copied(problem, device, framework.copies.buckets);
            known.time += beside;
            known = with_basis(std::move(known), alone);
            prices.emplace(std::move(name), Measured{known.time, known.error, 1, known.source, known.basis});
        };
        for (const RankClass& rank_class : schedule.classes) {
            for (const Step& step : rank_class.steps) {
                const Problem* problem = problem_of(step);
                if (problem == nullptr) continue;
                const bool summed = summed_before(step, schedule, rank_class);
                const auto* update = std::get_if<Update>(&step.action);
                add(*problem, summed,
                    update == nullptr ? Seconds{}
                                      : counted(*update, summed, rank_class, device, framework) +
                                            copied_beside_shards(*update, rank_class, device, framework.copies));
            }
        }
        device.measured = std::move(prices);
    }
    return machine;
}

}  // namespace rehearse::predict
