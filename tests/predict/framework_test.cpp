// SPDX-License-Identifier: Apache-2.0
#include "predict/framework.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/zoo/transformer.hpp"
#include "models/zoo/zoo.hpp"
#include "predict/in_batches.hpp"
#include "schedule/plan.hpp"

namespace rehearse::predict {
namespace {

using namespace rehearse::literals;

models::FrameworkProfile profile(const std::string& name, const std::string& value) {
    return {
        .name = "mine",
        .summary = "",
        .settings = {{"issue", "10us", "measured"}, {"issue_error", "0.3", "guessed"}, {name, value, "by " + name}}};
}

TEST(HostIssue, OfAKindGoesBeforeThatOfAll) {
    const Op conv = Conv{3, 8, 8, 4, Window{}}, product = MatMul{8, 8, 8};
    const Op norm = BatchNorm{.channels = 4, .height = 8, .width = 8}, add = Add{{64}};
    const HostIssue issue = issue_of(profile("issue_convolution", "70us"));
    EXPECT_DOUBLE_EQ(issue.of(conv).time.value, 70e-6);
    for (const Op& op : {product, norm, add}) EXPECT_DOUBLE_EQ(issue.of(op).time.value, 10e-6);
    EXPECT_DOUBLE_EQ(issue_of(profile("issue_product", "50us")).of(product).time.value, 50e-6);
    EXPECT_DOUBLE_EQ(issue_of(profile("issue_product", "50us")).of(Attention{2, 8, 8, 4}).time.value, 50e-6);
    EXPECT_DOUBLE_EQ(issue_of(profile("issue_normalization", "40us")).of(norm).time.value, 40e-6);
    EXPECT_EQ(issue.of(conv), (Issue{70_us, 0.3, "by issue_convolution"}));
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

TEST(HostIssue, IsKnownWithAnError) {
    const models::FrameworkProfile bare{.name = "mine", .summary = "", .settings = {{"issue", "10us", "measured"}}};
    EXPECT_THAT([&] { static_cast<void>(issue_of(bare)); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr("issue has no issue_error beside it")));
    models::FrameworkProfile wrong = bare;
    wrong.settings.push_back({"issue_error", "-0.1", "measured"});
    EXPECT_THROW(static_cast<void>(issue_of(wrong)), InputError);
}

// What was measured stays so until a framework adds to it: of two samples the one that the host is slower than is the
// host's, and a batch in between, which nobody measured, is modelled with it and without.
TEST(Basis, IsTheHostsWhereItDecides) {
    const auto named = [](std::int64_t batch) {
        return Problem{MatMul{8, 8, 8, false}, Pass::forward, batch, DataType::f32};
    };
    DeviceClass device;
    device.measured[to_string(named(1))] = {10_us, 0.01, 5, "short"};
    device.measured[to_string(named(9))] = {90_us, 0.02, 5, "long", Basis::measured_here};
    const Framework framework{.issue = {.product = {50_us, 0.2, "a stop-watch"}}};
    const auto taken = [&](std::int64_t batch) {
        return with_overheads(price(named(batch), device), named(batch), device, framework);
    };
    EXPECT_EQ(taken(9).basis, Basis::measured_here);
    EXPECT_EQ(taken(9).source, "long");
    EXPECT_EQ(taken(1).basis, Basis::modelled);
    EXPECT_EQ(taken(1).source, "the host's issue: a stop-watch");
    EXPECT_DOUBLE_EQ(taken(1).error, 0.2);
    EXPECT_EQ(taken(8).basis, Basis::modelled);
    EXPECT_DOUBLE_EQ(taken(8).error, 0.02);
}

// A framework that copies each gradient twice before its update, and leaves all else as it was measured.
TEST(Basis, OfAPricedMachineIsThatOfEachPrice) {
    const Machine machine = models::load_machine("summit");
    const Network network = models::load_network("lenet5");
    const Schedule schedule =
        schedule::make_schedule(network, machine, schedule::parse_plan("data"), {.devices = 2, .batch_per_device = 32});
    const Machine with = priced(machine, schedule, {.copies = {.buckets = 2}});
    for (const Step& step : schedule.classes.front().steps) {
        const Problem* problem = problem_of(step);
        if (problem == nullptr) continue;
        SCOPED_TRACE(to_string(*problem));
        const Price before = price(*problem, machine.classes.front()), after = price(*problem, with.classes.front());
        const bool updates = std::holds_alternative<Update>(step.action);
        EXPECT_EQ(after.basis, updates ? Basis::modelled : before.basis);
        EXPECT_EQ(after.source, updates ? "with what the framework adds: " + before.source : before.source);
        EXPECT_EQ(after.time > before.time, updates);
    }
}

// A product of a few values takes less than its host needs to issue it; a large one takes as long as without.
TEST(HostIssue, IsTheLeastThatAKernelTakes) {
    DeviceClass device;
    device.peak[DataType::f32] = {FlopRate{1e12}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e12}, "sheet"};
    const Framework framework{.issue = {.product = {50_us, 0.2, "measured"}}};
    const auto time = [&](std::int64_t size) {
        const Problem problem{MatMul{size, size, size, false}, Pass::forward, 1, DataType::f32};
        return with_overheads(price(problem, device), problem, device, framework).time.value;
    };
    EXPECT_DOUBLE_EQ(time(8), 50e-6);
    EXPECT_DOUBLE_EQ(time(1000), 2e9 / 1e12);
}

// At a peak of 1 TFLOP/s and any memory the price is the operations: of stride 2 four times as many with zeros between,
// on an image of 32 x 32 whose convolution leaves 16 x 16; a transposed convolution forward is the same product.
TEST(DenseGradients, MultiplyTheZerosOfAStride) {
    DeviceClass device;
    device.peak[DataType::f32] = {FlopRate{1e12}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e18}, "sheet"};
    const Framework framework = framework_of(
        {.name = "mine", .summary = "", .settings = {{"strided_gradients", "dense", "counted"}}}, Optimizer::sgd);
    EXPECT_FALSE(framework.plain());
    Window window;
    window.kernel_h = window.kernel_w = 5;
    window.pad_top = window.pad_bottom = window.pad_left = window.pad_right = 2;
    const auto time = [&](const Op& op, Pass pass) {
        const Problem problem{op, pass, 3, DataType::f32};
        return with_overheads(price(problem, device), problem, device, framework).time.value;
    };
    const double once = 2.0 * 3 * 25 * 6 * 7 * 16 * 16 / 1e12;
    const Conv plain{6, 16, 16, 7, window};
    window.stride_h = window.stride_w = 2;
    const Conv strided{6, 32, 32, 7, window};
    const ConvTranspose transposed{
        .channels = 7, .height = 16, .width = 16, .filters = 6, .window = window, .output_pad_h = 1, .output_pad_w = 1};
    EXPECT_DOUBLE_EQ(time(plain, Pass::backward_data), once);
    EXPECT_DOUBLE_EQ(time(strided, Pass::forward), once);
    EXPECT_DOUBLE_EQ(time(strided, Pass::backward_weights), once);
    EXPECT_DOUBLE_EQ(time(strided, Pass::backward_data), 4 * once);
    EXPECT_DOUBLE_EQ(time(transposed, Pass::forward), 4 * once);
    EXPECT_DOUBLE_EQ(time(transposed, Pass::backward_data), once);
}

TEST(DenseGradients, AreSaidByOneWord) {
    EXPECT_THROW(static_cast<void>(framework_of(profile("strided_gradients", "sparse"), Optimizer::sgd)), InputError);
}

// Rate 4 on 10 x 12 pixels, 6 channels to 7 filters of 3 x 3: with 4 pixels on each side 18 x 20, which are 16 images
// of 5 x 5, each convolved to 3 x 3; the gradient of the input has all 5 x 5 of them. At a memory of 1 TB/s and any
// peak the copies count alone: what is read and what is written, once each.
TEST(Dilations, AreConvolutionsOfImagesOfTheirOwn) {
    DeviceClass device;
    device.peak[DataType::f32] = {FlopRate{1e12}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e18}, "sheet"};
    Framework framework = framework_of(profile("dilations", "space-to-batch"), Optimizer::sgd);
    EXPECT_FALSE(framework.plain());
    framework.issue = {};
    const Window window{.kernel_h = 3,
                        .kernel_w = 3,
                        .pad_top = 4,
                        .pad_left = 4,
                        .pad_bottom = 4,
                        .pad_right = 4,
                        .dilation_h = 4,
                        .dilation_w = 4};
    const auto time = [&](Pass pass) {
        const Problem problem{Conv{6, 10, 12, 7, window}, pass, 2, DataType::f32};
        return with_overheads(price(problem, device), problem, device, framework).time.value;
    };
    // Of 2 samples; what is copied is priced as a pass that reads and writes with one operation, of which each side is
    // half.
    const double a_pixel = 2.0 * 2 * 9 * 6 * 7;
    const double input = 6.0 * 10 * 12, padded = 16 * 6.0 * 25, made = 16 * 7.0 * 9, output = 7.0 * 10 * 12;
    EXPECT_NEAR(time(Pass::forward) * 1e12, 16 * 9 * a_pixel + input + padded + made + output, 1e-3);
    EXPECT_NEAR(time(Pass::backward_weights) * 1e12, 16 * 9 * a_pixel + output + made, 1e-3);
    EXPECT_NEAR(time(Pass::backward_data) * 1e12, 16 * 25 * a_pixel + input + padded, 1e-3);
    device.peak[DataType::f32] = {FlopRate{1e18}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e12}, "sheet"};
    const auto copied = [&](Pass pass) {  // of f32, beside the small images that the convolution moves
        return time(pass) * 1e12 / 8 - (padded + made);
    };
    EXPECT_NEAR(copied(Pass::forward), input + padded + made + output, 200);  // and its weights, 378
    EXPECT_NEAR(copied(Pass::backward_data), input + padded, 200);
    EXPECT_NEAR(copied(Pass::backward_weights), output + made, 200);
    EXPECT_THROW(framework_of(profile("dilations", "cudnn"), Optimizer::sgd), InputError);
}

