// SPDX-License-Identifier: Apache-2.0
// Every way of updating embedding tables against sums written out here; weights are whole numbers, sums exact.
#include "bench/embedding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace rehearse::bench {
namespace {

EmbeddingWorkload small(double skew) {
    return {.op = {.tables = 3, .lookups = 4, .vocabulary = 11, .width = 5}, .batch = 6, .skew = skew, .seed = 7};
}

TEST(EmbeddingTables, SumBagsAndUpdateRowsInEveryWayAndOnAnyThreads) {
    for (const int threads : {1, 2, 3}) {
        for (const EmbeddingWay way : embedding_ways()) {
            SCOPED_TRACE(testing::Message() << to_string(way) << " on " << threads);
            const EmbeddingWorkload workload = small(1.2);
            const EmbeddingBag& op = workload.op;
            EmbeddingTables tables{workload, threads};
            std::vector<float> weights, bags;
            for (std::int64_t i = 0; i < op.tables * op.vocabulary * op.width; ++i)
                weights.push_back(tables.weight(way, i));
            const auto rows = tables.rows();
            std::vector<float> updated = weights;
            for (std::size_t bag = 0; bag < rows.size() / 4; ++bag) {
                for (std::size_t c = 0; c < 5; ++c) {
                    float sum = 0;
                    for (std::size_t l = 0; l < 4; ++l) {
                        const std::size_t at = static_cast<std::size_t>(rows[bag * 4 + l]) * 5 + c;
                        sum += weights[at];
                        updated[at] -= 0.25F * tables.gradient(static_cast<std::int64_t>(bag))[c];
                    }
                    bags.push_back(sum);
                }
            }
            tables.forward(way);
            EXPECT_TRUE(std::ranges::equal(tables.bags(), bags));
            tables.update(way);
            for (std::size_t i = 0; i < updated.size(); ++i)
                ASSERT_EQ(tables.weight(way, static_cast<std::int64_t>(i)), updated[i]) << i;
        }
    }
}

TEST(EmbeddingTables, PicksRowsOfEachBagsOwnTable) {
    EmbeddingTables tables{small(0), 2};
    const auto rows = tables.rows();
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i] / 11, i / 4 % 3);
}

TEST(ZipfRows, AreAsOftenAsTheLawSays) {
    // 1 / r over three rows: 6, 3 and 2 of eleven. 110,000 draws: a standard deviation is at most 166 of them.
    std::map<std::int32_t, int> counted;
    for (const std::int32_t row : zipf_rows(3, 1, 110'000, 5)) ++counted[row];
    std::vector<int> counts;
    for (const auto& [row, count] : counted) counts.push_back(count);
    std::ranges::sort(counts);
    ASSERT_EQ(counts.size(), 3U);
    EXPECT_NEAR(counts[0], 20'000, 700);
    EXPECT_NEAR(counts[1], 30'000, 700);
    EXPECT_NEAR(counts[2], 60'000, 700);
    EXPECT_THROW(zipf_rows(3, -1, 1, 1), InputError);
}

TEST(EmbeddingTables, RefuseSizesThatCannotBe) {
    EmbeddingWorkload none = small(0);
    none.op.lookups = 0;
    EXPECT_THROW((EmbeddingTables{none, 1}), InputError);
}

TEST(MeasureEmbedding, TimesEachWay) {
    const auto samples = measure_embedding(small(1), 2, {.count = 1, .budget = Seconds{0.1}, .iterations = 2});
    ASSERT_EQ(samples.size(), embedding_ways().size());
    for (const EmbeddingSample& sample : samples) {
        EXPECT_GT(sample.forward, Seconds{});
        EXPECT_GT(sample.update, Seconds{});
    }
}

}  // namespace
}  // namespace rehearse::bench
