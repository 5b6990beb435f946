// SPDX-License-Identifier: Apache-2.0
// A device has one price wherever it stands; what differs is the software that a machine names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"
#include "models/models.hpp"
#include "prices/price_model.hpp"
#include "prices/prices.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::models {
namespace {

struct Class {
    std::string machine, software;
    DeviceClass device;
};

// By the device of the catalog.
std::map<std::string, std::vector<Class>> shipped_classes() {
    std::map<std::string, std::vector<Class>> classes;
    for (const MachineName& name : machines()) {
        if (name.name == "this-host") continue;
        const Machine machine = load_machine(name.name);
        for (const DeviceClass& device : machine.classes)
            classes[device.like].push_back({machine.name, machine.software.name, device});
    }
    return classes;
}

// Of convolutional networks and of transformers; software decides about the latter only.
std::vector<Problem> problems_of_images(DataType type) {
    std::vector<Problem> problems;
    const Conv conv{
        64, 56, 56, 64, {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}};
    Conv grouped = conv;
    grouped.groups = 32;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
        for (const Op& op : {Op{conv}, Op{grouped}}) problems.push_back({op, pass, 32, type});
    problems.push_back({BatchNorm{64, 56, 56}, Pass::forward, 32, type});
    problems.push_back({Activation{Nonlinearity::relu, {64, 56, 56}}, Pass::backward_data, 32, type});
    return problems;
}

std::vector<Problem> problems_of_tokens(DataType type) {
    std::vector<Problem> problems;
    const Attention attention{.heads = 16, .queries = 512, .keys = 512, .head_size = 64};
    for (const Pass pass : {Pass::forward, Pass::backward_data}) {
        problems.push_back({MatMul{512, 1024, 1024, true}, pass, 8, type});
        problems.push_back({attention, pass, 8, type});
        problems.push_back({LayerNorm{512, 1024}, pass, 8, type});
    }
    return problems;
}

void expect_same_prices(const std::vector<Problem>& problems, const Class& one, const Class& other) {
    for (const Problem& problem : problems) {
        const Price a = price(problem, one.device), b = price(problem, other.device);
        EXPECT_EQ(a.time, b.time) << to_string(problem) << " on " << one.machine << " and " << other.machine;
        EXPECT_EQ(a.error, b.error) << to_string(problem) << " on " << one.machine << " and " << other.machine;
    }
}

std::string machine_with(const std::string& device, const std::string& more = "") {
    return "name = \"m\"\n" + more + "[[device]]\nname = \"gpu\"\nlike = \"" + device +
           "\"\n[[node]]\nname = \"n\"\ndevices = [{ class = \"gpu\", name = \"gpu\" }]\n";
}

TEST(Devices, StandInTheCatalogWhateverMachineHasThem) {
    std::map<std::string, std::vector<Class>> classes = shipped_classes();
    for (const Class& each : classes[""])
        ADD_FAILURE() << each.device.name << " of " << each.machine << " has a price of its own";
}

// Convolutions of every sort: whatever was measured of them, there is an answer, and it knows how little it knows.
std::vector<Op> convolutions_of_every_sort() {
    const auto conv = [](std::int64_t side, std::int64_t stride, std::int64_t dilation, std::int64_t groups) {
        const std::int64_t pad = side / 2 * dilation;
        Window w{side, side, stride, stride, pad, pad, pad, pad};
        w.dilation_h = w.dilation_w = dilation;
        return Op{Conv{64, 56, 56, 64, w, groups}};
    };
    const auto volume = [](std::int64_t stride, std::int64_t groups) {
        Window w{3, 3, stride, stride, 1, 1, 1, 1};
        w.kernel_d = 3;
        w.stride_d = stride;
        w.pad_front = w.pad_back = 1;
        return Op{conv3d(32, 16, 16, 16, 32, w, groups, false)};
    };
    ConvTranspose up;
    up.channels = up.filters = 32;
    up.height = up.width = 28;
    up.window = Window{2, 2, 2, 2};
    return {conv(1, 1, 1, 1),
            conv(1, 2, 1, 1),
            conv(3, 2, 1, 1),
            conv(3, 1, 2, 1),
            conv(3, 2, 2, 1),
            conv(5, 1, 1, 1),
            conv(3, 1, 1, 2),
            conv(3, 1, 1, 16),
            conv(3, 2, 1, 64),
            volume(1, 1),
            volume(2, 1),
            volume(1, 32),
            up};
}

TEST(Devices, AnswerForConvolutionsOfEverySort) {
    for (const auto& [name, classes] : shipped_classes()) {
        const DeviceClass& device = classes.front().device;
        for (const auto& [type, peak] : device.peak) {
            if (type == DataType::fp8) continue;  // convolutions are bf16 there
            for (const Op& op : convolutions_of_every_sort()) {
                for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                    const Problem problem{op, pass, 16, type};
                    const Price answer = price(problem, device);
                    EXPECT_GT(answer.time.value, 0) << to_string(problem) << " on " << name;
                    EXPECT_LT(answer.time.value, 1) << to_string(problem) << " on " << name;
                    EXPECT_GE(answer.error, 0.02) << to_string(problem) << " on " << name;
                    EXPECT_LE(answer.error, 1.5) << to_string(problem) << " on " << name;
                }
            }
        }
    }
}

