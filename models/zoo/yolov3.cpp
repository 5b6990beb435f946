// SPDX-License-Identifier: Apache-2.0
// YOLOv3 (Redmon and Farhadi 2018): Darknet-53 without its classifier, and boxes at an eighth, a sixteenth and a
// thirty-second of the image (github.com/pjreddie/darknet, cfg/yolov3.cfg). ReLU stands for the leaky one. The scores
// of the three grids are joined at the finest, where one loss stands for their three.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

int conv(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, std::int64_t kernel,
         std::int64_t stride = 1) {
    const int x = b.batch_norm(name + ".bn", b.conv(name, from, filters, square(kernel, stride, kernel / 2)));
    return b.relu(name + ".relu", x);
}

struct Scales {
    std::array<int, 3> layers;  // an eighth, a sixteenth, a thirty-second
};

Scales darknet53(NetworkBuilder& b) {
    int x = conv(b, "conv1", NetworkBuilder::input, 32, 3);
    Scales scales{};
    constexpr std::array<int, 5> blocks{1, 2, 8, 8, 4};
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        const std::int64_t filters = std::int64_t{64} << stage;
        x = conv(b, fmt::format("down{}", stage + 1), x, filters, 3, 2);
        for (int i = 1; i <= blocks[stage]; ++i) {
            const std::string name = fmt::format("block{}.{}", stage + 1, i);
            const int half = conv(b, name + ".conv1", x, filters / 2, 1);
            x = b.add(name + ".add", x, conv(b, name + ".conv2", half, filters, 3));
        }
        if (stage >= 2) scales.layers[stage - 2] = x;
    }
    return scales;
}

Network build(const char* name, std::int64_t side, std::int64_t classes) {
    NetworkBuilder b(name, {3, side, side});
    const Scales scales = darknet53(b);
    constexpr std::int64_t anchors = 3, box = 5;  // of each cell; four sides and a confidence
    std::vector<int> scores;
    int from = scales.layers[2];
    for (int scale = 2; scale >= 0; --scale) {
        const std::int64_t filters = std::int64_t{128} << scale;
        const std::string at = fmt::format("boxes{}", 8 << scale);
        for (int i = 1; i <= 5; ++i) {
            from =
                conv(b, fmt::format("{}.conv{}", at, i), from, i % 2 == 1 ? filters : 2 * filters, i % 2 == 1 ? 1 : 3);
        }
        const int wide = conv(b, at + ".conv6", from, 2 * filters, 3);
        int out = b.conv(at + ".scores", wide, anchors * (classes + box), square(1), true);
        if (scale > 0) out = b.resize(at + ".join", out, side / 8, side / 8);
        scores.push_back(out);
        if (scale == 0) break;
        const int up = conv(b, at + ".up", from, filters / 2, 1);
        const std::int64_t twice = 2 * b.shape(up)[1];
        const auto finer = scales.layers[static_cast<std::size_t>(scale - 1)];
        from = b.concat(at + ".concat", {b.resize(at + ".resize", up, twice, twice), finer});
    }
    b.pixel_loss(b.concat("scores", scores));
    return b.build();
}

}  // namespace

Network yolov3() { return build("yolov3", 416, 80); }
Network yolov3_voc() { return build("yolov3-voc", 448, 20); }

}  // namespace rehearse::models