// The count of operations that the climate work published for DeepLabv3+, 14.41 TFLOP a sample, is of these images: its
// program counts each pixel that a convolution reads as one that it makes, three times for a training step.
TEST(Dilations, AreCountedByTheClimateWorkAsItPublished) {
    double counted = 0, own = 0;
    for (const Layer& layer : models::deeplabv3plus().layers) {
        const double flops = rehearse::flops(layer.op, Pass::forward).value;
        const auto in = in_batches({layer.op, Pass::forward, 1, DataType::f32});
        if (!is_convolution(layer.op)) continue;
        own += flops;
        if (!in) {
            counted += flops;
            continue;
        }
        const auto& conv = std::get<Conv>(in->problem.op);
        counted += 2.0 * static_cast<double>(in->images * conv.height * conv.width * conv.channels * conv.filters * 9);
    }
    EXPECT_NEAR(3 * counted / 1e12, 14.41, 0.01);
    EXPECT_NEAR(3 * own / 1e12, 13.03, 0.01);
}

// Images of 64 x 56 x 56 values, two a batch, in and out: read and written once more in f32, twice in f16, but not
// those of 1 x 1 filters. Channel by channel only 16-bit ones are turned, of any filter.
// Transformed filters of 512 x 512 are 16 x 512 x 512 x 4 B = 16 MiB, of 256 x 512 8 MiB, and 8 MiB are allowed; what a
// gradient of weights keeps, images and results of a batch, is 32 x (64 + 64) x 56 x 56 x 4 B = 51 MB, and of one image
// of 7 x 7 with 64 channels 25 kB.
TEST(Workspace, LeavesTransformsOutThatKeepMore) {
    const DeviceClass device = models::load_machine("abci").classes.front();
    Framework small;
    small.workspace = workspace_of(profile("workspace", "8MiB"));
    const Framework none{.transforms = false};
    const auto time = [&](const Framework& framework, const Problem& problem) {
        return with_overheads(price(problem, device), problem, device, framework).time;
    };
    const auto conv = [](std::int64_t channels, std::int64_t filters, std::int64_t side) {
        return Conv{channels, side, side, filters, Window{3, 3, 1, 1, 1, 1, 1, 1}};
    };
    const Problem fits{conv(256, 512, 28), Pass::forward, 32, DataType::f32};
    const Problem larger{conv(512, 512, 28), Pass::forward, 32, DataType::f32};
    const Problem weights{conv(64, 64, 56), Pass::backward_weights, 32, DataType::f32};
    const Problem few{conv(64, 64, 7), Pass::backward_weights, 1, DataType::f32};
    for (const Problem& problem : {fits, few}) EXPECT_EQ(time(small, problem), time({}, problem));
    for (const Problem& problem : {larger, weights}) EXPECT_EQ(time(small, problem), time(none, problem));
    EXPECT_GT(time(none, larger), time({}, larger));
    EXPECT_GT(time(none, fits), time({}, fits));
    EXPECT_FALSE(small.plain());
}