// pytorch/pytorch, issue 32370 (cuDNN 7.6.5): on a P100 backward, of the weights alone, takes 7 to 15 times the forward
// pass, on a V100 0.598 ms for 0.439.
TEST(Devices, OfPascalTakeLongForGradientsOfTheWeightsOfVolumes) {
    const Op op = conv3d(2, 33, 33, 33, 729, Window{.kernel_h = 2, .kernel_w = 2, .kernel_d = 2}, 1, false);
    const auto ratio = [&](const char* machine) {
        const DeviceClass device = load_machine(machine).classes.front();
        return price({op, Pass::backward_weights, 1, DataType::f32}, device).time /
               price({op, Pass::forward, 1, DataType::f32}, device).time;
    };
    EXPECT_GT(ratio("piz-daint"), 7);
    EXPECT_LT(ratio("piz-daint"), 15);
    EXPECT_LT(ratio("summit"), 3);
}

// NeuSight measured products and normalizations forward: of an L4 and an MI210 nothing else is known.
TEST(Devices, PriceGradientsByWhatWasMeasuredForward) {
    const auto device_of = [](const std::string& name) {
        return parse_machine(machine_with(name), "m.toml").classes[0];
    };
    const DeviceClass l4 = device_of("l4"), mi210 = device_of("mi210");
    const auto forward = [&](const MatMul& op) { return price({op, Pass::forward, 1, DataType::f32}, l4); };
    const MatMul layer{512, 1024, 2048, false};  // 4 samples: 2,048 rows
    const Price data = price({layer, Pass::backward_data, 4, DataType::f32}, l4);
    EXPECT_EQ(data.time, forward({2048, 2048, 1024, false}).time);
    EXPECT_GT(data.error, forward({2048, 2048, 1024, false}).error);
    EXPECT_EQ(price({layer, Pass::backward_weights, 4, DataType::f32}, l4).time,
              forward({2048, 1024, 2048, false}).time);
    // Rows of 4,096: read and written forward; read, with the result's gradient, and written backward.
    const LayerNorm norm{2048, 4096};
    const Seconds there = price({norm, Pass::forward, 32, DataType::f32}, mi210).time;
    const Seconds back = price({norm, Pass::backward_data, 32, DataType::f32}, mi210).time;
    EXPECT_NEAR((back - mi210.launch.value) / (there - mi210.launch.value), 1.5, 1e-3);
}

TEST(Devices, HaveOnePriceWhereverTheyStand) {
    std::size_t pairs = 0;
    for (const auto& [name, classes] : shipped_classes()) {
        for (const auto& [type, peak] : classes.front().device.peak) {
            for (const Class& other : classes) {
                expect_same_prices(problems_of_images(type), classes.front(), other);
                if (other.software != classes.front().software) continue;
                expect_same_prices(problems_of_tokens(type), classes.front(), other);
                ++pairs;
            }
        }
    }
    EXPECT_GT(pairs, 60U);
}

// Attention's scores cross memory or they don't, and the host is fast or slow: no two entries have the same prices.
TEST(Devices, DifferBySoftwareWhereAMachineNamesAnother) {
    const DeviceClass fused = load_machine("eos").classes[0], scores = load_machine("selene").classes[0];
    EXPECT_EQ(fused.tiles->score_passes.value, 0);
    EXPECT_EQ(scores.tiles->score_passes.value, 6.5);
    EXPECT_EQ(scores.tiles->issue.value, Seconds{37.2e-6});
    // Where the software says nothing of the host, a kernel takes its launch.
    EXPECT_EQ(load_machine("dgx1-v100").classes[0].tiles->issue.value, Seconds{4e-6});
}

