// SPDX-License-Identifier: Apache-2.0
// Weights and gradients under their layers' names. Run under mpirun with 2 and 4 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/trainer.hpp"
#include "tests/run/checkpoints.hpp"
#include "tests/run/networks_of_every_kind.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using test::Folder;
using test::scheduled;

// By the names of layers; what a layer begins with is what was saved.
TEST(WeightsFile, NamesLayersAndGivesThemBack) {
    const Communicator world = Communicator::world();
    const Folder folder;
    const Schedule schedule = scheduled("data");
    const std::string saved = folder.path() + "/saved.h5", again = folder.path() + "/again.h5";
    Options options{.steps = 2, .learning_rate = 0.01F};
    options.save = saved;
    options.save_gradients = folder.path() + "/gradients.h5";
    const Result result = train_on(world, schedule, options, {}, {});
    world.barrier();
    Schedule next = schedule;
    give_weights(next.network, saved);
    std::size_t given = 0;
    for (const Layer& layer : next.network.layers) {
        if (parameters(layer.op) == 0) continue;
        ASSERT_NE(layer.given, nullptr) << layer.name;
        given += layer.given->weights.size();
    }
    EXPECT_EQ(given, result.weights.size());
    // A step of length 0 leaves them as they are.
    options = {.steps = 1, .seed = 77, .learning_rate = 0};
    options.save = again;
    const Result kept = train_on(world, next, options, {}, {});
    world.barrier();
    EXPECT_EQ(kept.weights, result.weights);
    Network of_gradients = schedule.network;
    give_weights(of_gradients, folder.path() + "/gradients.h5");
    std::vector<float> gradients;
    for (const Layer& layer : of_gradients.layers)
        if (parameters(layer.op) > 0)
            gradients.insert(gradients.end(), layer.given->weights.begin(), layer.given->weights.end());
    std::ranges::sort(gradients);
    std::vector<float> right = result.gradients;
    std::ranges::sort(right);
    EXPECT_EQ(gradients, right);
}

/// What --save-gradients writes, layer by layer; nothing where it writes no file.
std::vector<std::vector<float>> saved_gradients(const char* plan, Precision precision, Options options) {
    const Folder folder;
    options.save_gradients = folder.path() + "/gradients.h5";
    const Schedule schedule = scheduled(plan, Optimizer::sgd, precision);
    const Result result = train_on(Communicator::world(), schedule, options, {}, {});
    Communicator::world().barrier();
    EXPECT_EQ(std::filesystem::exists(options.save_gradients), !result.steps.back().skipped);
    if (result.steps.back().skipped) return {};
    Network network = schedule.network;
    give_weights(network, options.save_gradients);
    std::vector<std::vector<float>> gradients;
    for (const Layer& layer : network.layers)
        if (parameters(layer.op) > 0) gradients.push_back(layer.given->weights);
    return gradients;
}

// Scales are powers of two, and with lag=1 the gradients that are applied are of the step before, whose scale was half
// of the last one. What 16 bits round is a percent.
TEST(WeightsFile, GradientsAreOfTheLossAsItIs) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const auto size = [](const std::vector<float>& of) {
        double sum = 0;
        for (const double value : of) sum += value * value;
        return std::sqrt(sum);
    };
    Options options{.steps = 3, .learning_rate = 0.001F, .loss_scale = 256, .growth_interval = 1};
    for (const char* plan : {"data", "data:lag=1"}) {
        const auto right = saved_gradients(plan, Precision::fp32, options);
        for (const Precision precision : {Precision::mixed, Precision::autocast, Precision::fp16}) {
            SCOPED_TRACE(fmt::format("{} in {}", plan, to_string(precision)));
            const auto scaled = saved_gradients(plan, precision, options);
            ASSERT_EQ(scaled.size(), right.size());
            for (std::size_t i = 0; i < right.size(); ++i)
                EXPECT_NEAR(size(scaled[i]), size(right[i]), 0.05 * size(right[i]) + 1e-6);
        }
    }
    options = {.steps = 1, .loss_scale = 0x1p24F};
    EXPECT_TRUE(saved_gradients("data", Precision::fp16, options).empty()) << "they have overflowed";
}

TEST(WeightsFile, ACheckpointGivesWeightsToo) {
    const Folder folder;
    const Schedule schedule = scheduled("data");
    const Options options{.steps = 1, .learning_rate = 0.01F, .checkpoint = folder.path()};
    train_on(Communicator::world(), schedule, options, {}, {});
    Communicator::world().barrier();
    const Checkpoint checkpoint = load(newest(folder.path()).value(), schedule);
    Network network = schedule.network;
    give_weights(network, newest(folder.path()).value());
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        if (parameters(network.layers[i].op) == 0) continue;
        EXPECT_EQ(network.layers[i].given->weights, checkpoint.layers[i].weights);
    }
    // A layer's only tensor is called otherwise than the checkpoint's data set.
    Network biased{.name = "biased", .layers = {}};
    int last = test::add(biased, "input", Input{{4}}, {});
    last = test::add(biased, "product", MatMul{.m = 1, .n = 3, .k = 4}, {last});
    last = test::add(biased, "shift", Bias{{3}}, {last});
    test::add(biased, "loss", SoftmaxLoss{3}, {last});
    const Folder other;
    const Schedule shifted = test::schedule_of(biased, "data", Communicator::world().size(), 8);
    train_on(Communicator::world(), shifted, {.steps = 1, .checkpoint = other.path()}, {}, {});
    Communicator::world().barrier();
    give_weights(biased, newest(other.path()).value());
    EXPECT_EQ(biased.layers[2].given->weights, load(newest(other.path()).value(), shifted).layers[2].weights);
    network.layers.back().name = "other";
    for (Layer& layer : network.layers) layer.name += "x";
    EXPECT_THROW(give_weights(network, newest(folder.path()).value()), InputError);
}

}  // namespace
}  // namespace rehearse::run
