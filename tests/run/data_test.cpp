// SPDX-License-Identifier: Apache-2.0
#include "run/data/data.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "core/error.hpp"

namespace rehearse::run {
namespace {

std::vector<float> sample(const SyntheticTask& task, const Shape& shape, std::int64_t index) {
    std::vector<float> values(static_cast<std::size_t>(elements(shape)));
    task.fill(index, values);
    return values;
}

double squared_distance(std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
    return sum;
}

TEST(SyntheticTask, ASampleIsTheSameWhoeverMakesIt) {
    const Shape shape{3, 8, 8};
    const SyntheticTask a{shape, 10, 4}, b{shape, 10, 4};
    for (const std::int64_t index : {0, 1, 1000000}) {
        EXPECT_EQ(sample(a, shape, index), sample(b, shape, index));
        EXPECT_EQ(a.label(index), b.label(index));
    }
    EXPECT_NE(sample(a, shape, 0), sample(a, shape, 1));
    EXPECT_NE(sample(a, shape, 0), sample(SyntheticTask(shape, 10, 5), shape, 0));
}

TEST(SyntheticTask, LabelsAreSpreadOverAllClasses) {
    const SyntheticTask task{{4}, 10, 1};
    std::vector<int> counts(10);
    for (std::int64_t i = 0; i < 10000; ++i) ++counts.at(static_cast<std::size_t>(task.label(i)));
    // 1000 each on average, standard deviation 30: five of them.
    EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(850), testing::Lt(1150))));
}

// The simplest learner there is, the nearest mean of samples it has seen, tells the classes of new ones.
TEST(SyntheticTask, CanBeLearned) {
    const Shape shape{1, 16, 16};
    const SyntheticTask task{shape, 10, 2};
    std::vector<std::vector<float>> means(10, std::vector<float>(256));
    std::vector<int> counts(10);
    for (std::int64_t i = 0; i < 500; ++i) {
        const auto label = static_cast<std::size_t>(task.label(i));
        const std::vector<float> values = sample(task, shape, i);
        ++counts[label];
        for (std::size_t k = 0; k < values.size(); ++k) means[label][k] += values[k];
    }
    for (std::size_t c = 0; c < means.size(); ++c) {
        for (float& value : means[c]) value /= static_cast<float>(counts[c]);
    }
    int right = 0;
    for (std::int64_t i = 500; i < 700; ++i) {
        const std::vector<float> values = sample(task, shape, i);
        const auto nearest = std::ranges::min_element(
            means, {}, [&](const std::vector<float>& mean) { return squared_distance(values, mean); });
        right += nearest - means.begin() == task.label(i);
    }
    EXPECT_GT(right, 190);
}

TEST(SyntheticTask, NeighboursInAPictureAreAlikeAndSizesAreOdd) {
    const Shape shape{2, 5, 7};
    const SyntheticTask task{shape, 3, 8};
    for (const float value : sample(task, shape, 0)) EXPECT_LT(std::abs(value), 10);
    EXPECT_EQ(sample(SyntheticTask({1}, 1, 1), {1}, 0).size(), 1U);
}

TEST(PixelTask, GivesEachPixelALabelThatItsLevelsTell) {
    const SyntheticTask task{{4, 8, 12}, 3, 5, {8, 12}};
    std::vector<float> sample(4 * 96), again(sample.size());
    std::vector<std::int32_t> labels(96);
    std::set<std::int32_t> seen;
    // Noise reaches 0.87 from a level: the mean of a class's pixels in two samples is the same level.
    std::vector<std::array<double, 3>> means;
    for (const std::int64_t index : {3, 4}) {
        task.fill(index, sample);
        task.fill(index, again);
        EXPECT_EQ(sample, again);
        task.fill_labels(index, labels);
        std::array<double, 3> sum{}, count{};
        for (std::size_t i = 0; i < labels.size(); ++i) {
            ASSERT_TRUE(labels[i] >= 0 && labels[i] < 3);
            sum[labels[i]] += sample[i];
            ++count[labels[i]];
        }
        for (std::size_t i = 0; i < 3; ++i) {
            if (count[i] > 0) seen.insert(static_cast<std::int32_t>(i));
            sum[i] = count[i] > 8 ? sum[i] / count[i] : NAN;
        }
        means.push_back(sum);
    }
    EXPECT_GT(seen.size(), 1U);
    for (std::size_t i = 0; i < 3; ++i) {
        if (std::isnan(means[0][i]) || std::isnan(means[1][i])) continue;
        EXPECT_NEAR(means[0][i], means[1][i], 2 * 0.5 * 3 / std::sqrt(8.0));  // three deviations of each mean
    }
}

TEST(PixelTask, RefusesLabelsOfAnotherSize) { EXPECT_THROW((SyntheticTask{{4, 8, 12}, 3, 5, {8, 6}}), InputError); }
TEST(SyntheticTokens, AreIdsAndTheSameWhoeverMakesThem) {
    const SyntheticTokens a{1000, 3}, b{1000, 3};
    std::vector<std::int32_t> tokens(500), next(500), again(500), next_again(500);
    a.fill(7, tokens, next);
    b.fill(7, again, next_again);
    EXPECT_EQ(tokens, again);
    EXPECT_EQ(next, next_again);
    EXPECT_THAT(tokens, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(1000))));
    EXPECT_TRUE(std::equal(tokens.begin() + 1, tokens.end(), next.begin())) << "next is the sequence, one later";
    a.fill(8, again, next_again);
    EXPECT_NE(tokens, again);
}

// Whoever remembers what followed a token last time is right more often than not.
TEST(SyntheticTokens, CanBeLearned) {
    const SyntheticTokens language{50, 1};
    std::vector<std::int32_t> tokens(4000), next(4000), seen(50, -1);
    language.fill(0, tokens, next);
    int right = 0, known = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::int32_t& guess = seen[static_cast<std::size_t>(tokens[i])];
        known += guess >= 0 ? 1 : 0;
        right += guess == next[i] ? 1 : 0;
        guess = next[i];
    }
    EXPECT_GT(known, 3900);
    EXPECT_GT(right, known / 2) << "9/16 where both followed as they like, and some by chance";
}

TEST(SyntheticTokens, OfAClassTellTheClass) {
    const SyntheticTokens ids{1000, 1};
    std::vector<std::int32_t> one(400), same(400), other(400);
    ids.fill_class(0, 3, one);
    ids.fill_class(1, 3, same);
    ids.fill_class(2, 4, other);
    const auto alike = [&](const std::vector<std::int32_t>& a) {
        int count = 0;
        for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == one[i] ? 1 : 0;
        return count;
    };
    // Both take the favourite a quarter of the time: 100 of 400, standard deviation 9. By chance alone below 1 % agree.
    EXPECT_GT(alike(same), 60);
    EXPECT_LT(alike(other), 30);
}

}  // namespace
}  // namespace rehearse::run
