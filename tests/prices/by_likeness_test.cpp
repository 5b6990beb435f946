// SPDX-License-Identifier: Apache-2.0
#include "prices/by_likeness.hpp"

#include <gmock/gmock.h>

#include "models/models.hpp"

namespace rehearse {
namespace {

DeviceClass one_of(const std::string& name) {
    const std::string text = "name = \"m\"\n[[device]]\nname = \"gpu\"\nlike = \"" + name +
                             "\"\n[[node]]\nname = \"n\"\ndevices = [{ class = \"gpu\", name = \"gpu\" }]\n";
    return models::parse_machine(text, "m.toml").classes.at(0);
}

// A gradient of the weights reads rows of n and of k values; what lie batch x tokens apart, a multiple of 16 KB in the
// second, are the rows of the forward product of its sizes.
TEST(ByLikeness, GradientsOnAmdsBoardsReadNoRowsThatLieFarApart) {
    for (const char* name : {"mi100", "mi210"}) {
        SCOPED_TRACE(name);
        const DeviceClass device = one_of(name);
        const auto time = [&](std::int64_t batch, Pass pass) {
            return price({MatMul{512, 3072, 768, false}, pass, batch, DataType::f32}, device).time.value;
        };
        const double before = time(94, Pass::backward_weights), after = time(96, Pass::backward_weights);
        EXPECT_NEAR(after / before, 96.0 / 94, 0.1);
        EXPECT_NEAR(after / time(96, Pass::forward), 1, 0.2) << "as many operations";
    }
}

// Near rows are the same in both: then a gradient is the forward product of its sizes to the digit.
TEST(ByLikeness, GradientsOfNearRowsAreTheForwardProducts) {
    const DeviceClass mi210 = one_of("mi210");
    const Seconds forward = price({MatMul{2048, 1024, 1000, false}, Pass::forward, 1, DataType::f32}, mi210).time;
    const Seconds data = price({MatMul{2048, 1000, 1024, false}, Pass::backward_data, 1, DataType::f32}, mi210).time;
    EXPECT_NEAR(data / forward, 1, 1e-5);
}

// A P100's lanes take two f16 at once and sum in f16, which frameworks do not ask for. DeepBench's largest product in
// "fp16_in_fp32_math" reaches 9.06 TFLOP/s of the 9.3 in f32.
TEST(ByLikeness, ProductsInF16OnLanesAreThoseOfF32) {
    const DeviceClass p100 = one_of("p100-pcie"), v100 = one_of("v100-sxm2");
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        const auto priced = [&](DataType type, const DeviceClass& device) {
            return price({MatMul{1, 1760, 7000, false}, pass, 1760, type}, device);
        };
        EXPECT_EQ(priced(DataType::f16, p100).time, priced(DataType::f32, p100).time);
        EXPECT_GT(priced(DataType::f16, p100).error, priced(DataType::f32, p100).error);
        EXPECT_LT(priced(DataType::f16, v100).time, 0.5 * priced(DataType::f32, v100).time);
    }
    const Seconds large = price({MatMul{1, 2560, 7000, false}, Pass::forward, 2560, DataType::f16}, p100).time;
    EXPECT_NEAR(2.0 * 2560 * 7000 * 2560 / large.value / 9e12, 1, 0.25);
}

}  // namespace
}  // namespace rehearse
