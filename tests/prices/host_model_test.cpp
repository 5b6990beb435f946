// SPDX-License-Identifier: Apache-2.0
#include "prices/host_model.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "prices/host_point.hpp"
#include "prices/prices.hpp"

namespace rehearse {
namespace {

using namespace literals;
using testing::HasSubstr;

DeviceClass core() {
    DeviceClass device;
    device.name = "core";
    device.host = true;
    device.peak[DataType::f32] = {100_GFLOPS, "measured"};
    device.memory_bandwidth = {10_GBps, "measured"};
    return device;
}

Seconds bound(const Problem& problem, const DeviceClass& device) {
    return flops(problem.op, problem.pass, problem.batch) / device.peak.at(DataType::f32).value +
           bytes_moved(problem.op, problem.pass, problem.type, problem.batch) / device.memory_bandwidth.value;
}

void plant(DeviceClass& device, const Problem& problem, double times, double error = 0.01) {
    device.measured[to_string(problem)] = {bound(problem, device) * times, error, 7, "measured, node7",
                                           Basis::measured_here};
}

Problem conv(std::int64_t channels, std::int64_t pixels, std::int64_t filters, std::int64_t groups = 1) {
    return {Conv{channels, pixels, pixels, filters, Window{3, 3, 1, 1, 1, 1, 1, 1}, groups}, Pass::forward, 4};
}

Problem relu(std::int64_t channels, std::int64_t pixels) {
    return {Activation{Nonlinearity::relu, {channels, pixels, pixels}}, Pass::forward, 4};
}

// Convolutions that take thrice their bound, depthwise ones ten times theirs.
DeviceClass measured_core() {
    DeviceClass device = core();
    for (const std::int64_t channels : {32, 64, 128, 256}) {
        for (const std::int64_t pixels : {7, 14, 28, 56}) {
            plant(device, conv(channels, pixels, 2 * channels), 3);
            plant(device, conv(channels, pixels, channels, channels), 10);
            plant(device, relu(channels, pixels), 1.5);
        }
    }
    return device;
}

TEST(HostModel, PricesWhatLiesBetweenItsKernels) {
    DeviceClass device = measured_core();
    device.model = host_model(device);
    for (const auto& [problem, times] :
         {std::pair{conv(96, 20, 192), 3.0}, std::pair{conv(96, 20, 96, 96), 10.0}, std::pair{relu(96, 20), 1.5}}) {
        SCOPED_TRACE(to_string(problem));
        const Price found = price(problem, device);
        // Every kernel of its sort takes the same multiple: interpolation can only come to it, too; 10 % is half of
        // what the noise and the band allow.
        EXPECT_NEAR(found.time / bound(problem, device), times, 0.1 * times);
        EXPECT_THAT(found.source, HasSubstr("between the shapes of"));
        EXPECT_EQ(found.basis, Basis::modelled);
        EXPECT_LT(found.error, 0.3);
    }
}

TEST(HostModel, LeavesMeasuredProblemsAsTheyAre) {
    DeviceClass device = measured_core();
    const Seconds before = price(conv(64, 14, 128), device).time;
    device.model = host_model(device);
    EXPECT_EQ(price(conv(64, 14, 128), device).time, before);
    EXPECT_EQ(price(conv(64, 14, 128), device).basis, Basis::measured_here);
}

TEST(HostModel, KnowsLittleOfOtherSorts) {
    DeviceClass device = measured_core();
    device.model = host_model(device);
    const Problem table{Embedding{.tokens = 128, .vocabulary = 1000, .width = 256}, Pass::forward, 4};
    EXPECT_GT(price(table, device).error, 2 * price(relu(96, 20), device).error);
}

// A disturbed sample counts by how sure it is.
TEST(HostModel, TrustsSurerSamplesMore) {
    const auto disturbed = [](double error) {
        DeviceClass device = measured_core();
        plant(device, conv(96, 24, 192), 30, error);
        device.model = host_model(device);
        return price(conv(96, 20, 192), device).time / bound(conv(96, 20, 192), device);
    };
    EXPECT_GT(disturbed(0.01), 4);
    EXPECT_NEAR(disturbed(2), 3, 0.3);
}

TEST(HostModel, NeedsSomeKernelsAndAHost) {
    DeviceClass few = core();
    for (const std::int64_t channels : {32, 64, 128}) plant(few, conv(channels, 14, channels), 3);
    EXPECT_EQ(host_model(few), nullptr);
    DeviceClass card = measured_core();
    card.host = false;
    EXPECT_EQ(host_model(card), nullptr);
    DeviceClass bare = measured_core();
    bare.peak.clear();
    EXPECT_EQ(host_model(bare), nullptr);
}

// A transposed convolution is the mirrored one's gradient: the same features, and the other pass.
TEST(HostPoints, TakeTransposedConvolutionsForTheirMirrors) {
    const ConvTranspose up{.channels = 64, .height = 14, .width = 14, .filters = 32, .window = Window{2, 2, 2, 2}};
    const DeviceSheet sheet{100_GFLOPS, 10_GBps, 1, 1, 4_B, {}, true};
    const auto point = host_point({up, Pass::forward, 4}, sheet);
    const auto image = host_point({mirrored(up), Pass::backward_data, 4}, sheet);
    ASSERT_TRUE(point && image);
    EXPECT_EQ(point->point.task, static_cast<int>(Pass::backward_data));
    for (std::size_t i = 0; i + 1 < point->point.features.size(); ++i) {
        if (i == 12) continue;  // memory over compute: bytes of one are counted without what the other adds to
        EXPECT_DOUBLE_EQ(point->point.features[i], image->point.features[i]) << i;
    }
}

TEST(HostPoints, KnowEveryGroup) {
    EXPECT_EQ(host_group(relu(8, 8).op), "rows");
    EXPECT_EQ(host_group(Op{MatMul{}}), "products");
    EXPECT_EQ(host_group(Op{Attention{}}), "products");
    EXPECT_EQ(host_group(Op{conv3d(8, 8, 8, 8, 8, Window{})}), "convolutions");
    const DeviceSheet sheet{100_GFLOPS, 10_GBps, 1, 1, 4_B, {}, true};
    EXPECT_FALSE(host_point({Flatten{{2, 2}}, Pass::forward, 4}, sheet));
}

}  // namespace
}  // namespace rehearse
