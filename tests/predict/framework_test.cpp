// SPDX-License-Identifier: Apache-2.0
#include "predict/framework.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rehearse::predict {
namespace {

models::FrameworkProfile profile(const std::string& name, const std::string& value) {
    return {.name = "mine", .summary = "", .settings = {{"issue", "10us", "measured"}, {name, value, "measured"}}};
}

TEST(HostIssue, OfAKindGoesBeforeThatOfAll) {
    const Op conv = Conv{3, 8, 8, 4, Window{}}, product = MatMul{8, 8, 8};
    const Op norm = BatchNorm{.channels = 4, .height = 8, .width = 8}, add = Add{{64}};
    const HostIssue issue = issue_of(profile("issue_convolution", "70us"));
    EXPECT_DOUBLE_EQ(issue.of(conv).value, 70e-6);
    for (const Op& op : {product, norm, add}) EXPECT_DOUBLE_EQ(issue.of(op).value, 10e-6);
    EXPECT_DOUBLE_EQ(issue_of(profile("issue_product", "50us")).of(product).value, 50e-6);
    EXPECT_DOUBLE_EQ(issue_of(profile("issue_product", "50us")).of(Attention{2, 8, 8, 4}).value, 50e-6);
    EXPECT_DOUBLE_EQ(issue_of(profile("issue_normalization", "40us")).of(norm).value, 40e-6);
    EXPECT_EQ(issue_of(models::load_framework("rehearse")), HostIssue{});
    EXPECT_FALSE(Framework{.issue = issue}.plain());
}

TEST(HostIssue, IsNoNegativeTime) {
    try {
        static_cast<void>(issue_of(profile("issue_product", "-1us")));
        FAIL() << "a time below 0";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("issue_product"));
    }
}

// A product of a few values takes less than its host needs to issue it; a large one takes as long as without.
TEST(HostIssue, IsTheLeastThatAKernelTakes) {
    DeviceClass device;
    device.peak[DataType::f32] = {FlopRate{1e12}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e12}, "sheet"};
    const Framework framework{.issue = {.product = Seconds{50e-6}}};
    const auto time = [&](std::int64_t size) {
        const Problem problem{MatMul{size, size, size, false}, Pass::forward, 1, DataType::f32};
        return with_overheads(price(problem, device), problem, device, framework).time.value;
    };
    EXPECT_DOUBLE_EQ(time(8), 50e-6);
    EXPECT_DOUBLE_EQ(time(1000), 2e9 / 1e12);
}

// Images of 64 x 56 x 56 values, two a batch, in and out: read and written once more in f32, twice in f16, but not
// those of 1 x 1 filters. Channel by channel only 16-bit ones are turned, of any filter.
TEST(ImageLayouts, AreTurnedForTheLibrary) {
    DeviceClass device;
    device.peak[DataType::f32] = device.peak[DataType::f16] = {FlopRate{1e15}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e12}, "sheet"};
    const auto more = [&](const std::string& layout, DataType type, Window window) {
        Framework framework = framework_of(profile("layout", layout), Optimizer::sgd);
        framework.issue = {};
        const Problem problem{Conv{64, 56, 56, 64, window}, Pass::forward, 2, type};
        const Price known = price(problem, device);
        return (with_overheads(known, problem, device, framework).time - known.time).value;
    };
    const double values = 2 * 64 * 56 * 56.0;
    const Window three{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    EXPECT_NEAR(more("nhwc-turned", DataType::f32, three), 2 * 2 * 4 * values / 1e12, 1e-12);
    EXPECT_NEAR(more("nhwc-turned", DataType::f16, three), 2 * 2 * 2 * 2 * values / 1e12, 1e-12);
    EXPECT_NEAR(more("nhwc-turned", DataType::f16, {}), 0, 1e-12);
    EXPECT_NEAR(more("nchw", DataType::f32, three), 0, 1e-12);
    EXPECT_NEAR(more("nchw", DataType::f16, three), 2 * 2 * 2 * values / 1e12, 1e-12);
    EXPECT_NEAR(more("nchw", DataType::f16, {}), 2 * 2 * 2 * values / 1e12, 1e-12);
    EXPECT_THROW(framework_of(profile("layout", "nhwc"), Optimizer::sgd), InputError);
}

}  // namespace
}  // namespace rehearse::predict
