// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <gtest/gtest.h>

namespace rehearse::bench {
namespace {

std::vector<Checked> of_all(const Problem& problem) {
    std::vector<const kernels::Backend*> backends;
    for (const kernels::Backend* backend : kernels::backends()) {
        if (backend->supports(problem).yes) backends.push_back(backend);
    }
    return check(problem, backends, 1);
}

TEST(Check, AllowsLongSumsWhatTheirRoundingIs) {
    // 4 * 2^-24 * sqrt(500000 / 6) = 6.883e-5
    for (const Checked& each : of_all({MatMul{.m = 1, .n = 8, .k = 500000, .bias = false}, Pass::forward, 4})) {
        EXPECT_NEAR(each.tolerance, 6.883e-5, 1e-8);
        EXPECT_LE(each.error, each.tolerance);
    }
    // The same product as a gradient: the sum runs over the batch.
    for (const Checked& each :
         of_all({MatMul{.m = 1, .n = 8, .k = 4, .bias = false}, Pass::backward_weights, 500000})) {
        EXPECT_NEAR(each.tolerance, 6.883e-5, 1e-8);
        EXPECT_LE(each.error, each.tolerance);
    }
}

TEST(Check, OfShortSumsIsStrict) {
    for (const Checked& each : of_all({MatMul{.m = 1, .n = 8, .k = 64, .bias = false}, Pass::forward, 4})) {
        EXPECT_EQ(each.tolerance, 1e-5);
        EXPECT_LE(each.error, each.tolerance);
    }
}

// Weights up to 1 would make a GRU of 400 chaotic: its backends were 1.1 apart.
TEST(Check, OfRecurrentLayersAndMessagesComparesWhatCanAgree) {
    const Recurrent gru{.cell = "gru", .steps = 30, .inputs = 10, .hidden = 200};
    const Rearrangement taken{"takerows", {{29, 16}, {90}}, {90, 16}}, added{"addrows", {{90, 16}, {90}}, {29, 16}};
    for (const Op& op : {Op{gru}, Op{taken}, Op{added}}) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            if (!has_pass(op, pass)) continue;
            const std::vector<Checked> checked = of_all({op, pass, 2});
            EXPECT_GE(checked.size(), 2U);
            for (const Checked& each : checked) EXPECT_LE(each.error, each.tolerance) << to_string(op);
        }
    }
}

// Sums of every operator may be long: 262144 products of a weight's gradient in volumes and transposed convolutions,
// 200000 in stacks and groups.
TEST(Check, AllowsLongSumsOfEveryOperator) {
    Conv volume{1, 64, 64, 1, {}};
    volume.depth = 64;
    const ConvTranspose transposed{.channels = 1, .height = 512, .width = 512, .filters = 1, .window = {}};
    const GroupedMatMul groups{.experts = 2, .rows = 2, .n = 4, .k = 200000};
    const Op stacks = BatchedMatMul{{2, 2, 200000}, {2, 200000, 4}};
    for (const Problem& problem : {Problem{volume, Pass::backward_weights, 1},
                                   {transposed, Pass::backward_weights, 1},
                                   {groups, Pass::forward, 1},
                                   {stacks, Pass::forward, 1}}) {
        SCOPED_TRACE(to_string(problem));
        for (const Checked& each : of_all(problem)) {
            EXPECT_GT(each.tolerance, 4e-5);
            EXPECT_LE(each.tolerance, 1e-3) << "of what transforms";
            EXPECT_LE(each.error, each.tolerance);
        }
    }
}

}  // namespace
}  // namespace rehearse::bench
