// SPDX-License-Identifier: Apache-2.0
// Convolutions whose weights are no tensors of their own, but computed of others (weight_norm, standardized weights) or
// fixed (a blur): a product of the weights with the image's patches.
//
//   weights {g, filters / g, channels / g * taps}  x  patches {g, channels / g * taps, pixels}
//
// The patches of a transposed convolution are those of the image with zeros between its pixels.
#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "models/onnx/parts.hpp"
#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

using Three = std::array<std::int64_t, 3>;  // depth, height, width

struct Move {
    Three from, to, kernel, stride, pad, dilation;
    bool transposed = false;

    // The pixel that tap `t` of result `o` reads along an axis; -1: none.
    std::int64_t read(std::size_t axis, std::int64_t o, std::int64_t t) const {
        const std::int64_t reach = t * dilation[axis];
        if (!transposed) {
            const std::int64_t at = o * stride[axis] - pad[axis] + reach;
            return at >= 0 && at < from[axis] ? at : -1;
        }
        const std::int64_t at = o + pad[axis] - reach;
        return at >= 0 && at % stride[axis] == 0 && at / stride[axis] < from[axis] ? at / stride[axis] : -1;
    }
};

std::int64_t volume(const Three& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

Three at(std::int64_t index, const Three& sizes) {
    return {index / (sizes[1] * sizes[2]), index / sizes[2] % sizes[1], index % sizes[2]};
}

// What each tap reads along an axis for each result: row `tap`, column `result`.
std::vector<std::int64_t> reads(const Move& move, std::size_t axis) {
    std::vector<std::int64_t> made;
    for (std::int64_t tap = 0; tap < move.kernel[axis]; ++tap)
        for (std::int64_t o = 0; o < move.to[axis]; ++o) made.push_back(move.read(axis, o, tap));
    return made;
}

// Every channel reads as the first one does, a whole image further on.
std::vector<std::int32_t> patches(const Move& move, std::int64_t channels) {
    const std::int64_t taps = volume(move.kernel);
    const std::array<std::vector<std::int64_t>, 3> read{reads(move, 0), reads(move, 1), reads(move, 2)};
    std::vector<std::int32_t> places;
    places.reserve(static_cast<std::size_t>(channels * taps * volume(move.to)));
    for (std::int64_t t = 0; t < taps; ++t) {
        const Three tap = at(t, move.kernel);
        std::array<std::span<const std::int64_t>, 3> line;
        for (std::size_t axis = 0; axis < 3; ++axis)
            line[axis] = std::span{read[axis]}.subspan(static_cast<std::size_t>(tap[axis] * move.to[axis]),
                                                       static_cast<std::size_t>(move.to[axis]));
        for (const std::int64_t d : line[0]) {
            for (const std::int64_t h : line[1]) {
                const bool outside = d < 0 || h < 0;
                const std::int64_t row = (d * move.from[1] + h) * move.from[2];
                for (const std::int64_t w : line[2])
                    places.push_back(outside || w < 0 ? -1 : static_cast<std::int32_t>(row + w));
            }
        }
    }
    const std::size_t of_one = places.size();
    const auto image = static_cast<std::int32_t>(volume(move.from));
    places.resize(of_one * static_cast<std::size_t>(channels));
    for (std::size_t i = of_one; i < places.size(); ++i)
        places[i] = places[i - of_one] < 0 ? -1 : places[i - of_one] + image;
    return places;
}

Three three(const Shape& image) { return {image.size() == 4 ? image[1] : 1, image[image.size() - 2], image.back()}; }

class Unfolded {
public:
    Unfolded(Import& import, const onnx::NodeProto& node) : import_(import), node_(node) {}

    std::string put(const Convolution& conv, const Shape& image, int from) {
        // Elements of a sample's patches: of those that a run picks each has a number of its own.
        const std::int64_t most = import_.graph.keeps_values() ? 1 << 26 : 1 << 28;
        const Shape made = conv.output;
        if (made.size() != image.size()) return fmt::format("{} is no image that it makes of one", to_string(made));
        const Window& w = conv.window;
        const Move move{three(image),
                        three(made),
                        {w.kernel_d, w.kernel_h, w.kernel_w},
                        {w.stride_d, w.stride_h, w.stride_w},
                        {w.pad_front, w.pad_top, w.pad_left},
                        {w.dilation_d, w.dilation_h, w.dilation_w},
                        conv.transposed};
        const std::int64_t channels = image[0], groups = conv.groups, taps = volume(move.kernel);
        const std::int64_t rows = channels / groups * taps, filters = made[0] / groups, pixels = volume(move.to);
        const bool numbered = volume(move.from) <= std::numeric_limits<std::int32_t>::max() / channels;
        if (channels * taps > most / pixels || !numbered) return "its patches are too large for a product";
        int weights = import_.bring(node_, node_.input(1));
        if (conv.transposed) {  // {channels, filters / groups, taps}
            weights = view(weights, {groups, channels / groups, filters, taps});
            weights = layer("turned",
                            Rearrangement{"transpose",
                                          {{groups, channels / groups, filters, taps}},
                                          {groups, filters, channels / groups, taps},
                                          {0, 2, 1, 3}},
                            {weights});
        }
        const Shape a{groups, filters, rows}, b{groups, rows, pixels};
        const int unfolded = layer("patches", Rearrangement{"pack", {image}, b}, {from});
        if (import_.graph.keeps_values()) import_.given[unfolded].places = {patches(move, channels)};
        int product = layer("product", BatchedMatMul{a, b}, {view(weights, a), unfolded});
        product = view(product, made);
        if (conv.bias) product = add_bias(product, made);
        import_.places[node_.output(0)] = {product, ""};
        return "";
    }

private:
    int layer(const std::string& what, Op op, std::vector<int> from) {
        return add_part(import_, node_, what, std::move(op), std::move(from));
    }
    int view(int from, const Shape& shape) { return seen_as(import_, node_, from, shape); }
    int add_bias(int product, const Shape& made) {
        Shape bias(made.size(), 1);
        bias[0] = made[0];
        const int beside = view(import_.bring(node_, node_.input(2)), bias);
        return layer("bias", Elementwise{"add", made, {made, bias}}, {product, beside});
    }

    Import& import_;
    const onnx::NodeProto& node_;
};

}  // namespace

std::string unfolded(Import& import, const onnx::NodeProto& node, const Convolution& conv, const Shape& image,
                     int from) {
    return Unfolded{import, node}.put(conv, image, from);
}

}  // namespace rehearse::models