TEST(StatisticsOfGradients, AreOperatorsATensor) {
    const Framework adaptdl = framework_of(models::load_framework("adaptdl"), Optimizer::sgd);
    EXPECT_EQ(adaptdl.statistics, (Statistics{.alone = 14, .shared = 5}));
    EXPECT_FALSE(Framework{.statistics = adaptdl.statistics}.plain());
    EXPECT_EQ(statistics_of(models::load_framework("pytorch-ddp")), Statistics{});
    EXPECT_THROW(static_cast<void>(statistics_of(profile("statistics", "-1"))), InputError);
    EXPECT_THROW(static_cast<void>(statistics_of(profile("statistics_shared", "few"))), InputError);
}

TEST(Workspace, IsNoNegativeSize) {
    EXPECT_THROW(static_cast<void>(workspace_of(profile("workspace", "-1MB"))), InputError);
    EXPECT_THROW(static_cast<void>(workspace_of(profile("workspace", "8s"))), InputError);
    EXPECT_FALSE(workspace_of(models::load_framework("rehearse")).has_value());
    EXPECT_EQ(workspace_of(models::load_framework("chainermn")), Bytes{8.0 * 1024 * 1024});
}

// A DGX A100 and a node of JUWELS Booster have one card; the software that the former names, and its host, train
// transformers.
TEST(SoftwareOfAMachine, IsThatOfNetworksWithAttentionAlone) {
    const Machine dgx = models::load_machine("dgx-a100"), juwels = models::load_machine("juwels-booster");
    const Network mlp = models::mlp(), bert = models::load_transformer("bert-base").value();
    const Machine plain = for_network(dgx, mlp);
    EXPECT_EQ(plain.software.name, models::generic_software);
    const Problem small{MatMul{1, 64, 64}, Pass::forward, 128, DataType::tf32};
    EXPECT_EQ(price(small, plain.classes[0]).time, price(small, juwels.classes[0]).time);
    EXPECT_NEAR(price(small, for_network(dgx, bert).classes[0]).time.value, 3.04 * 37.2e-6, 1e-9);
    EXPECT_EQ(for_network(dgx, bert).software.name, "megatron-lm-2021");
}

