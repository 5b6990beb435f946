// SPDX-License-Identifier: Apache-2.0
#include "calibrate/board_errors.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/error.hpp"
#include "prices/library_point.hpp"

namespace rehearse::calibrate {
namespace {

// Products that take `factor` times their bound; half of them are of a network's sizes.
MeasuredBoard products_board(std::string name, std::string kind, double factor) {
    MeasuredBoard result;
    result.name = std::move(name);
    result.kind = std::move(kind);
    const prices::Board sheet{FlopRate{1e13}, Bandwidth{1e12}, 40, Bytes{4}};
    result.sheet = {sheet.peak, sheet.bandwidth, 40, 1, Bytes{4}, sheet};
    result.experts = first_experts("matmul", result.sheet);
    for (const std::int64_t rows : {64, 200, 512, 1000, 4096})
        for (const std::int64_t k : {100, 256, 1024, 3000}) {
            const Problem problem{MatMul{.m = 1, .n = 512, .k = k}, Pass::forward, rows, DataType::f32};
            const Seconds bound = library_point(problem, *result.sheet.board)->bound;
            result.kernels.push_back({{problem, bound * factor}, 0, k == 256 || k == 1024});
        }
    return result;
}

// At 1.25 times the bound each price is a fifth of the time too low.
TEST(BoardErrors, OfTheBoundAreWhatKernelsTakeBeyondIt) {
    const std::vector<PricedRows> priced = judge_own(products_board("a", "matmul", 1.25), Leave::shape, 900);
    ASSERT_EQ(priced.size(), 2U);
    EXPECT_EQ(priced[0].prices, "bound");
    const std::vector<BoardGroup> groups = groups_of(priced[0], "matmul");
    ASSERT_EQ(groups.size(), 2U) << "random sizes and a network's";
    EXPECT_FALSE(groups[0].network);
    EXPECT_EQ(groups[0].errors.rows, 10U);
    EXPECT_NEAR(groups[0].errors.median, 0.2, 1e-9);
    EXPECT_FALSE(groups[0].family_right) << "of convolutions alone";
    EXPECT_EQ(priced[1].rows.size(), 10U) << "half of the kernels judge the other half";
}

TEST(BoardErrors, OfABoardLeftOutAreOfItsKindsOtherBoards) {
    const std::vector<MeasuredBoard> boards{products_board("a", "matmul", 1), products_board("b", "groupedmatmul", 1),
                                            products_board("c", "matmul", 1.25)};
    const std::vector<PricedRows> priced = judge_by_others(boards, 2);
    ASSERT_EQ(priced.size(), 2U);
    EXPECT_EQ(priced[0].rows.size(), 20U);
    EXPECT_NEAR(summarize(judged_of(priced[0].rows)).median, 0.2, 1e-9) << "products stay at the bound";
    EXPECT_TRUE(priced[1].rows.empty()) << "all 20 kernels gave the factor";
    EXPECT_THROW(judge_by_others(boards, 1), InputError) << "nobody else has batches";
}

TEST(KindErrors, AreOfAllBoardsAndTheWorstMedianIsTheKinds) {
    KindErrors errors;
    EXPECT_TRUE(errors.empty());
    EXPECT_EQ(errors.worst_median(), 0);
    const KernelSample sample{{MatMul{.m = 1, .n = 8, .k = 8}, Pass::forward, 8, DataType::f32}, Seconds{1}};
    for (const double predicted : {1.1, 1.2, 1.6})
        errors.add("matmul", std::vector{judge(sample, Seconds{predicted}, 1)});
    errors.add("softmax", std::vector{judge(sample, Seconds{0.7}, 1)});
    errors.add("layernorm", {});
    ASSERT_EQ(errors.summary().size(), 2U);
    EXPECT_EQ(errors.summary().at("matmul").rows, 3U);
    EXPECT_NEAR(errors.summary().at("matmul").median, 0.2, 1e-12);
    EXPECT_NEAR(errors.worst_median(), 0.3, 1e-12);
}

}  // namespace
}  // namespace rehearse::calibrate
