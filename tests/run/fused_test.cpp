// SPDX-License-Identifier: Apache-2.0
// Training of fused networks, run under mpirun with 1 and 2 ranks: the same gradients in fewer layers.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "models/builder.hpp"
#include "models/fuse.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using models::NetworkBuilder;

// Two residual blocks, the second with a normalized shortcut, and every reader twice.
Network residual() {
    NetworkBuilder b("residual", {3, 8, 8});
    int x = b.relu("relu0", b.batch_norm("bn0", b.conv("conv0", NetworkBuilder::input, 16, models::square(3, 1, 1))));
    int y = b.relu("a.relu1", b.batch_norm("a.bn1", b.conv("a.conv1", x, 16, models::square(3, 1, 1))));
    y = b.batch_norm("a.bn2", b.conv("a.conv2", y, 16, models::square(3, 1, 1)));
    x = b.relu("a.relu2", b.add("a.add", y, x));
    y = b.relu("b.relu1", b.batch_norm("b.bn1", b.conv("b.conv1", x, 24, models::square(3, 2, 1))));
    y = b.batch_norm("b.bn2", b.conv("b.conv2", y, 24, models::square(3, 1, 1)));
    const int shortcut = b.batch_norm("b.down.bn", b.conv("b.down.conv", x, 24, models::square(1, 2)));
    x = b.relu("b.relu2", b.add("b.add", y, shortcut));
    b.loss(b.dense("fc", b.flatten("flatten", b.global_average_pool("pool", x)), 5));
    return b.build();
}

// Convolutions with bias and ReLU, max pools, dense layers with ReLU, GELU and dropout.
Network plain() {
    NetworkBuilder b("plain", {3, 8, 8});
    int x = b.relu("relu1", b.conv("conv1", NetworkBuilder::input, 8, models::square(3, 1, 1), true));
    x = b.relu("relu2", b.conv("conv2", x, 18, models::square(3, 1, 1), true));
    x = b.flatten("flatten", b.max_pool("pool", x, models::square(2, 2)));
    x = b.dropout("drop", b.relu("relu3", b.dense("fc1", x, 40)), 0.5);
    x = b.layer("gelu", Activation{Nonlinearity::gelu, {20}}, {b.dense("fc2", x, 20)});
    b.loss(b.dense("fc3", x, 5));
    return b.build();
}

// Of each layer, by its name up to what was joined to it: buckets may hold fused layers in another order.
std::map<std::string, std::vector<float>> by_layer(const Schedule& schedule, std::span<const float> gradients) {
    std::map<std::string, std::vector<float>> layers;
    std::size_t at = 0;
    for (const Bucket& bucket : schedule.classes[0].part.buckets) {
        for (const int index : bucket.layers) {
            const Layer& layer = schedule.network.layers[static_cast<std::size_t>(index)];
            const auto own = gradients.subspan(at, static_cast<std::size_t>(parameters(layer.op)));
            layers[layer.name.substr(0, layer.name.find('+'))] = {own.begin(), own.end()};
            at += own.size();
        }
    }
    EXPECT_EQ(at, gradients.size());
    return layers;
}

void expect_same_gradients(const Network& network, const std::string& backend, const std::string& algorithm,
                           double layers, double terms) {
    SCOPED_TRACE(network.name + " by " + backend + " " + algorithm);
    const Communicator world = Communicator::world();
    const Options options{.steps = 1, .backend = backend, .algorithm = algorithm, .check_gradients = true};
    const auto trained = [&](const Network& each) {
        const Schedule schedule = test::schedule_of(each, "data:bucket=20kB", world.size(), 4);
        const Result result = train_on(world, schedule, options, {}, {});
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        return by_layer(schedule, result.gradients);
    };
    const auto separate = trained(network);
    const auto together = trained(models::fuse(network, models::parse_fusions("on")));
    ASSERT_EQ(together.size(), separate.size());
    double apart = 0, size = 0;
    for (const auto& [name, gradient] : separate) {
        const auto& other = together.at(name);
        ASSERT_EQ(other.size(), gradient.size()) << name;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            apart += std::pow(static_cast<double>(other[i]) - gradient[i], 2);
            size += std::pow(static_cast<double>(gradient[i]), 2);
        }
    }
    ASSERT_GT(size, 0);
    // Two f32 evaluations of a chain of layers, forward and backward, whose sums have at most `terms` terms: each layer
    // adds a relative error of about terms * 2^-24 (Higham 2002, section 3.1) in each of the two.
    EXPECT_LE(std::sqrt(apart / size), 2 * 2 * layers * terms * 0x1p-24);
}

// As chosen, by plain loops, and by Winograd's algorithm where it applies and this build has it.
void expect_same_gradients(const Network& network, double layers, double terms) {
    expect_same_gradients(network, "", "", layers, terms);
    expect_same_gradients(network, "reference", "", layers, terms);
    for (const kernels::Backend* backend : kernels::backends()) {
        if (backend->algorithm() == "winograd2") expect_same_gradients(network, "cpu", "winograd2", layers, terms);
    }
}

// The longest sums: 24 channels of 3 x 3 taps, and 64 pixels of 4 samples.
TEST(Fused, ResidualNetworkHasTheGradientsOfTheSeparateOne) { expect_same_gradients(residual(), 14, 256); }

// 18 channels of 16 pixels into fc1, and 64 pixels of 4 samples.
TEST(Fused, PlainNetworkHasTheGradientsOfTheSeparateOne) { expect_same_gradients(plain(), 10, 288); }

TEST(Fused, NetworkBeginsWithTheSameWeightsAndLearnsTheSame) {
    const Communicator world = Communicator::world();
    const auto losses = [&](const Network& network) {
        const Options options{.steps = 3, .learning_rate = 0.01F};
        std::vector<double> found;
        const Schedule schedule = test::schedule_of(network, "data", world.size(), 4);
        for (const StepReport& step : train_on(world, schedule, options, {}, {}).steps) found.push_back(step.loss);
        return found;
    };
    for (const Network& network : {residual(), plain()}) {
        const auto separate = losses(network), together = losses(models::fuse(network, models::parse_fusions("on")));
        ASSERT_EQ(together.size(), separate.size());
        // The bound of the gradients, above, and a factor of ten for what three steps make of it.
        for (std::size_t i = 0; i < separate.size(); ++i) EXPECT_NEAR(together[i], separate[i], 1e-2 * separate[i]);
    }
}

}  // namespace
}  // namespace rehearse::run
