// SPDX-License-Identifier: Apache-2.0
// A device that the host plays: every task takes a microsecond of its clock.
#include "bench/device.hpp"

#include <gmock/gmock.h>

#include "calibrate/quick.hpp"
#include "core/error.hpp"
#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/reference/backend.hpp"
#include "models/models.hpp"
#include "tests/kernels/cuda_host.hpp"

namespace rehearse::bench {
namespace {

struct Late {
    kernels::cuda::LateHostEngine engine;
    std::unique_ptr<kernels::Backend> layers = kernels::cuda::layers(engine);
    std::vector<std::unique_ptr<kernels::Backend>> convolutions = kernels::cuda::convolutions(engine);
    std::unique_ptr<kernels::Device> device =
        kernels::cuda::device(engine, {convolutions.front().get(), layers.get()}, {&kernels::reference::backend()});
};

const DeviceOptions small{.rotating = Bytes{1 << 16}, .rounds = 3, .runs = 4, .square = 16, .copied = Bytes{4096}};

TEST(DeviceBench, TakesTheDevicesClockForEachRun) {
    Late late;
    const auto seconds = [&](const Op& op, Pass pass) {
        const Problem problem{op, pass, 2, DataType::f32};
        return time_on(*late.device, problem, *late.layers, small).median.value;
    };
    EXPECT_NEAR(seconds(Activation{Nonlinearity::relu, {8}}, Pass::forward), 1e-6, 1e-12);
    EXPECT_NEAR(seconds(BatchNorm{2, 3, 3}, Pass::forward), 2e-6, 1e-12);  // statistics, then the values
    EXPECT_NEAR(seconds(Add{{8}, 2}, Pass::backward_data), 2e-6, 1e-12);   // a copy for each input
    EXPECT_NEAR(seconds(AdamUpdate{8}, Pass::update), 1e-6, 1e-12);
}

// Not among those that a network is run by, but on the device's memory: the host reaches none of it.
TEST(DeviceBench, TimesConvolutionsOfTensorsThatAreChannelsLast) {
    kernels::cuda::LateHostEngine engine;
    const auto layers = kernels::cuda::layers(engine);
    const auto besides = kernels::cuda::channels_last_convolutions(engine);
    const auto device = kernels::cuda::device(engine, {layers.get()}, {&kernels::reference::backend()},
                                              {besides.front().get(), besides.back().get()});
    const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    const Op op = Conv{8, 5, 5, 16, same, 1, false};
    const auto seconds = [&](Pass pass) {
        return time_on(*device, {op, pass, 2, DataType::f16}, *besides.front(), small).median.value;
    };
    EXPECT_TRUE(device->owns(*besides.front()));
    EXPECT_EQ(std::ssize(device->backends()), 2);
    EXPECT_NEAR(seconds(Pass::forward), 1e-6, 1e-12);           // nothing is laid anew
    EXPECT_NEAR(seconds(Pass::backward_data), 2e-6, 1e-12);     // but the weights
    EXPECT_NEAR(seconds(Pass::backward_weights), 2e-6, 1e-12);  // parts, then their sum
}

TEST(DeviceBench, MeasuresEveryProblemAsRunWouldComputeIt) {
    Late late;
    const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    std::vector<calibrate::Needed> needed;
    for (const DataType type : {DataType::f32, DataType::f16}) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            needed.push_back({{Conv{2, 5, 5, 3, same, 1, true}, pass, 2, type}, {}});
        }
        needed.push_back({{SoftmaxLoss{7}, Pass::forward, 2, type}, {}});
    }
    needed.push_back({{Embedding{4, 9, 3}, Pass::backward_weights, 2, DataType::f32}, {}});
    const auto samples = measure(*late.device, needed, small);
    ASSERT_EQ(samples.size(), needed.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        EXPECT_EQ(samples[i].problem, needed[i].problem);
        EXPECT_GT(samples[i].median.value, 0);
        EXPECT_EQ(samples[i].count, small.rounds);
    }
    EXPECT_EQ(samples.front().algorithm, "gemm");
    EXPECT_EQ(samples.back().algorithm, "layers");
}

