// SPDX-License-Identifier: Apache-2.0
// Prices of devices that are like another one: what is carried over, and what is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/models.hpp"
#include "models/price_models.hpp"
#include "prices/prices.hpp"

namespace rehearse::models {
namespace {

DeviceClass catalog_device(const std::string& name) {
    const std::string text = "name = \"m\"\n[[device]]\nname = \"gpu\"\nlike = \"" + name +
                             "\"\n[[node]]\nname = \"n\"\ndevices = [{ class = \"gpu\", name = \"gpu\" }]\n";
    return parse_machine(text, "m.toml").classes.at(0);
}

// Layers of VGG-16, AlexNet and ResNet-50: of three channels, wide, of one tap, with strides.
std::vector<Problem> convolutions_in(DataType type, std::int64_t batch) {
    std::vector<Problem> problems;
    const Window three{3, 3, 1, 1, 1, 1, 1, 1};
    for (const Conv& conv :
         {Conv{3, 224, 224, 64, three, 1, false}, Conv{64, 224, 224, 64, three, 1, false},
          Conv{512, 28, 28, 512, three, 1, false}, Conv{512, 14, 14, 512, three, 1, false},
          Conv{3, 227, 227, 96, Window{11, 11, 4, 4}, 1, false}, Conv{256, 56, 56, 64, Window{1, 1}, 1, false},
          Conv{3, 224, 224, 64, Window{7, 7, 2, 2, 3, 3, 3, 3}, 1, false}})
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
            problems.push_back({conv, pass, batch, type});
    return problems;
}

double slowest_over_f32(DataType type, const DeviceClass& device) {
    double slowest = 0;
    for (const std::int64_t batch : {8, 64}) {
        for (const Problem& problem : convolutions_in(type, batch)) {
            Problem in_f32 = problem;
            in_f32.type = DataType::f32;
            slowest = std::max(slowest, price(problem, device).time / price(in_f32, device).time);
        }
    }
    return slowest;
}

// TF32 has the bytes of f32, and whoever has it may as well run f32's kernels.
TEST(Likeness, InTf32TakesNoLongerThanInF32) {
    for (const char* name : {"rtx3090", "rtx4090", "l4", "l40s", "a100-40gb", "h100-sxm"}) {
        SCOPED_TRACE(name);
        EXPECT_LE(slowest_over_f32(DataType::tf32, catalog_device(name)), 1 + 1e-9);
    }
}

// A V100's matrix units are eight times as fast as its lanes, and those of these cards twice or four times.
TEST(Likeness, In16BitsTakesNoLongerThanInF32WhereMatrixUnitsAreLessFarAhead) {
    for (const char* name : {"rtx3090", "rtx4090", "l4", "l40s"}) {
        SCOPED_TRACE(name);
        const DeviceClass device = catalog_device(name);
        EXPECT_LE(slowest_over_f32(DataType::f16, device), 1 + 1e-9);
        Seconds in_f16, in_f32;
        for (const Problem& problem : convolutions_in(DataType::f16, 64)) in_f16 += price(problem, device).time;
        for (const Problem& problem : convolutions_in(DataType::f32, 64)) in_f32 += price(problem, device).time;
        EXPECT_LT(in_f16, in_f32);
    }
}

// A V100 with matrix units of half the rate: kernels take longer by what arithmetic does, and wait no longer for what
// feeds it. With units of twice the rate all is in shares of the peak, as kernels of later chips are.
TEST(Likeness, LeavesTheTimeOfFeedingAsItIs) {
    const std::shared_ptr<const PriceModel> v100 = load_price_model("v100");
    const auto in_f16 = [](const PriceModel& model) -> const MeasuredKernels& {
        return *std::ranges::find_if(model.kernels(),
                                     [](const auto& k) { return k.kind == "conv2d" && k.type == DataType::f16; });
    };
    const MeasuredKernels& measured = in_f16(*v100);
    DeviceClass device;
    device.peak[DataType::f32] = {FlopRate{15.67e12}, "V100"};
    device.memory_bandwidth = {measured.sheet.bandwidth, "V100"};
    for (const double times : {0.5, 2.0}) {
        device.peak[DataType::f16] = {times * measured.sheet.peak, "a test"};
        const auto model = transferred_price_model({.like = "v100", .error = 0.1, .source = "a test"}, device);
        const MeasuredKernels& carried = in_f16(*model);
        ASSERT_EQ(carried.samples.size(), measured.samples.size());
        for (std::size_t i = 0; i < measured.samples.size(); ++i) {
            const Problem& problem = measured.samples[i].problem;
            SCOPED_TRACE(to_string(problem));
            const Seconds here = kernel_point(problem, carried.sheet)->bounds.overlapped();
            const Seconds there = kernel_point(problem, measured.sheet)->bounds.overlapped();
            const Seconds time = measured.samples[i].time;
            const Seconds expected = times > 1 || time < there ? time * (here / there) : time + (here - there);
            EXPECT_NEAR(carried.samples[i].time / expected, 1, 1e-9);
        }
        EXPECT_EQ(carried.at_most_as_in_f32, times < 1);
    }
}

// docs/device_prices.md: as far below a copy as on a V100, on NVIDIA's cards up to Turing.
TEST(Likeness, PoolingAndNormalizationAreAsFarBelowACopyOnAllOfNvidiasUpToTuring) {
    for (const char* name : {"k80", "titanx-maxwell", "titanx-maxwell-cudnn6", "titanx-pascal", "gtx1080ti", "p40",
                             "p4", "p100-pcie", "p100-sxm2", "v100-sxm2", "v100-pcie", "v100-sxm3", "t4", "rtx5000"}) {
        SCOPED_TRACE(name);
        const DeviceClass device = catalog_device(name);
        const auto share = [&](std::string_view kind, std::optional<Pass> pass) {
            const auto row = std::ranges::find_if(
                device.efficiencies, [&](const Efficiency& each) { return each.kind == kind && each.pass == pass; });
            return row == device.efficiencies.end() ? 0 : row->fraction;
        };
        const double copy = share("*", {});
        // To two digits: a copy's share is rounded, too.
        EXPECT_NEAR(share("batchnorm", Pass::forward) / copy, 0.62 / 0.864, 0.01);
        EXPECT_NEAR(share("batchnorm", Pass::backward_data) / copy, 0.75 / 0.864, 0.01);
        EXPECT_NEAR(share("pool", Pass::forward) / copy, 0.4 / 0.864, 0.01);
        EXPECT_NEAR(share("pool", Pass::backward_data) / copy, 0.16 / 0.864, 0.01);
    }
}

}  // namespace
}  // namespace rehearse::models
