// SPDX-License-Identifier: Apache-2.0
// Training on a device whose part the host plays as late as a GPU may be: nothing is computed there before somebody
// waits for it, so a wait that is missing shows as a wrong gradient. Run under mpirun with 1 and 2 ranks.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/reference/backend.hpp"
#include "run/methods/learners.hpp"
#include "run/trainer.hpp"
#include "tests/kernels/cuda_host.hpp"
#include "tests/run/checkpoints.hpp"
#include "tests/run/difference.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using test::difference;

// Our own convolutions and layers; what they do not run, the reference runs on the same memory.
template <typename Engine = kernels::cuda::LateHostEngine>
struct LateDevice {
    Engine engine;
    std::vector<std::unique_ptr<kernels::Backend>> owned = kernels::cuda::convolutions(engine);
    std::unique_ptr<kernels::Device> device;

    LateDevice() {
        owned.push_back(kernels::cuda::layers(engine));
        std::vector<const kernels::Backend*> own;
        for (const auto& backend : owned) own.push_back(backend.get());
        device = kernels::cuda::device(engine, own, {&kernels::reference::backend()});
    }
};

Result train_with(const Schedule& schedule, Options options, kernels::Device* device) {
    const Schedule alone = test::schedule_of(schedule.network, "data", 1, micro_batch_size(schedule));
    options.single_rank = std::make_shared<const Schedule>(alone);
    if (device == nullptr) options.backend = "reference";
    return train_on(Communicator::world(), schedule, options, {}, {}, device);
}

// The same losses, gradients and weights as by plain loops on the host. Both round each sum of at most some thousand
// terms to f32 a few times; after three steps of a network of about ten layers they are 2^-13 apart at the most.
template <typename Late>
void expect_the_hosts(const Network& network, std::string_view plan, std::int64_t batch, Late& late,
                      double tolerance = 0x1p-13, Precision precision = Precision::fp32,
                      Optimizer optimizer = Optimizer::sgd) {
    SCOPED_TRACE(network.name + " by " + std::string{plan});
    const Schedule schedule =
        test::schedule_of(network, plan, Communicator::world().size(), batch, optimizer, precision);
    const Options options{.steps = 3, .loss_scale = 64, .check_gradients = true};
    const Result device = train_with(schedule, options, late.device.get());
    const Result host = train_with(schedule, options, nullptr);
    EXPECT_LE(device.gradient_error, device.gradient_tolerance) << "on the host: " << host.gradient_error;
    for (std::size_t i = 0; i < host.steps.size(); ++i) {
        EXPECT_NEAR(device.steps[i].loss, host.steps[i].loss, tolerance * std::abs(host.steps[i].loss)) << "step " << i;
    }
    EXPECT_LE(difference(device.weights, host.weights), tolerance);
}

void expect_the_hosts(const Network& network, std::string_view plan, std::int64_t batch, double tolerance = 0x1p-13,
                      Precision precision = Precision::fp32, Optimizer optimizer = Optimizer::sgd) {
    LateDevice<> late;
    expect_the_hosts(network, plan, batch, late, tolerance, precision, optimizer);
}

TEST(Device, TrainsAsTheHostDoes) {
    for (const Network& network : {test::branches(), test::volumes(), test::encoder_decoder(), test::dropping()}) {
        expect_the_hosts(network, "data:bucket=1kB", 4);
    }
}

TEST(Device, TrainsATransformer) {
    expect_the_hosts(test::tiny_transformer(models::TransformerKind::encoder), "data:bucket=1kB", 2);
}

