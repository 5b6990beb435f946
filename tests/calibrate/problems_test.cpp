// SPDX-License-Identifier: Apache-2.0
#include "calibrate/problems.hpp"

#include <gmock/gmock.h>

#include <array>

namespace rehearse::calibrate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A convolution straight on the input, a normalization, a dense layer; 8x8 images with 3 channels.
Network three_layers() {
    const Window window{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    Network network{"three", {}, 0};
    network.layers = {{"input", Input{{3, 8, 8}}, {}, {3, 8, 8}},
                      {"conv", Conv{3, 8, 8, 4, window}, {0}, {4, 8, 8}},
                      {"norm", BatchNorm{4, 8, 8}, {1}, {4, 8, 8}},
                      {"flat", Flatten{{4, 8, 8}}, {2}, {256}},
                      {"dense", MatMul{.m = 1, .n = 10, .k = 256, .bias = false}, {3}, {10}},
                      {"loss", SoftmaxLoss{10}, {4}, {1}}};
    check(network);
    return network;
}

std::vector<std::string> names(const std::vector<Needed>& needed) {
    std::vector<std::string> result;
    for (const auto& [problem, footprint] : needed) result.push_back(to_string(problem));
    return result;
}

TEST(Problems, OfThreeLayersAreTheListMadeByHand) {
    const std::array networks{three_layers()};
    // No gradient of the input image; the normalization's one gradient pass gives both; 108 + 8 + 2560 parameters.
    EXPECT_THAT(names(problems(networks, std::array<std::int64_t, 1>{2})),
                ElementsAre("conv2d:n2c3h8w8k4r3s3:pad1:stride1:f32:forward", "batchnorm:n2c4h8w8:f32:forward",
                            "matmul:n2m1n10k256:f32:forward", "softmaxloss:n2:10:f32:forward",
                            "softmaxloss:n2:10:f32:backward_data", "matmul:n2m1n10k256:f32:backward_weights",
                            "matmul:n2m1n10k256:f32:backward_data", "batchnorm:n2c4h8w8:f32:backward_data",
                            "conv2d:n2c3h8w8k4r3s3:pad1:stride1:f32:backward_weights", "sgd:n1:2676:f32:update"));
}

TEST(Problems, OfTheSameNetworkTwiceAreNoMore) {
    const std::array once{three_layers()};
    const std::array twice{three_layers(), three_layers()};
    const std::array<std::int64_t, 1> batches{4};
    EXPECT_EQ(names(problems(twice, batches)), names(problems(once, batches)));
}

TEST(Problems, OfTwoBatchesShareOnlyTheUpdate) {
    const std::array networks{three_layers()};
    EXPECT_EQ(problems(networks, std::array<std::int64_t, 2>{2, 4}).size(), 9 + 9 + 1);
}

TEST(Problems, OfAScheduleAreItsComputeAndUpdateStepsOnce) {
    const Problem relu{Activation{Nonlinearity::relu, {4}}, Pass::forward, 8};
    const Problem update{SgdUpdate{12}, Pass::update, 1};
    Schedule schedule;
    schedule.classes.resize(2);
    schedule.classes[0].steps = {{"r1", Stream::compute, Compute{LayerIndex{0}, relu, 0}, {}},
                                 {"r2", Stream::compute, Compute{LayerIndex{1}, relu, 0}, {}},
                                 {"sum", Stream::communication, Communicate{}, {}},
                                 {"u", Stream::compute, Update{BucketIndex{0}, update}, {}}};
    schedule.classes[1].steps = {{"r1", Stream::compute, Compute{LayerIndex{0}, relu, 0}, {}}};
    EXPECT_THAT(names(problems(std::span{&schedule, 1})),
                ElementsAre("activation:n8:4:relu:f32:forward", "sgd:n1:12:f32:update"));
}

// 192 + 256 + 256 + 256 + 10 + 1 elements of outputs, as many of gradients; 2676 weights, gradients, momenta.
TEST(Footprint, IsWhatAStepTouches) {
    EXPECT_EQ(footprint(three_layers(), 1), Bytes{4 * (2 * 971 + 3 * 2676)});
    EXPECT_EQ(footprint(three_layers(), 2), Bytes{4 * (4 * 971 + 3 * 2676)});
}

TEST(Footprint, OfTheLargestNetworkCountsWhereTwoHaveTheProblem) {
    Network small{"small", {}, 0};
    small.layers = {{"input", Input{{10}}, {}, {10}}, {"loss", SoftmaxLoss{10}, {0}, {1}}};
    const std::array networks{small, three_layers()};
    const std::vector<Needed> needed = problems(networks, std::array<std::int64_t, 1>{2});
    EXPECT_EQ(to_string(needed.front().problem), "softmaxloss:n2:10:f32:forward");
    EXPECT_EQ(needed.front().footprint, footprint(three_layers(), 2));
}

TEST(Problems, OfNothingAreNone) {
    EXPECT_THAT(problems(std::span<const Schedule>{}), IsEmpty());
    EXPECT_THAT(problems(std::span<const Network>{}, std::array<std::int64_t, 1>{1}), IsEmpty());
}

}  // namespace
}  // namespace rehearse::calibrate
