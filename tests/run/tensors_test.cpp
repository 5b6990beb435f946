// SPDX-License-Identifier: Apache-2.0
#include "run/tensors.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <set>

#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

Tensors tensors_of(const Schedule& schedule, std::uint64_t seed = 1) {
    std::vector<const kernels::Backend*> backends;
    for (const Layer& layer : schedule.network.layers) {
        const bool computes = has_pass(layer.op, Pass::forward);
        backends.push_back(computes ? &kernels::choose(layer.op, schedule.batch_per_rank, DataType::f32) : nullptr);
    }
    return {schedule, schedule.classes[0], RankIndex{0}, backends, seed};
}

std::vector<std::span<float>> spans_of(const LayerTensors& layer) {
    return {layer.output, layer.diff, layer.workspace, layer.state};
}

TEST(Tensors, GradientsOfABucketLieTogetherInItsOrder) {
    const Schedule schedule = test::schedule_of(models::load_network("lenet5"), "data:bucket=1kB", 1, 2);
    ASSERT_GT(schedule.classes[0].part.buckets.size(), 2U);
    const Tensors tensors = tensors_of(schedule);
    const float* next = tensors.gradients().data();
    for (std::size_t b = 0; b < schedule.classes[0].part.buckets.size(); ++b) {
        const BucketTensors& bucket = tensors.bucket(static_cast<int>(b));
        EXPECT_EQ(bucket.gradients.data(), next);
        EXPECT_EQ(static_cast<std::int64_t>(bucket.gradients.size()), schedule.classes[0].part.buckets[b].elements);
        EXPECT_EQ(bucket.momentum.size(), bucket.gradients.size());
        for (const int layer : schedule.classes[0].part.buckets[b].layers) {
            EXPECT_EQ(tensors.layer(layer).gradients.data(), next);
            EXPECT_EQ(tensors.layer(layer).weights.data() - tensors.weights().data(),
                      next - tensors.gradients().data());
            next += tensors.layer(layer).gradients.size();
        }
    }
    EXPECT_EQ(next, tensors.gradients().data() + tensors.gradients().size());
    EXPECT_EQ(tensors.weights().size(), 61706U);
}

TEST(Tensors, AFlattenIsAViewAndNothingElseOverlaps) {
    const Schedule schedule = test::schedule_of(test::branches(), "data", 1, 3);
    const Tensors tensors = tensors_of(schedule);
    std::set<float> marks;
    float mark = 0;
    for (std::size_t i = 0; i < schedule.network.layers.size(); ++i) {
        const LayerTensors& layer = tensors.layer(static_cast<int>(i));
        EXPECT_EQ(static_cast<std::int64_t>(layer.output.size()), 3 * elements(schedule.network.layers[i].output));
        if (std::holds_alternative<Flatten>(schedule.network.layers[i].op)) {
            const int input = schedule.network.layers[i].inputs[0];
            EXPECT_EQ(tensors.stored_as(static_cast<int>(i)), input);
            EXPECT_EQ(layer.output.data(), tensors.layer(input).output.data());
            EXPECT_EQ(layer.diff.data(), tensors.layer(input).diff.data());
            continue;
        }
        for (const std::span<float> tensor : spans_of(layer)) {
            std::ranges::fill(tensor, ++mark);
        }
    }
    mark = 0;
    for (std::size_t i = 0; i < schedule.network.layers.size(); ++i) {
        if (std::holds_alternative<Flatten>(schedule.network.layers[i].op)) continue;
        const LayerTensors& layer = tensors.layer(static_cast<int>(i));
        for (const std::span<float> tensor : spans_of(layer)) {
            EXPECT_THAT(tensor, testing::Each(++mark));
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
        }
    }
}

TEST(Tensors, OnlyWhatTheBackwardPassNeedsHasAGradient) {
    const Schedule schedule = test::schedule_of(test::branches(), "data", 1, 3);
    const Tensors tensors = tensors_of(schedule);
    for (std::size_t i = 0; i < schedule.network.layers.size(); ++i) {
        const std::string& name = schedule.network.layers[i].name;
        EXPECT_EQ(tensors.layer(static_cast<int>(i)).diff.empty(), name == "input" || name == "pool") << name;
    }
}

