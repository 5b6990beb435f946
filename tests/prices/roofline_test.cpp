// SPDX-License-Identifier: Apache-2.0
#include "prices/roofline.hpp"

#include <gtest/gtest.h>

#include "prices/tile_model.hpp"

namespace rehearse {
namespace {

using namespace literals;

DeviceClass device(bool host) {
    DeviceClass d;
    d.peak[DataType::f16] = {100_TFLOPS, "sheet"};
    d.memory_bandwidth = {1000_GBps, "sheet"};
    d.host = host;
    return d;
}

// 8 samples of 64 channels x 100 pixels: 51,200 values of 2 bytes. A normalization's gradient reads src and diff_dst
// twice and writes diff_src; of a ReLU our kernels read dst twice, a GPU's library nothing.
TEST(LibraryBytes, OfANormalizationTellTheReluFromItsInput) {
    BatchNorm norm{.channels = 64, .height = 10, .width = 10};
    const double pass = 51200 * 2.0, weights = 2 * 64 * 2.0;
    const auto bytes = [&](bool host, Pass which) {
        return library_bytes({norm, which, 8, DataType::f16}, device(host)).value;
    };
    const double plain = bytes(false, Pass::backward_data);
    EXPECT_NEAR(plain, 5 * pass + weights, weights);
    EXPECT_EQ(bytes(true, Pass::backward_data), plain);
    norm.relu = true;
    EXPECT_EQ(bytes(false, Pass::backward_data), plain);
    EXPECT_EQ(bytes(true, Pass::backward_data), plain + 2 * pass);
    EXPECT_EQ(bytes(false, Pass::forward), bytes(true, Pass::forward));
    // With a shortcut its gradient is written and read as well, and the ReLU is a bit a value: 51,200 / 8 bytes.
    norm.add = true;
    EXPECT_NEAR(bytes(false, Pass::backward_data), 6 * pass + 51200 / 8.0 + weights, weights);
    EXPECT_EQ(bytes(true, Pass::backward_data), bytes(false, Pass::backward_data) + pass - 51200 / 8.0);
    // As many bytes at a terabyte a second.
    const RooflineTimes times = roofline_times({norm, Pass::backward_data, 8, DataType::f16}, device(false));
    EXPECT_DOUBLE_EQ(times.memory.value().value, bytes(false, Pass::backward_data) / 1e12);
}

// Two processors keep 2 x 2 blocks of 512 threads x 15 pixels x 4 values of 2 bytes forward, 16 backward. Of a tensor
// smaller than that nothing is read twice.
TEST(LibraryBytes, OfASixteenBitNormalizationStayOnTheChip) {
    DeviceClass d = device(false);
    TileModel model;
    model.processors = {2, "sheet"};
    d.tiles = std::make_shared<const TileModel>(model);
    const BatchNorm norm{.channels = 64, .height = 100, .width = 100, .relu = true};
    const auto spared = [&](const BatchNorm& op, Pass pass, DataType type) {
        const Problem problem{op, pass, 8, type};
        return (library_bytes(problem, device(false)) - library_bytes(problem, d)).value;
    };
    EXPECT_EQ(spared(norm, Pass::forward, DataType::f16), 2 * 2 * 512 * 15 * 4 * 2);
    EXPECT_EQ(spared(norm, Pass::backward_data, DataType::bf16), 2 * 2 * 512 * 16 * 4 * 2);
    EXPECT_EQ(spared(norm, Pass::forward, DataType::f32), 0);
    const BatchNorm small{.channels = 64, .height = 4, .width = 4, .relu = true};
    EXPECT_EQ(spared(small, Pass::forward, DataType::f16), 8 * 64 * 16 * 2);
    EXPECT_EQ(spared(small, Pass::backward_data, DataType::f16), 2 * 8 * 64 * 16 * 2);
    BatchNorm alone = norm;
    alone.relu = false;
    EXPECT_EQ(spared(alone, Pass::forward, DataType::f16), 0) << "kernels of their own are not persistent";
}

}  // namespace
}  // namespace rehearse
