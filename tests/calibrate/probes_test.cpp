// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probes.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace rehearse::calibrate {
namespace {

std::vector<std::string> names(const std::vector<Needed>& needed) {
    std::vector<std::string> found;
    for (const Needed& each : needed) found.push_back(to_string(each.problem));
    return found;
}

TEST(Probes, AreOfWhatNoNetworkHas) {
    const Needed dense{parse_problem("matmul:n8m1n10k100:bias:f32:forward"), Bytes{1e6}};
    const std::vector<Needed> some = probes({&dense, 1});
    EXPECT_THAT(names(some), testing::Contains("matmul:n2m1n1000k1024:bias:f32:backward_data"));
    EXPECT_THAT(names(some), testing::Not(testing::Contains("matmul:n2m1n1000k1024:bias:f32:forward")));
    EXPECT_THAT(names(some), testing::Contains("matmul:n2m64n512k256:bias:f32:forward")) << "of many rows";
    EXPECT_THAT(names(some), testing::Contains("conv2d:n2c64h56w56k64r3s3:pad1:stride1:groups64:f32:forward"));
    EXPECT_THAT(some, testing::Each(testing::Field(&Needed::footprint, Bytes{1e6})));
    const std::vector<Needed> all = probes({});
    EXPECT_EQ(all.size(), some.size() + 1) << "a dense layer of few rows, forward";
    EXPECT_TRUE(probes(all).empty()) << "each sort and pass is there now";
}

// LeNet's product of 32 rows has the sort of a transformer's, and says nothing of how fast that is.
TEST(Probes, AreOfLargeProductsWhereTheNetworksHaveSmallOnes) {
    const Needed small{parse_problem("matmul:n32m1n10k84:bias:f32:forward"), Bytes{1e6}};
    const Needed large{parse_problem("matmul:n8m144n768k192:bias:f32:forward"), Bytes{1e6}};
    const std::string probe = "matmul:n2m128n1024k2048:bias:f32:forward";
    EXPECT_THAT(names(probes({&small, 1})), testing::Contains(probe));
    EXPECT_THAT(names(probes({&large, 1})), testing::Not(testing::Contains(probe)));
    const std::string few_rows = "matmul:n2m1n1000k1024:bias:f32:forward";
    EXPECT_THAT(names(probes({&large, 1})), testing::Contains(few_rows));
}

TEST(Probes, HaveCellsReductionsAndFunctionsInEveryPass) {
    const std::vector<std::string> all = names(probes({}));
    for (const std::string pass : {"forward", "backward_data", "backward_weights"}) {
        EXPECT_THAT(all, testing::Contains("recurrent:n8t16c128h128d1:lstm:bias:f32:" + pass));
        EXPECT_THAT(all, testing::Contains("recurrent:n16t24c128h256d1:gru:bias:resetafter:f32:" + pass));
    }
    for (const std::string pass : {"forward", "backward_data"}) {
        EXPECT_THAT(all, testing::Contains("reduction:n4:128x512:mean:axes0:f32:" + pass));
        EXPECT_THAT(all, testing::Contains("reduction:n4:128x512:max:axes0:f32:" + pass));
        EXPECT_THAT(all, testing::Contains("elementwise:n2:64x784:elu:in64x784:f32:" + pass));
    }
    const Needed sum{parse_problem("elementwise:n2:9:add:in9+9:f32:forward"), Bytes{1e6}};
    EXPECT_THAT(names(probes({&sum, 1})), testing::Contains("elementwise:n2:64x784:elu:in64x784:f32:forward"));
}

// Nothing takes a core longer than some milliseconds, so that a short calibration stays short.
TEST(Probes, AreSmall) {
    for (const Needed& each : probes({})) {
        const auto& [op, pass, batch, type] = each.problem;
        EXPECT_LT(flops(op, pass, batch).value, 1.2e9) << to_string(each.problem);
        EXPECT_LT(bytes_moved(op, pass, type, batch).value, 130e6) << to_string(each.problem);
    }
}

}  // namespace
}  // namespace rehearse::calibrate
