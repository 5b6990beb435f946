// SPDX-License-Identifier: Apache-2.0
// U-Net (Ronneberger et al. 2015) of any depth of its blocks, as torchgpipe's benchmarks have it (Kim et al. 2020):
// five levels, `convs` convolutions a block, twice the channels at each level, the nearest pixel on the way up. Its
// numbers of weights are those of their table (362.2 M of 6 x 72 channels); images of 192 x 192, and a dropout of whole
// channels behind each convolution, which has no bias, are in benchmarks/unet-speed and benchmarks/models/unet of
// kakaobrain/torchgpipe. Instance norms are counted as batch norms, which pass over memory as often, dropouts as those
// of single numbers.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

// All but the last convolution give `middle` channels.
int block(NetworkBuilder& b, const std::string& name, int x, int convs, std::int64_t middle, std::int64_t last) {
    for (int i = 0; i < convs; ++i) {
        const std::string conv = fmt::format("{}.conv{}", name, i);
        x = b.dropout(conv + ".drop", b.conv(conv, x, i + 1 == convs ? last : middle, square(3, 1, 1)), 0.9);
        x = b.relu(conv + ".relu", b.batch_norm(conv + ".norm", x));
    }
    return x;
}

}  // namespace

Network unet(int convs, std::int64_t channels) {
    constexpr std::size_t levels = 5;
    NetworkBuilder b(fmt::format("unet-{}x{}", convs, channels), {3, 192, 192});
    std::array<int, levels> skips{};
    int x = NetworkBuilder::input;
    for (std::size_t level = 0; level < levels; ++level) {
        x = skips[level] = block(b, fmt::format("down{}", level), x, convs, channels << level, channels << level);
        x = b.max_pool(fmt::format("pool{}", level), x, square(2, 2));
    }
    x = block(b, "bottom", x, convs, channels << levels, channels << (levels - 1));
    for (std::size_t level = levels; level-- > 0;) {
        const Shape& fine = b.shape(skips[level]);
        const std::string name = fmt::format("up{}", level);
        x = b.resize(name + ".resize", x, fine[1], fine[2]);
        x = b.concat(name + ".concat", {skips[level], x});
        x = block(b, name, x, convs, (channels << level) / 2, (channels << level) / 2);
    }
    b.pixel_loss(b.conv("scores", x, 2, square(1), true));
    return b.build();
}

Network unet_5x64() { return unet(5, 64); }

}  // namespace rehearse::models
