// SPDX-License-Identifier: Apache-2.0
// Tiramisu (Jegou et al. 2017) as the climate paper changed it (Kurth et al. 2018, section V.B): growth 32, 5x5
// convolutions, blocks of 2, 2, 2, 4 and 5 layers, all 16 variables, three classes. From github.com/azrael417/
// ClimDeepLearn: 64 filters first, batch norm after each convolution, transitions down by a strided 1x1, up by a
// transposed 3x3 of what the last block added.
#include <vector>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {
namespace {

/// The published network, or a small one of the same parts.
struct Size {
    const char* name;
    Shape input;
    std::int64_t first, growth;
    std::vector<int> layers;
    double keep;
};

int unit(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, Window window, double keep) {
    const int x = b.batch_norm(name + ".bn", b.conv(name + ".conv", from, filters, window, true));
    return b.dropout(name + ".drop", b.relu(name + ".relu", x), keep);
}

// The block's input, then what each of its layers makes of all before it.
std::vector<int> dense_block(NetworkBuilder& b, const std::string& name, int from, int layers, const Size& size) {
    std::vector<int> parts{from};
    for (int i = 0; i < layers; ++i) {
        const int x = i == 0 ? from : b.concat(fmt::format("{}.{}.concat", name, i), parts);
        parts.push_back(unit(b, fmt::format("{}.{}", name, i), x, size.growth, square(5, 1, 2), size.keep));
    }
    return parts;
}

// Twice as large; TensorFlow's padding "same" leaves out the last row and column.
Window twice() { return {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1}; }

Network build(const Size& size) {
    NetworkBuilder b(size.name, size.input);
    const std::vector<int>& layers = size.layers;
    int x = unit(b, "in", NetworkBuilder::input, size.first, square(5, 1, 2), size.keep);
    std::vector<int> skips, block;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (i > 0) {
            skips.push_back(b.concat(fmt::format("skip{}", i - 1), block));
            x = unit(b, fmt::format("to{}", i), skips.back(), b.shape(skips.back())[0], square(1, 2), size.keep);
        }
        block = dense_block(b, fmt::format("down{}", i), x, layers[i], size);
    }
    for (std::size_t i = skips.size(); i-- > 0;) {
        const int added = b.concat(fmt::format("back{}.added", i), {block.begin() + 1, block.end()});
        x = b.conv_transpose(fmt::format("back{}", i), added, b.shape(added)[0], twice(), true);
        x = b.concat(fmt::format("back{}.concat", i), {x, skips[i]});
        block = dense_block(b, fmt::format("up{}", i), x, layers[i], size);
    }
    x = b.conv("scores", b.concat("scores.concat", block), 3, square(1), true);
    b.pixel_loss(x, climate_class_weights());
    return b.build();
}

}  // namespace

Network tiramisu() { return build({"tiramisu", {16, 768, 1152}, 64, 32, {2, 2, 2, 4, 5}, 0.8}); }

// A sixteenth of the width and height, three levels, few filters.
Network tiramisu_small() { return build({"tiramisu-small", {16, 48, 72}, 16, 8, {2, 2, 2}, 0.9}); }

// Inverse square roots of how often the background, tropical cyclones and atmospheric rivers occur: 98.2 %, 0.1 % and
// 1.7 % of the pixels (Kurth et al. 2018, section V.B.1).
std::vector<double> climate_class_weights() { return {1.0091, 31.6228, 7.6697}; }

}  // namespace rehearse::models