TEST(DeviceBench, CopiesAndStartsKernels) {
    Late late;
    DeviceOptions options = small;
    const Op relu = Activation{Nonlinearity::relu, {8}};
    EXPECT_NEAR(time_on(*late.device, {relu, Pass::forward, 1, DataType::f32}, *late.layers, options).median.value,
                1e-6, 1e-12);
    const calibrate::HostFigures figures = measure_figures(*late.device, options);
    EXPECT_NEAR(figures.memory_bandwidth.median.value, 2 * 4096 / 1e-6, 1);
    EXPECT_NEAR(figures.launch.median.value, 1e-6, 1e-12);
    const auto link = measure_host_link(*late.device, options);
    EXPECT_GT(link.median.value, 0);
    EXPECT_EQ(link.count, options.rounds);
}

// A product that takes 2 r^2 tasks to round its factors and r^3 to multiply them, of r rows.
class Rounded final : public kernels::Backend {
public:
    explicit Rounded(kernels::cuda::Engine& engine) : engine_(engine) {}
    std::string_view name() const override { return "played"; }
    std::string_view algorithm() const override { return "fp8-fast"; }
    kernels::Support supports(const Problem& problem) const override {
        return {problem.type == DataType::f16 && std::holds_alternative<MatMul>(problem.op), "played products alone"};
    }
    std::int64_t workspace(const Op& /*op*/, std::int64_t /*batch*/) const override { return 0; }
    std::unique_ptr<kernels::Kernel> prepare(const Problem& problem) const override {
        const std::int64_t rows = std::get<MatMul>(problem.op).m;
        return std::make_unique<Started>(engine_, 2 * rows * rows + rows * rows * rows);
    }

private:
    struct Started final : kernels::Kernel {
        Started(kernels::cuda::Engine& of, std::int64_t count) : engine(of), tasks(count) {}
        void run(const kernels::Buffers& /*buffers*/) override {
            for (std::int64_t i = 0; i < tasks; ++i) engine.run(kernels::cuda::PointTask{kernels::cuda::Zero{}});
        }
        kernels::cuda::Engine& engine;
        std::int64_t tasks;
    };
    kernels::cuda::Engine& engine_;
};

TEST(DeviceBench, TellsEightBitProductsFromWhatRoundsTheirFactors) {
    kernels::cuda::LateHostEngine engine;
    const auto layers = kernels::cuda::layers(engine);
    const Rounded rounded{engine};
    DeviceOptions options = small;
    options.square = 4;
    const auto without = kernels::cuda::device(engine, {layers.get()}, {&kernels::reference::backend()});
    EXPECT_FALSE(measure_fp8_peak(*without, options).has_value());
    const auto with = kernels::cuda::device(engine, {layers.get(), &rounded}, {&kernels::reference::backend()});
    const auto peak = measure_fp8_peak(*with, options);
    ASSERT_TRUE(peak.has_value());
    EXPECT_NEAR(peak->median.value, 2 * 64 / 64e-6, 1);
}

// What calibrate --device writes is a machine that can be read again, with every sample.
TEST(DeviceBench, MakesAMachineFile) {
    Late late;
    calibrate::Samples samples;
    samples.host = "NVIDIA H100", samples.date = "2026-01-31";
    samples.figures = measure_figures(*late.device, small);
    const std::vector<calibrate::Needed> needed{{{MatMul{1, 9, 5}, Pass::forward, 2, DataType::f32}, {}},
                                                {{Add{{8}, 2}, Pass::backward_data, 2, DataType::f16}, {}}};
    samples.compute = measure(*late.device, needed, small);
    const Machine blank = calibrate::machine_of_one("cuda", "NVIDIA H100, sm_90", Bytes{8e10});
    const Machine made = calibrate::apply(blank, samples);
    const Machine read = models::parse_machine(models::to_toml(made), "gpu.toml");
    ASSERT_EQ(read.classes.size(), 1U);
    const DeviceClass& device = read.classes.front();
    EXPECT_EQ(device.memory.value.value, 8e10);
    EXPECT_EQ(device.launch.value.value, made.classes.front().launch.value.value);
    for (std::size_t i = 0; i < needed.size(); ++i) {
        const auto& price = device.measured.at(to_string(needed[i].problem));
        EXPECT_EQ(price.median.value, samples.compute[i].median.value);
        EXPECT_EQ(price.source, made.classes.front().measured.at(to_string(needed[i].problem)).source);
    }
}

}  // namespace
}  // namespace rehearse::bench
