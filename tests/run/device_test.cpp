// SPDX-License-Identifier: Apache-2.0
// Training on a device whose part the host plays as late as a GPU may be: nothing is computed there before somebody
// waits for it, so a wait that is missing shows as a wrong gradient. Run under mpirun with 1 and 2 ranks.
#include <gmock/gmock.h>

#include <cmath>

#include "core/error.hpp"
#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/reference/backend.hpp"
#include "run/trainer.hpp"
#include "tests/kernels/comm/mpi_main.hpp"
#include "tests/kernels/cuda_host.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;

// Our own convolutions and layers; what they do not run, the reference runs on the same memory.
struct LateDevice {
    kernels::cuda::LateHostEngine engine;
    std::vector<std::unique_ptr<kernels::Backend>> owned = kernels::cuda::convolutions(engine);
    std::unique_ptr<kernels::Device> device;

    LateDevice() {
        owned.push_back(kernels::cuda::layers(engine));
        std::vector<const kernels::Backend*> own;
        for (const auto& backend : owned) own.push_back(backend.get());
        device = kernels::cuda::device(engine, own, {&kernels::reference::backend()});
    }
};

double difference(std::span<const float> a, std::span<const float> b) {
    EXPECT_EQ(a.size(), b.size());
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        apart += std::pow(static_cast<double>(a[i]) - b[i], 2);
        size += std::pow(static_cast<double>(b[i]), 2);
    }
    EXPECT_GT(size, 0);
    return std::sqrt(apart / size);
}

Result train_with(const Schedule& schedule, Options options, kernels::Device* device) {
    const Schedule alone = test::schedule_of(schedule.network, "data", 1, micro_batch_size(schedule));
    options.alone = std::make_shared<const Schedule>(alone);
    if (device == nullptr) options.backend = "reference";
    return train_on(Communicator::world(), schedule, options, {}, {}, device);
}

// The same losses, gradients and weights as by plain loops on the host. Both round each sum of at most some thousand
// terms to f32 a few times; after three steps of a network of about ten layers they are 2^-13 apart at the most.
void expect_the_hosts(const Network& network, std::string_view plan, std::int64_t batch, double tolerance = 0x1p-13,
                      Precision precision = Precision::fp32) {
    SCOPED_TRACE(network.name + " by " + std::string{plan});
    const Schedule schedule =
        test::schedule_of(network, plan, Communicator::world().size(), batch, Optimizer::sgd, precision);
    LateDevice late;
    const Options options{.steps = 3, .loss_scale = 64, .check_gradients = true};
    const Result device = train_with(schedule, options, late.device.get());
    const Result host = train_with(schedule, options, nullptr);
    EXPECT_LE(device.gradient_error, device.gradient_tolerance);
    for (std::size_t i = 0; i < host.steps.size(); ++i) {
        EXPECT_NEAR(device.steps[i].loss, host.steps[i].loss, tolerance * std::abs(host.steps[i].loss)) << "step " << i;
    }
    EXPECT_LE(difference(device.weights, host.weights), tolerance);
}

TEST(Device, TrainsAsTheHostDoes) {
    for (const Network& network : {test::branches(), test::volumes(), test::encoder_decoder(), test::dropping()}) {
        expect_the_hosts(network, "data:bucket=1kB", 4);
    }
}

TEST(Device, TrainsATransformerWithAttentionLeftToTheHost) {
    expect_the_hosts(test::tiny_transformer(models::TransformerKind::encoder), "data:bucket=1kB", 2);
}

TEST(Device, TakesMicroBatchesAndSharesOfTheWeights) {
    const std::int64_t ranks = Communicator::world().size();
    expect_the_hosts(test::branches(), "data:microbatches=2", 4);
    if (ranks == 1) return;
    for (const char* plan :
         {"data:zero=1", "data:zero=2:bucket=1kB", "data:zero=3:bucket=1kB", "pipe=2:microbatches=2"}) {
        expect_the_hosts(test::volumes(), plan, 4);
    }
}

// Weights in f32, gradients in f16 that are divided by the scale: what both round to 11 bits may differ in the last
// one.
TEST(Device, TrainsInMixedPrecision) {
    expect_the_hosts(test::branches(), "data:bucket=1kB", 4, 0x1p-8, Precision::mixed);
}

TEST(Device, SaysWhatItLeavesToTheHost) {
    const Schedule schedule = test::schedule_of(test::branches(), "data", 1, 2);
    LateDevice late;
    kernels::Wish wish;
    wish.device = late.device.get();
    const Program program{schedule, 0, wish, 1, {}};
    EXPECT_EQ(program.placed().on_host, 1);
    EXPECT_THAT(program.placed().kinds, testing::ElementsAre("matmul"));
}

TEST(Device, ThatIsNotThereIsRefusedWithTheReason) {
    EXPECT_THROW(kernels::device("tpu"), InputError);
    EXPECT_EQ(kernels::device("cpu"), nullptr);
#if REHEARSE_HAS_CUDA
    if (kernels::device("cuda")->refusal().empty()) GTEST_SKIP() << "there is a GPU";
    Options options;
    options.device = "cuda";
    const Schedule schedule = test::schedule_of(test::branches(), "data", Communicator::world().size(), 2);
    try {
        train_on(Communicator::world(), schedule, options, {}, {});
        FAIL() << "there is no GPU";
    } catch (const BackendError& error) {
        EXPECT_THAT(error.what(), testing::StartsWith("--device cuda: no GPU: "));
    }
#else
    EXPECT_THROW(kernels::device("cuda"), BackendError);
#endif
}

}  // namespace
}  // namespace rehearse::run