// Dense rates of the data sheets, in TFLOPS, and memory in GB.
TEST(Devices, OfTheYearsSince2020CanBeInherited) {
    struct Sheet {
        const char* name;
        double bf16, memory;
    };
    for (const Sheet& sheet : {Sheet{"a100-40gb", 312, 40}, Sheet{"a100-80gb", 312, 80}, Sheet{"h100-sxm", 989, 80},
                               Sheet{"h200-sxm", 989, 141}, Sheet{"gh200", 989, 96}, Sheet{"b200-sxm", 2250, 180},
                               Sheet{"mi250x", 191.5, 64}}) {
        const DeviceClass device = parse_machine(machine_with(sheet.name), "m.toml").classes[0];
        EXPECT_DOUBLE_EQ(device.peak.at(DataType::bf16).value.value, sheet.bf16 * 1e12) << sheet.name;
        EXPECT_DOUBLE_EQ(device.memory.value.value, sheet.memory * 1e9) << sheet.name;
        for (const Problem& problem : problems_of_tokens(DataType::bf16)) {
            const Price priced = price(problem, device);
            EXPECT_GE(priced.time.value, flops(problem.op, problem.pass, problem.batch).value / (sheet.bf16 * 1e12));
            EXPECT_EQ(priced.basis, Basis::modelled) << sheet.name;
        }
    }
}

// 16-bit types go through tensor cores at one rate.
TEST(Devices, TakeAsLongInBf16AsInF16) {
    const DeviceClass device = load_machine("perlmutter").classes[0];
    const std::vector<Problem> half = problems_of_images(DataType::f16), brain = problems_of_images(DataType::bf16);
    for (std::size_t i = 0; i < half.size(); ++i)
        EXPECT_EQ(price(half[i], device).time, price(brain[i], device).time) << to_string(half[i]);
}

TEST(Software, OfAFileOfOnesOwnChangesWhatItSays) {
    const Machine mine = parse_machine(machine_with("a100-40gb",
                                                    "[software]\nname = \"mine\"\nlike = \"megatron-lm-2021\"\n"
                                                    "score_passes = { value = 0, source = \"fused\" }\n"),
                                       "m.toml");
    EXPECT_EQ(mine.software.name, "mine");
    EXPECT_EQ(mine.classes[0].tiles->score_passes.value, 0);
    EXPECT_EQ(mine.classes[0].tiles->issue.value, Seconds{37.2e-6});
}

TEST(Software, SaysWhoseKernelAttentionIs) {
    const auto kernel = [](const std::string& name) {
        return parse_machine(
                   machine_with("a100-40gb", "[software]\nname = \"mine\"\nlike = \"pytorch-operators\"\n" + name),
                   "m.toml")
            .classes[0]
            .tiles->attention_kernel;
    };
    EXPECT_EQ(load_machine("eos").classes[0].tiles->attention_kernel, FusedKernel::library);
    EXPECT_EQ(kernel(""), FusedKernel::flash);
    EXPECT_EQ(kernel("attention_kernel = \"triton\"\n"), FusedKernel::triton);
    EXPECT_THROW(kernel("attention_kernel = \"cutlass\"\n"), InputError);
}

// DeepBench measured this convolution on the V100 (calibrate/deepbench/conv.csv); nobody did on an A100, and nobody the
// one of an odd batch.
TEST(Basis, IsMeasuredOnlyForTheProblemAndTheDeviceThatWere) {
    const DeviceClass v100 = load_machine("dgx1-v100").classes[0], a100 = load_machine("perlmutter").classes[0];
    const Problem measured = v100.model->kernels().front().samples.front().problem;
    Problem other = measured;
    other.batch += 1;
    EXPECT_EQ(price(measured, v100).basis, Basis::measured_on_class);
    EXPECT_EQ(price(other, v100).basis, Basis::modelled);
    EXPECT_EQ(price(measured, a100).basis, Basis::modelled);
}

TEST(Basis, OfSamplesInTheMachineFileIsHereOrOnTheClass) {
    DeviceClass device = load_machine("perlmutter").classes[0];
    const Problem problem{MatMul{64, 64, 64, false}, Pass::forward, 4, DataType::f32};
    device.measured[to_string(problem)] = {Seconds{1e-3}, 0.1, 5, "measured, somewhere"};
    EXPECT_EQ(price(problem, device).basis, Basis::measured_on_class);
    device.measured[to_string(problem)].basis = Basis::measured_here;
    EXPECT_EQ(price(problem, device).basis, Basis::measured_here);
    Problem larger = problem;
    larger.batch = 8;
    EXPECT_EQ(price(larger, device).basis, Basis::modelled) << "in proportion to a batch that was measured";
    EXPECT_EQ(to_string(Basis::measured_here), "measured here");
    EXPECT_EQ(to_string(Basis::measured_on_class), "measured on this device class");
    EXPECT_EQ(to_string(Basis::modelled), "modelled");
}

}  // namespace
}  // namespace rehearse::models