// fp16 has everything in f16; mixed keeps and updates f32 weights of which layers read a rounded copy.
TEST(Tensors, HaveTheTypesOfThePrecision) {
    const Network network = models::load_network("lenet5");
    const auto make = [&](Precision precision) {
        return test::schedule_of(network, "data", 1, 2, Optimizer::sgd, precision);
    };
    const Schedule half = make(Precision::fp16), mixed = make(Precision::mixed);
    const Tensors in_half = tensors_of(half), in_both = tensors_of(mixed);
    const int loss = static_cast<int>(network.layers.size()) - 1;
    for (const Tensors* tensors : {&in_half, &in_both}) {
        EXPECT_EQ(tensors->layer(1).output.type(), DataType::f16);
        EXPECT_EQ(tensors->layer(1).weights.type(), DataType::f16);
        EXPECT_EQ(tensors->gradients().type(), DataType::f16);
        EXPECT_EQ(tensors->layer(loss).output.type(), DataType::f32) << "small probabilities vanish in f16";
    }
    EXPECT_EQ(in_half.weights().type(), DataType::f16);
    EXPECT_TRUE(in_half.bucket(0).copy.empty());
    ASSERT_EQ(in_both.weights().type(), DataType::f32);
    EXPECT_EQ(in_both.bucket(0).momentum.type(), DataType::f32);
    const std::vector<float> master = floats_of(in_both.parameters_of(1).weights),
                             read = floats_of(in_both.layer(1).weights);
    ASSERT_EQ(master.size(), read.size());
    for (std::size_t i = 0; i < master.size(); ++i) EXPECT_EQ(read[i], static_cast<float>(Float16{master[i]}));
}

TEST(Weights, AreTheSameHoweverTheyAreBucketed) {
    const Network network = models::load_network("lenet5");
    const Schedule one = test::schedule_of(network, "data", 1, 1);
    const Schedule many = test::schedule_of(network, "data:bucket=1kB", 1, 1);
    const Tensors a = tensors_of(one), b = tensors_of(many), c = tensors_of(one, 2);
    for (int i = 0; i < static_cast<int>(network.layers.size()); ++i) {
        EXPECT_EQ(floats_of(a.layer(i).weights), floats_of(b.layer(i).weights));
    }
    EXPECT_NE(floats_of(a.weights()), floats_of(c.weights()));
}

// Channels 10 to 13 of a mean and 20 to 23 of a variance: each of two ranks that share the channels has its own.
TEST(Tensors, RunningStatisticsOfAFileAreCutAsChannelsAre) {
    models::NetworkBuilder b("cut", {2, 4, 4});
    const int conv = b.conv("conv", models::NetworkBuilder::input, 4, models::square(3, 1, 1));
    const int norm = b.batch_norm("bn", conv);
    b.loss(b.dense("fc", b.flatten("flatten", b.relu("relu", norm)), 3));
    Network network = b.build();
    network.layers[static_cast<std::size_t>(norm)].given =
        std::make_shared<const Given>(Given{.state = {10, 11, 12, 13, 20, 21, 22, 23}});
    const Schedule schedule = test::schedule_of(network, "tensor=2", 2, 1);
    std::vector<std::vector<float>> found;
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        const RankClass& own = schedule.classes[static_cast<std::size_t>(class_of(schedule, rank))];
        std::vector<const kernels::Backend*> backends;
        for (const Layer& layer : own.part.network.layers) {
            const bool computes = has_pass(layer.op, Pass::forward);
            backends.push_back(computes ? &kernels::choose(layer.op, 1, DataType::f32) : nullptr);
        }
        const Tensors tensors{schedule, own, rank, backends, 1};
        for (std::size_t i = 0; i < own.part.network.layers.size(); ++i) {
            const auto state = tensors.layer(static_cast<int>(i)).state;
            if (!state.empty()) found.emplace_back(state.begin(), state.end());
        }
    }
    EXPECT_EQ(found, (std::vector<std::vector<float>>{{10, 11, 20, 21}, {12, 13, 22, 23}}));
}

TEST(Weights, HaveTheVarianceOfHe) {
    const MatMul dense{.m = 1, .n = 500, .k = 200};
    std::vector<float> weights(100500);
    initialise(dense, 3, weights);
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < 100000; ++i) {
        mean += weights[i] / 1e5;
        square += std::pow(static_cast<double>(weights[i]), 2) / 1e5;
    }
    // Variance 2 / 200. Of 1e5 draws the mean errs by 0.1 / sqrt(1e5) = 3e-4, the variance by sqrt(2 / 1e5) = 0.45 %.
    EXPECT_NEAR(mean, 0, 5 * 3.2e-4);
    EXPECT_NEAR(square, 0.01, 0.01 * 5 * 0.0045);
    for (std::size_t i = 100000; i < weights.size(); ++i) ASSERT_EQ(weights[i], 0);
    std::vector<float> norm(8, -1);
    initialise(BatchNorm{4, 2, 2}, 3, norm);
    EXPECT_EQ(norm, (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace rehearse::run
