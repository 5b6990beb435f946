// SPDX-License-Identifier: Apache-2.0
#include "prices/prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>

#include "core/error.hpp"
#include "prices/by_likeness.hpp"
#include "prices/chip_kernels.hpp"
#include "prices/convolution_price.hpp"
#include "prices/gathered.hpp"
#include "prices/price_model.hpp"
#include "prices/recurrent.hpp"
#include "prices/roofline.hpp"
#include "prices/stack_price.hpp"
#include "prices/tile_model.hpp"

namespace rehearse {

namespace {

// The row that says most about this problem: kind beats "*", then a given pass, then a given type.
const Efficiency* efficiency_of(const Problem& problem, const DeviceClass& device) {
    const Efficiency* best = nullptr;
    int best_rank = -1;
    for (const Efficiency& row : device.efficiencies) {
        if (row.kind != "*" && row.kind != kind_of(problem.op)) continue;
        if (row.pass && *row.pass != problem.pass) continue;
        if (row.type && *row.type != problem.type) continue;
        const int rank = (row.kind != "*" ? 4 : 0) + (row.pass ? 2 : 0) + (row.type ? 1 : 0);
        if (rank > best_rank) {
            best = &row;
            best_rank = rank;
        }
    }
    return best;
}

// "conv2d:n32c64..." without its batch, and the batch.
std::pair<std::string, std::int64_t> split_batch(std::string_view problem) {
    const std::size_t n = problem.find(":n") + 2;
    std::int64_t batch = 0;
    const auto [rest, error] = std::from_chars(problem.data() + n, problem.data() + problem.size(), batch);
    const std::string rest_text{rest, problem.data() + problem.size()};
    require(error == std::errc{}, "a measured problem's name holds its batch");
    return {std::string{problem.substr(0, n)} + rest_text, batch};
}

// Samples of the same problem at other batch sizes.
std::map<std::int64_t, const Measured*> other_batches(const Problem& problem, const DeviceClass& device) {
    std::map<std::int64_t, const Measured*> found;
    if (device.measured.empty()) return found;
    const std::string wanted = split_batch(to_string(problem)).first;
    const std::string kind = fmt::format("{}:", kind_of(problem.op));
    for (auto it = device.measured.lower_bound(kind); it != device.measured.end() && it->first.starts_with(kind);
         ++it) {
        const auto [name, batch] = split_batch(it->first);
        if (name == wanted) found.emplace(batch, &it->second);
    }
    return found;
}

// Between two measured batches: on the line through them. Outside them: in proportion to the batch, with 10 % more
// error a doubling.
Price interpolate(const Problem& problem, const std::map<std::int64_t, const Measured*>& samples) {
    const auto above = samples.lower_bound(problem.batch);
    if (above == samples.begin() || above == samples.end()) {
        const auto& [batch, sample] = above == samples.end() ? *std::prev(above) : *above;
        const double ratio = static_cast<double>(problem.batch) / static_cast<double>(batch);
        const double error = std::hypot(sample->error, 0.1 * std::abs(std::log2(ratio)));
        return {sample->median * ratio, std::min(error, 1.0),
                fmt::format("in proportion to batch {}: {}", batch, sample->source)};
    }
    const auto& [b1, s1] = *above;
    const auto& [b0, s0] = *std::prev(above);
    const double t = static_cast<double>(problem.batch - b0) / static_cast<double>(b1 - b0);
    return {s0->median + (s1->median - s0->median) * t, std::max(s0->error, s1->error),
            fmt::format("between batches {} and {}: {}", b0, b1, s0->source)};
}

Price roofline(const Problem& problem, const DeviceClass& device) {
    const auto [compute, memory] = roofline_times(problem, device);
    if (!compute || !memory) {
        throw InputError(fmt::format(
            "device class '{}' has no {}: give it in the machine file, or measure it with `rehearse calibrate` (needed "
            "for {})",
            device.name, compute ? "memory_bandwidth" : fmt::format("peak for {}", to_string(problem.type)),
            to_string(problem)));
    }
    const Efficiency* row = efficiency_of(problem, device);
    const double fraction = row != nullptr ? row->fraction : 1;
    // Without an efficiency row the roofline is a bound, not a price: say so by an error of one half.
    const double error = row != nullptr ? row->error : 0.5;
    return {std::max(*compute, *memory) / fraction + device.launch.value, error,
            fmt::format("roofline of {}, {} bound, at {:.3g} of it ({})", device.name,
                        *compute > *memory ? "compute" : "memory", fraction, row != nullptr ? row->source : "a bound")};
}

// The convolutions that models learned from have no bias. Frameworks add it in a kernel of its own, which reads and
// writes dst; its gradient reads diff_dst once more. Where a compiler joined a ReLU to the convolution, the bias is in
// there, too.
Seconds of_bias(const Problem& problem, const DeviceClass& device) {
    const Conv* conv = as_conv2d(problem.op);
    const auto* transposed = std::get_if<ConvTranspose>(&problem.op);
    const bool bias = conv != nullptr ? conv->bias && !conv->relu : transposed != nullptr && transposed->bias;
    if (!bias || problem.pass == Pass::backward_data) return Seconds{0};
    const Op add = Bias{output_shape(problem.op), 0};
    const Seconds both = roofline({add, Pass::forward, problem.batch, problem.type}, device).time - device.launch.value;
    return both * (problem.pass == Pass::forward ? 1.0 : 0.5) + device.launch.value;
}

// What is between measured shapes is no faster than the peak where no transform saves multiplications.
Seconds least_of(const Problem& problem, const DeviceClass& device, bool measured) {
    const auto peak = device.peak.find(problem.type);
    if (measured || peak == device.peak.end() || may_transform(problem)) return Seconds{0};
    return std::max(flops(problem.op, problem.pass, problem.batch) / peak->second.value,
                    least_gathered(problem, device));
}

// A transposed convolution is run as the backward_data of the convolution that it mirrors, and its own backward_data as
// that convolution: cuDNN, MKL and oneDNN have no other kernels for it. Nothing where the device has shares of its own
// for it.
std::optional<Problem> mirror_image(const Problem& problem, const DeviceClass& device) {
    const auto* op = std::get_if<ConvTranspose>(&problem.op);
    if (op == nullptr || problem.pass == Pass::update) return std::nullopt;
    const Efficiency* row = efficiency_of(problem, device);
    if (row != nullptr && row->kind != "*") return std::nullopt;
    const Pass pass = problem.pass == Pass::forward         ? Pass::backward_data
                      : problem.pass == Pass::backward_data ? Pass::forward
                                                            : problem.pass;
    return Problem{mirrored(*op), pass, problem.batch, problem.type};
}

// No sheet has 3-D convolutions. As products they are those of images of as many pixels, one plane below the other,
// with filters of as many taps; 3 x 3 x 3 then is 9 x 3, for which no fast transform is known either.
std::optional<Conv> as_planes(const Op& op) {
    const auto* volume = std::get_if<Conv>(&op);
    if (volume == nullptr || volume->depth == 0 || volume->groups != 1) return std::nullopt;
    const Window& w = volume->window;
    if (w.stride_d != 1 || w.stride_h != 1 || w.stride_w != 1) return std::nullopt;
    const Shape out = output_shape(op);
    Window window = w;
    window.kernel_d = 1;
    window.kernel_h = w.kernel_d * w.kernel_h;
    window.pad_front = window.pad_back = window.pad_top = window.pad_bottom = window.pad_left = window.pad_right = 0;
    return Conv{volume->channels,
                out[1] * out[2] + window.kernel_h - 1,
                out[3] + window.kernel_w - 1,
                volume->filters,
                window,
                1,
                volume->bias,
                false};
}

// TF32 and FP8 are peaks of a data sheet here, and the shares of them that kernels reach those of other types: nobody
// has measured them.
Price from_sheet(Price price, const Problem& problem) {
    constexpr double error = 0.25;
    if (problem.type != DataType::tf32 && problem.type != DataType::fp8) return price;
    price.error = std::hypot(price.error, error);
    price.source = fmt::format("{} modelled from the data sheet: {}", to_string(problem.type), price.source);
    return price;
}

// What a few kernels of this very board said of such prices (prices/kernel_factor.hpp).
Price on_this_board(Price price, const Problem& problem, const DeviceClass& device) {
    if (device.model == nullptr) return price;
    const KernelFactor* factor = factor_of(device.model->factors(), kind_of(problem.op), problem.type);
    if (factor == nullptr) return price;
    price.time = price.time * factor->factor;
    price.error = error_after(*factor, price.error);
    price.source =
        fmt::format("{}, times {:.3g} ({} kernels, {})", price.source, factor->factor, factor->kernels, factor->source);
    price.basis = Basis::modelled;
    return price;
}

// One expert's product after the other, by the prices of products.
Price one_by_one(const GroupedMatMul& op, const Problem& problem, const DeviceClass& device) {
    const MatMul one{.m = rows_of_expert(op, problem.batch), .n = op.n, .k = op.k, .bias = op.bias};
    const Price each = price({one, problem.pass, 1, problem.type}, device);
    return {each.time * static_cast<double>(op.experts), each.error,
            fmt::format("{} times {}: {}", op.experts, to_string(Op{one}), each.source)};
}

// The groups of a convolution as convolutions of their own, one after the other: cuDNN before 7 knows no groups, and
// programs loop over them (Caffe's cudnn_conv_layer.cu, Torch's SpatialConvolution.lua). Of groups that fill a kernel's
// tile by themselves: what is known of others, 4 to 32 filters wide, is known of kernels for groups.
std::optional<Price> group_by_group(const Problem& problem, const DeviceClass& device) {
    constexpr std::int64_t tile = 64;
    const auto* op = std::get_if<Conv>(&problem.op);
    if (op == nullptr || op->groups <= 1 || op->filters / op->groups < tile) return std::nullopt;
    Conv one = *op;
    one.channels /= op->groups;
    one.filters /= op->groups;
    one.groups = 1;
    one.bias = false;
    const Price each = price({one, problem.pass, problem.batch, problem.type}, device);
    return Price{each.time * static_cast<double>(op->groups), each.error,
                 fmt::format("{} times {}: {}", op->groups, to_string(Op{one}), each.source)};
}

// A convolution of a sort that no table has: of a volume by the images that are the same product, of which a library
// may know less; else by the bound of a library's algorithms, unless the device has a share of its own for it.
std::optional<Price> of_unmeasured_sort(const Problem& problem, const DeviceClass& device) {
    constexpr double of_volumes = 0.4;
    if (!has_groups(problem)) {
        const std::optional<Conv> planes = as_planes(problem.op);
        if (planes && has_chip_kernels(device, "conv2d", problem.type)) {
            Price answer = price({*planes, problem.pass, problem.batch, problem.type}, device);
            answer.error = std::hypot(answer.error, of_volumes);
            answer.source = "a volume as the image of the same product: " + answer.source;
            std::optional<Price> least = price_without_transforms(problem, device);
            const std::optional<Price> by_sample = price_by_sample(problem, device);
            if (by_sample && (!least || by_sample->time > least->time)) least = by_sample;
            if (!least || least->time + of_bias(problem, device) < answer.time) return answer;
            least->time += of_bias(problem, device);
            least->error = std::max(least->error, answer.error);
            return on_this_board(std::move(*least), problem, device);
        }
        const Efficiency* share = efficiency_of(problem, device);
        if (share != nullptr && share->kind != "*") return std::nullopt;
    }
    std::optional<Price> answer = convolution_price(problem, device);
    if (!answer) return std::nullopt;
    std::optional<Price> least = price_by_sample(problem, device);
    if (least && least->time > answer->time) answer = std::move(least);
    answer->time += of_bias(problem, device);
    Price together = on_this_board(from_sheet(std::move(*answer), problem), problem, device);
    std::optional<Price> apart = group_by_group(problem, device);
    if (!apart) return together;
    apart->time += of_bias(problem, device);
    return apart->time < together.time ? *apart : together;
}

}  // namespace

Price price(const Problem& problem, const DeviceClass& device) {
    if (!has_pass(problem.op, problem.pass)) return {Seconds{0}, 0, "nothing to do"};
    const auto measured = device.measured.find(to_string(problem));
    if (measured != device.measured.end()) {
        const Measured& sample = measured->second;
        return {sample.median, sample.error, sample.source, sample.basis};
    }
    const auto others = other_batches(problem, device);
    if (!others.empty()) return interpolate(problem, others);
    if (const auto image = mirror_image(problem, device)) {
        Price of_image = price(*image, device);
        of_image.time += of_bias(problem, device);
        return of_image;
    }
    if (const auto* cells = std::get_if<Recurrent>(&problem.op); cells != nullptr && problem.pass != Pass::update)
        return recurrent_price(*cells, problem.pass, problem.batch, problem.type, device).whole();
    if (auto stack = stack_by_batches(problem, device)) return *stack;
    const bool tiles_first = device.tiles != nullptr && device.tiles->before_model;
    if (tiles_first) {
        if (auto answer = tile_price(problem, device))
            return on_this_board(from_sheet(std::move(*answer), problem), problem, device);
    }
    if (device.model != nullptr) {
        auto answer = device.model->answer(problem);
        if (!answer || !answer->sampled) {
            if (auto known = gradient_price(problem, device)) return *known;
        }
        if (answer) {
            if (answer->whole) return on_this_board({answer->time, answer->error, answer->source}, problem, device);
            return on_this_board(
                {std::max(answer->time, least_of(problem, device, answer->sampled)) + device.launch.value +
                     of_bias(problem, device),
                 answer->error, answer->source, answer->sampled ? Basis::measured_on_class : Basis::modelled},
                problem, device);
        }
    }
    if (auto answer = of_unmeasured_sort(problem, device)) return *answer;
    const auto* experts = std::get_if<GroupedMatMul>(&problem.op);
    if (experts != nullptr && has_chip_kernels(device, "matmul", problem.type))
        return one_by_one(*experts, problem, device);
    if (auto answer = tile_price(problem, device))
        return on_this_board(from_sheet(std::move(*answer), problem), problem, device);
    if (experts != nullptr) return one_by_one(*experts, problem, device);
    if (auto answer = stack_by_products(problem, device)) return *answer;
    if (auto answer = unfused_price(problem, device))
        return on_this_board(from_sheet(std::move(*answer), problem), problem, device);
    return on_this_board(from_sheet(roofline(problem, device), problem), problem, device);
}

std::string_view to_string(Basis basis) {
    switch (basis) {
        case Basis::measured_here:
            return "measured here";
        case Basis::measured_on_class:
            return "measured on this device class";
        case Basis::modelled:
            return "modelled";
    }
    return "";
}

Seconds at(const Price& price, ZScore z_score) { return price.time * std::max(0.5, 1 + z_score.value * price.error); }

}  // namespace rehearse
