// SPDX-License-Identifier: Apache-2.0
#include "calibrate/boards.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prices/library_point.hpp"

namespace rehearse::calibrate {
namespace {

// 60 kernels that take `factor` times what the library's best algorithm does, all by implicit GEMM as it is said.
MeasuredBoard board(std::string name, double factor) {
    MeasuredBoard result;
    result.name = std::move(name);
    result.sheet = {FlopRate{1e13},
                    Bandwidth{1e12},
                    40,
                    1,
                    Bytes{4},
                    prices::Board{FlopRate{1e13}, Bandwidth{1e12}, 40, Bytes{4}, false}};
    result.experts = first_experts("conv2d");
    for (const std::int64_t channels : {16, 64, 100, 256, 300, 512})
        for (const std::int64_t side : {5, 7, 11, 14, 28}) {
            for (const std::int64_t batch : {8, 32}) {
                const Problem problem{Conv{channels, side, side, 64, Window{3, 3, 1, 1, 1, 1, 1, 1}}, Pass::forward,
                                      batch, DataType::f32};
                const Seconds bound = library_point(problem, *result.sheet.board)->bound;
                result.kernels.push_back({{problem, bound * factor}, 2});
            }
        }
    return result;
}

TEST(Boards, AtTheirBoundHaveNoErrorAndFamiliesAreCounted) {
    const std::vector<JudgedChoice> rows = judge_bound(board("exact", 1));
    ASSERT_EQ(rows.size(), 60U);
    EXPECT_NEAR(summarize(judged_of(rows)).p90, 0, 1e-12);
    std::size_t implicit = 0;
    for (const BoardKernel& kernel : board("exact", 1).kernels) {
        const auto shape = prices::convolution_shape(kernel.sample.problem);
        implicit += prices::library_choice(*shape, *board("exact", 1).sheet.board).name() == "implicit gemm" ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(family_right(rows), static_cast<double>(implicit) / 60);
    EXPECT_LT(family_right(rows), 1) << "some of them should go by Winograd's";
}

TEST(Boards, AreJudgedOnKernelsThatTheirPricesHaveNotSeen) {
    const MeasuredBoard slow = board("slow", 1.7);
    const std::vector<JudgedChoice> rows = judge_unseen(slow, 20);
    EXPECT_EQ(rows.size(), 40U);
    for (const JudgedChoice& row : rows)
        for (const std::size_t i : every(slow.kernels.size(), 20))
            EXPECT_NE(row.judged.problem, slow.kernels[i].sample.problem);
    EXPECT_LT(summarize(judged_of(rows)).median, 0.05) << "20 kernels say that all take 1.7 times their bound";
    EXPECT_EQ(family_right(rows), 1) << "all 20 ran by implicit GEMM, whatever the bound would choose";
    EXPECT_EQ(judge_unseen_sides(slow, 40).size(), 60U) << "each is left out once, with all of its side";
}

// Nothing says that this board takes twice its bound until its own kernels do.
TEST(Boards, LeftOutGetOneFactorFromTheirOwnKernels) {
    const std::vector<MeasuredBoard> boards{board("one", 1), board("two", 1.1), board("three", 2)};
    const ErrorSummary sheet = summarize(judged_of(judge_left_out(boards, 2, 40, 0)));
    const ErrorSummary pilots = summarize(judged_of(judge_left_out(boards, 2, 40, 20)));
    EXPECT_NEAR(sheet.median, 1 - std::sqrt(1.1) / 2, 0.02);
    EXPECT_LT(pilots.median, 0.02);
    EXPECT_EQ(pilots.rows, 40U) << "the pilots are not judged";
    EXPECT_EQ(family_right(judge_left_out(boards, 2, 40, 0)), 1) << "as on the other boards";
}

TEST(Every, TakesEvenlyAndNeverMore) {
    EXPECT_EQ(every(10, 5), (std::vector<std::size_t>{0, 2, 4, 6, 8}));
    EXPECT_EQ(every(11, 5).size(), 4U);
    EXPECT_EQ(every(3, 5).size(), 3U);
}

}  // namespace
}  // namespace rehearse::calibrate
