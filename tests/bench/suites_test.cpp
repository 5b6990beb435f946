// SPDX-License-Identifier: Apache-2.0
// Suites against rows of the published sheets, worked out by hand.
#include "bench/suites.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace rehearse::bench {
namespace {

using testing::Contains;

std::vector<std::string> names(const std::vector<Problem>& problems) {
    std::vector<std::string> found;
    for (const Problem& problem : problems) found.push_back(to_string(problem));
    return found;
}

TEST(DeepBenchTrain, HasEveryProblemOnce) {
    const std::vector<std::string> all = names(deepbench_train());
    EXPECT_EQ(all.size(), 3U * 64 + 111);
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(DeepBenchTrain, HasConvolutionsAsTheSheetsGiveThem) {
    const std::vector<std::string> all = names(deepbench_train());
    // W 700, H 161, C 1, N 4, K 32, R 5, S 20, no padding, stride 2
    EXPECT_THAT(all, Contains("conv2d:n4c1h161w700k32r5s20:pad0:stride2:f32:forward"));
    EXPECT_THAT(all, Contains("conv2d:n16c2048h7w7k512r1s1:pad3:stride2:f32:backward_weights"));
    const Problem first = deepbench_train().front();
    EXPECT_NEAR(flops(first.op, first.pass, first.batch).value, 0.689638e9, 0.5e3);  // the sheet's column gflop
}

TEST(DeepBenchTrain, MapsEachLayoutOfAProductToThePassThatHasIt) {
    const std::vector<std::string> all = names(deepbench_train());
    EXPECT_THAT(all, Contains("matmul:n7000m1n2048k2048:f32:forward"));           // N N, M = K
    EXPECT_THAT(all, Contains("matmul:n9124m1n5124k1760:f32:forward"));           // N N: M 5124, N 9124, K 1760
    EXPECT_THAT(all, Contains("matmul:n32m1n2560k7680:f32:backward_data"));       // T N: M 7680, N 32, K 2560
    EXPECT_THAT(all, Contains("matmul:n2560m1n7680k5481:f32:backward_weights"));  // N T: M 7680, N 5481, K 2560
    // Whatever the pass, a product is 2 M N K operations: the sum over the sheet's rows (by awk).
    double sum = 0;
    for (const Problem& p : deepbench_train()) {
        if (std::holds_alternative<MatMul>(p.op)) sum += flops(p.op, p.pass, p.batch).value;
    }
    EXPECT_NEAR(sum, 17815033859904.0, 1);
}

TEST(Crossover, KeepsThePlaneWhateverTheFilter) {
    const std::vector<Problem> problems = crossover();
    EXPECT_EQ(problems.size(), 6U * 8);
    for (const Problem& problem : problems) {
        SCOPED_TRACE(to_string(problem));
        EXPECT_EQ(output_shape(problem.op), input_shapes(problem.op).front());
    }
}

TEST(Suites, AreFoundByName) {
    ASSERT_NE(find_suite("deepbench-train"), nullptr);
    EXPECT_EQ(find_suite("deepbench-train")->problems().size(), deepbench_train().size());
    EXPECT_EQ(find_suite("resnet50"), nullptr);
    for (const Suite& suite : suites()) EXPECT_FALSE(suite.problems().empty());
}

}  // namespace
}  // namespace rehearse::bench
