// SPDX-License-Identifier: Apache-2.0
// 3-D U-Net (Cicek et al. 2016, figure 2), three channels in, three classes out. Padded convolutions instead of cropped
// skips, over 128^3, as its successors have them (nnU-Net, MLPerf; assumed). The paper's 19,069,955 parameters are the
// weights and biases of these convolutions; a scale and a shift of each of 2,336 normalized channels come on top here.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {
namespace {

int conv(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters) {
    const int x = b.conv(name, from, filters, cube(3, 1, 1), true);
    return b.relu(name + ".relu", b.batch_norm(name + ".bn", x));
}

// `first`: filters of the first convolution, 32 in the paper.
Network unet(const char* name, std::int64_t size, std::int64_t first) {
    NetworkBuilder b(name, {3, size, size, size});
    constexpr int levels = 4;
    std::array<int, levels> skips{};
    int x = NetworkBuilder::input;
    for (int level = 0; level < levels; ++level) {
        if (level > 0) x = b.max_pool(fmt::format("pool{}", level), x, cube(2, 2));
        const std::int64_t filters = first << level;
        x = conv(b, fmt::format("down{}.conv1", level), x, filters);
        x = conv(b, fmt::format("down{}.conv2", level), x, 2 * filters);
        skips[static_cast<std::size_t>(level)] = x;
    }
    for (int level = levels - 2; level >= 0; --level) {
        x = b.conv_transpose(fmt::format("up{}", level), x, b.shape(x)[0], cube(2, 2));
        x = b.concat(fmt::format("up{}.concat", level), {skips[static_cast<std::size_t>(level)], x});
        const std::int64_t filters = 2 * first << level;
        x = conv(b, fmt::format("up{}.conv1", level), x, filters);
        x = conv(b, fmt::format("up{}.conv2", level), x, filters);
    }
    b.pixel_loss(b.conv("scores", x, 3, cube(1), true));
    return b.build();
}

}  // namespace

Network unet3d() { return unet("unet3d", 128, 32); }
Network unet3d_small() { return unet("unet3d-small", 32, 8); }

}  // namespace rehearse::models