TEST(ImageLayouts, AreTurnedForTheLibrary) {
    DeviceClass device;
    device.peak[DataType::f32] = device.peak[DataType::f16] = {FlopRate{1e15}, "sheet"};
    device.memory_bandwidth = {Bandwidth{1e12}, "sheet"};
    const auto more_of = [&](const std::string& layout, const Problem& problem) {
        Framework framework = framework_of(profile("layout", layout), Optimizer::sgd);
        framework.issue = {};
        const Price known = price(problem, device);
        return (with_overheads(known, problem, device, framework).time - known.time).value;
    };
    const auto more = [&](const std::string& layout, DataType type, Window window) {
        return more_of(layout, {Conv{64, 56, 56, 64, window}, Pass::forward, 2, type});
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
    const auto normalized = [&](const std::string& layout, Pass pass, DataType type) {
        return more_of(layout, {BatchNorm{64, 56, 56}, pass, 2, type});
    };
    EXPECT_NEAR(normalized("nhwc-turned", Pass::forward, DataType::f32), 2 * 2 * 4 * values / 1e12, 1e-12);
    EXPECT_NEAR(normalized("nhwc-turned", Pass::backward_data, DataType::f16), 3 * 2 * 2 * values / 1e12, 1e-12);
    EXPECT_NEAR(normalized("nhwc-turned", Pass::backward_weights, DataType::f16), 0, 1e-12);
    EXPECT_NEAR(normalized("nhwc-turned", Pass::update, DataType::f32), 0, 1e-12);
    EXPECT_NEAR(normalized("nchw", Pass::backward_data, DataType::f16), 0, 1e-12);
}

}  // namespace
}  // namespace rehearse::predict