// Norms of whole tensors in f32 there, in double here. Without a bias before batch normalization, whose gradient is
// nothing but rounding, of which Adam takes the sign.
TEST(Device, StepsByAdamAndLamb) {
    for (const Optimizer optimizer : {Optimizer::adam, Optimizer::lamb}) {
        expect_the_hosts(test::shrinking(), "data", 4, 0x1p-10, Precision::fp32, optimizer);
    }
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

// Graphs of kernels: by SGD made once, started in each later step; with masks or moments of a step's own renewed each
// time. The losses, gradients and weights stay the host's, and no kernel runs outside of a graph after the first step.
TEST(Device, TrainsByGraphs) {
    const auto expect = [](const Network& network, std::string_view plan, Optimizer optimizer, Precision precision,
                           double tolerance) {
        SCOPED_TRACE(network.name + " by " + std::string{plan});
        const std::int64_t ranks = Communicator::world().size();
        const Schedule schedule = test::schedule_of(network, plan, ranks, 4, optimizer, precision);
        Options options{.steps = 4, .loss_scale = 64};
        const Result host = train_with(schedule, options, nullptr);
        options.graphs = true;
        LateDevice<> late;
        const Result device = train_with(schedule, options, late.device.get());
        EXPECT_LE(difference(device.weights, host.weights), tolerance);
        for (std::size_t i = 0; i < host.steps.size(); ++i)
            EXPECT_NEAR(device.steps[i].loss, host.steps[i].loss, tolerance * std::abs(host.steps[i].loss));
        EXPECT_GT(device.timeline.events.size(), 0U);
        return std::pair{late.engine.captures, late.engine.replays};
    };
    const auto [made, started] = expect(test::branches(), "data", Optimizer::sgd, Precision::fp32, 0x1p-13);
    EXPECT_EQ(started, 3 * made) << "steps 1 to 3";
    if (Communicator::world().size() == 1) {
        EXPECT_EQ(made, 1);
    } else {
        EXPECT_GE(made, 2) << "the sum of gradients lies between";
    }
    const auto [masked, masked_started] = expect(test::dropping(), "data", Optimizer::sgd, Precision::fp32, 0x1p-13);
    EXPECT_EQ(masked, masked_started);
    expect(test::shrinking(), "data", Optimizer::adam, Precision::fp32, 0x1p-10);
    expect(test::branches(), "data:bucket=1kB", Optimizer::sgd, Precision::mixed, 0x1p-8);
    expect(test::branches(), "data:microbatches=2", Optimizer::sgd, Precision::fp32, 0x1p-13);
}

TEST(Device, MakesNoGraphsOfWhatTheHostComputes) {
    LateDevice<> late;
    Options options;
    options.graphs = true;
    const std::int64_t ranks = Communicator::world().size();
    const auto why = [&](const Network& network, kernels::Device* device) {
        try {
            train_with(test::schedule_of(network, "data", ranks, 2), options, device);
        } catch (const InputError& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    EXPECT_THAT(why(test::tiny_dlrm(), late.device.get()),
                testing::HasSubstr("layers are left to the host (embeddingbag"));
    EXPECT_THAT(why(test::branches(), nullptr), testing::HasSubstr("--graphs: of a GPU's kernels"));
}

// Each rank has a device of its own, and these sum by themselves.
class Group final : public kernels::DeviceGroup {
public:
    explicit Group(int& sums) : ranks_(Communicator::world().split(0, Communicator::world().rank())), sums_(sums) {}
    void all_reduce(kernels::View data) override {
        const auto count = static_cast<std::int64_t>(data.size());
        const Collective sum{CollectiveKind::all_reduce, {.name = "doubling"}, {ranks_.size(), ranks_.size()}, count};
        ranks_.run({sum, ranks_.rank()}, {data.type(), {static_cast<std::byte*>(data.bytes()), data.size_bytes()}});
        ++sums_;
    }
    bool test() override { return true; }

private:
    Communicator ranks_;
    int& sums_;
};

class GroupingEngine final : public kernels::cuda::LateHostEngine {
public:
    std::string identity() const override { return std::to_string(Communicator::world().rank()); }
    std::string group_refusal() const override { return {}; }
    std::vector<std::byte> group_name() override { return {std::byte{7}}; }
    std::unique_ptr<kernels::DeviceGroup> join(std::span<const std::byte> name, std::int64_t rank,
                                               std::int64_t size) override {
        EXPECT_EQ(name.front(), std::byte{7});
        EXPECT_EQ(rank, Communicator::world().rank());
        EXPECT_EQ(size, Communicator::world().size());
        return std::make_unique<Group>(sums);
    }
    int sums = 0;
};

TEST(Device, SumsGradientsWithoutTheHostsWhereEachRankHasItsOwn) {
    LateDevice<GroupingEngine> late;
    expect_the_hosts(test::branches(), "data:bucket=1kB", 4, late);
    if (Communicator::world().size() > 1) {
        EXPECT_GE(late.engine.sums, 6) << "two buckets or more, three steps";
    } else {
        EXPECT_EQ(late.engine.sums, 0);
    }
}

// Learners of a sample or two each learn what one learns with all their samples: no batch normalization is in these
// networks, whose statistics would be of fewer samples.
TEST(Learners, OnStreamsOfOneDeviceLearnWhatOneWithAllTheirSamplesDoes) {
    for (const Network& network : {test::dropping(), test::shrinking()}) {
        SCOPED_TRACE(network.name);
        const Options options{.steps = 3};
        const auto train_as = [&](std::int64_t learners) {
            LateDevice<> late;
            const Schedule schedule = test::schedule_of(network, "data:bucket=1kB", learners, 4 / learners);
            return train_learners(schedule, options, {}, *late.device);
        };
        const Result one = train_as(1);
        for (const std::int64_t learners : {2, 4}) {
            const Result several = train_as(learners);
            EXPECT_LE(difference(several.weights, one.weights), 0x1p-13);
            for (std::size_t i = 0; i < one.steps.size(); ++i) {
                EXPECT_NEAR(several.steps[i].loss, one.steps[i].loss, 0x1p-13 * one.steps[i].loss);
            }
        }
    }
}

TEST(Learners, RefuseWhatIsNotDataParallelism) {
    LateDevice<> late;
    const auto why = [&](std::string_view plan, const Options& options, Precision precision = Precision::fp32) {
        try {
            const Schedule schedule = test::schedule_of(test::dropping(), plan, 2, 4, Optimizer::sgd, precision);
            train_learners(schedule, options, {}, *late.device);
        } catch (const InputError& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    EXPECT_THAT(why("data:zero=1", {}), testing::HasSubstr("neither a kernel"));
    EXPECT_THAT(why("pipe=2", {}), testing::HasSubstr("whole networks, not 'pipe=2'"));
    EXPECT_THAT(why("data", {.check_gradients = true}), testing::HasSubstr("--check-gradients"));
    EXPECT_THAT(why("data", {.target_loss = 0.1}), testing::HasSubstr("--target-loss"));
    EXPECT_THAT(why("data", {.save = "w.h5"}), testing::HasSubstr("--save:"));
    EXPECT_THAT(why("data", {.save_gradients = "g.h5"}), testing::HasSubstr("--save-gradients:"));
    EXPECT_THAT(why("data", {.checkpoint = "folder"}), testing::HasSubstr("--checkpoint"));
    EXPECT_THAT(why("data", {.resume = true}), testing::HasSubstr("--resume"));
    EXPECT_THAT(why("data", {.stop_file = "stop"}), testing::HasSubstr("--stop-file"));
    EXPECT_THAT(why("data", {.first_idle = true}), testing::HasSubstr("--assign"));
    EXPECT_THAT(why("data", {.learner_paces = {1, 2}}), testing::HasSubstr("--learner-paces"));
    EXPECT_THAT(why("data", {.by_learners = {nullptr}}), testing::HasSubstr("--tune-learners"));
    EXPECT_THAT(why("data", {}, Precision::tf32), testing::HasSubstr("--precision tf32"));
    EXPECT_EQ(why("data", {}), "");
}

// What an optimizer goes by is asked of learners as of ranks.
TEST(Learners, UpdateByTheFactorsThatAreAskedFor) {
    const auto weights = [](Options options) {
        options.steps = 3;
        LateDevice<> late;
        const Schedule schedule = test::schedule_of(test::dropping(), "data", 2, 2, Optimizer::adam);
        return train_learners(schedule, options, {}, *late.device).weights;
    };
    const std::vector<float> by_default = weights({});
    EXPECT_EQ(weights({}), by_default);
    EXPECT_NE(weights({.second_factor = 0.5F}), by_default);
    EXPECT_NE(weights({.epsilon = 0.1F}), by_default);
}

Network digits() {
    models::NetworkBuilder b("digits", {1, 28, 28});
    b.loss(b.dense("fc", b.flatten("flatten", models::NetworkBuilder::input), 10));
    return b.build();
}

// Of eight digits with another pixel each the first two are learnt, as one rank learns them.
TEST(Learners, TakeSamplesInTheOrderThatIsAskedFor) {
    const test::Folder folder;
    const auto write = [&](const char* name, std::string bytes) {
        std::ofstream{std::filesystem::path{folder.path()} / name, std::ios::binary} << bytes;
    };
    constexpr int count = 8, size = 28 * 28;
    std::string images{"\0\0\x08\x03\0\0\0\x08\0\0\0\x1c\0\0\0\x1c", 16}, labels{"\0\0\x08\x01\0\0\0\x08", 8};
    for (int i = 0; i < count; ++i) {
        images += std::string(i, '\0') + '\xff' + std::string(size - 1 - i, '\0');
        labels += static_cast<char>(i);
    }
    if (Communicator::world().rank() == 0) write("train-images-idx3-ubyte", images);
    if (Communicator::world().rank() == 0) write("train-labels-idx1-ubyte", labels);
    Communicator::world().barrier();
    const auto learnt = [&](bool shuffle) {
        LateDevice<> late;
        const Options options{.steps = 1, .data = "idx:" + folder.path(), .shuffle = shuffle};
        return train_learners(test::schedule_of(digits(), "data", 2, 1), options, {}, *late.device).weights;
    };
    const Options in_order{.steps = 1, .data = "idx:" + folder.path(), .shuffle = false};
    const Result one = train_on(Communicator::self(), test::schedule_of(digits(), "data", 1, 2), in_order, {}, {});
    EXPECT_LE(difference(learnt(false), one.weights), 0x1p-20);
    EXPECT_GT(difference(learnt(true), one.weights), 0x1p-10);
}

TEST(Device, SaysWhatItLeavesToTheHost) {
    const auto placed = [](const Network& network) {
        const Schedule schedule = test::schedule_of(network, "data", 1, 2);
        LateDevice<> late;
        kernels::KernelSelection selection;
        selection.device = late.device.get();
        return Program{schedule, RankIndex{0}, selection, 1, {}}.placed();
    };
    EXPECT_EQ(placed(test::branches()).on_host, 0);
    EXPECT_EQ(placed(test::tiny_transformer(models::TransformerKind::decoder)).on_host, 0);
    EXPECT_EQ(placed(test::encoder_decoder()).on_host, 0);
    EXPECT_THAT(placed(test::tiny_dlrm()).kinds, testing::ElementsAre("embeddingbag", "interaction"));
}

// Before any rank waits for another: on some ranks of these plans nothing is amiss.
TEST(Device, RefusesOnAllRanksAlikeWhatIsKeptOnTheHost) {
    LateDevice<> late;
    const Network tied = test::tiny_transformer(models::TransformerKind::decoder);
    const auto expect_refusal = [&](const Network& network, std::string_view plan, std::string_view why) {
        try {
            train_with(test::schedule_of(network, plan, 2, 4), {}, late.device.get());
            FAIL() << plan;
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr(why));
        }
    };
    expect_refusal(test::branches(), "pipe:schedule=pipedream:microbatches=4", "versions of the weights");
    expect_refusal(tied, "pipe:schedule=gpipe:microbatches=2", "two stages share");
    expect_refusal(test::branches(), "data:learners=2", "rank's learners");
    expect_refusal(test::dropping(), "data:kfac=1", "factors");
    expect_refusal(test::tiny_dlrm(), "data:tables=shared", "rows of its tables");
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
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::StartsWith("--device cuda: no GPU: "));
    }
#else
    EXPECT_THROW(kernels::device("cuda"), InputError);
#endif
}

}  // namespace
}  // namespace rehearse::run
