// SPDX-License-Identifier: Apache-2.0
// That problems are measured and named, not how long they take.
#include "bench/compute.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/host.hpp"
#include "core/error.hpp"
#include "kernels/backend.hpp"
#include "kernels/convert.hpp"

namespace rehearse::bench {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

Options quick(CacheState cache = CacheState::primed) {
    Options options;
    options.rounds = {.count = 3, .budget = Seconds{0.01}};
    options.cache = cache;
    return options;
}

// A footprint of 100 kB: that there is much memory is not what is tested here.
std::vector<calibrate::Needed> small(const std::vector<Problem>& problems) {
    std::vector<calibrate::Needed> needed;
    for (const Problem& problem : problems) needed.push_back({problem, Bytes{1e5}});
    return needed;
}

const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};

// Every operator that can run, as small as it may be and not square.
std::vector<Op> tiny_operators() {
    return {Conv{2, 5, 4, 3, same, 1, true},
            MatMul{.m = 1, .n = 3, .k = 5},
            Pool{PoolKind::max, 2, 6, 4, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}},
            Pool{PoolKind::average, 2, 6, 4, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}},
            BatchNorm{3, 4, 5},
            Lrn{7, 3, 2},
            Activation{Nonlinearity::relu, {3, 4, 5}},
            Activation{Nonlinearity::gelu, {7}},
            Add{{3, 4, 5}, 3},
            Concat{{1, 2}, 3, 4},
            ChannelPad{2, 3, 4, 1, 1},
            Dropout{{10}},
            Softmax{5},
            SoftmaxLoss{5},
            SoftmaxLoss{.classes = 5, .rows = 3},
            MatMul{3, 7, 4, false, {}, true},
            Attention{2, 3, 5, 4},
            Attention{2, 5, 5, 4, true, true},
            LayerNorm{3, 7},
            Embedding{3, 11, 4, 5, 2},
            EmbeddingBag{2, 3, 11, 4},
            Interaction{3, 4},
            SoftmaxTerms{5, 3, 2},
            TermsLoss{3, 2},
            ChannelSums{3, 4, 5},
            DispatchTokens{{3, 4, 2, 1, 2}},
            CombineTokens{{3, 4, 2, 2, 2}},
            GroupedMatMul{2, 3, 4, 5},
            SgdUpdate{33}};
}

std::vector<Problem> every_pass() {
    std::vector<Problem> problems;
    for (const Op& op : tiny_operators()) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            if (has_pass(op, pass)) problems.push_back({op, pass, 2});
        }
    }
    problems.push_back({SgdUpdate{33}, Pass::update, 1});
    problems.push_back({AdamUpdate{33}, Pass::update, 1});
    problems.push_back({LambUpdate{33, 2}, Pass::update, 1});
    return problems;
}

TEST(Measure, TimesEveryPassOfEveryOperatorInEachCacheState) {
    const std::vector<Problem> problems = every_pass();
    for (const CacheState cache : {CacheState::hot, CacheState::rotating, CacheState::primed}) {
        const std::vector<Sample> samples = measure(small(problems), quick(cache)).samples;
        ASSERT_THAT(samples, SizeIs(problems.size()));
        for (std::size_t i = 0; i < samples.size(); ++i) {
            SCOPED_TRACE(to_string(problems[i]));
            EXPECT_EQ(samples[i].problem, problems[i]);
            EXPECT_GT(samples[i].median.value, 0);
            EXPECT_TRUE(std::isfinite(samples[i].error) && samples[i].error >= 0);
            EXPECT_EQ(samples[i].count, 3);
            EXPECT_EQ(samples[i].backend, kernels::choose(problems[i].op, problems[i].batch, DataType::f32).name());
        }
    }
}

TEST(Measure, GivesJsonWhoseNamesReproduceTheProblems) {
    const std::vector<Problem> problems{{Conv{2, 5, 4, 3, same}, Pass::backward_weights, 2},
                                        {SgdUpdate{33}, Pass::update, 1}};
    const Measurement measurement = measure(small(problems), quick());
    const json document = json::parse(measurement.json);
    EXPECT_TRUE(document.at("context").contains("host_name"));
    const json& rows = document.at("benchmarks");
    ASSERT_THAT(rows, SizeIs(2 * 3));  // problems x rounds
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto name = rows[i].at("name").get<std::string>();
        const std::size_t slash = name.find('/');
        ASSERT_NE(slash, std::string::npos) << name;
        EXPECT_EQ(parse_problem(name.substr(0, slash)), problems[i % 2]);
        EXPECT_EQ(name.substr(slash + 1), measurement.samples[i % 2].backend);
        EXPECT_EQ(rows[i].at("repetition_index"), i / 2);
    }
}

TEST(Measure, CountsOperationsAndBytesASecond) {
    const Problem problem{MatMul{.m = 1, .n = 3, .k = 5, .bias = false}, Pass::forward, 7};
    const json rows = json::parse(measure(small({problem}), quick()).json).at("benchmarks");
    for (const json& row : rows) {
        const double seconds = row.at("median_s");  // of which the rates are, not of the mean in real_time
        // 2 * 7 * 3 * 5 operations; 7 * 5 + 5 * 3 + 7 * 3 floats. To the digits that JSON keeps.
        EXPECT_NEAR(row.at("flop/s").get<double>() * seconds, 210, 1e-6 * 210);
        EXPECT_NEAR(row.at("B/s").get<double>() * seconds, 284, 1e-6 * 284);
    }
}

TEST(Measure, TakesTheBackendThatIsAskedFor) {
    Options options = quick();
    options.backend = "reference";
    const Measurement measurement = measure(small({{Activation{Nonlinearity::relu, {8}}, Pass::forward, 1}}), options);
    EXPECT_EQ(measurement.samples.front().backend, "reference");
    EXPECT_THAT(measurement.json, HasSubstr("activation:n1:8:relu:f32:forward/reference"));
}

TEST(Measure, TheTeamsMeanIsWhatCounts) {
    Options options = quick();
    // The other ranks are slow; none of them (0) was asked to end.
    options.team.mean = [](double own) { return own > 0 ? 0.25 : 0.0; };
    const Sample sample =
        measure(small({{Activation{Nonlinearity::relu, {8}}, Pass::forward, 1}}), options).samples.front();
    EXPECT_EQ(sample.median, Seconds{0.25});
    EXPECT_EQ(sample.error, 0);
}

TEST(Measure, MeetsTheTeamBeforeEachProblemOfEachRound) {
    Options options = quick();
    int met = 0;
    options.team.barrier = [&met] { ++met; };
    measure(
        std::vector<Problem>{{Activation{Nonlinearity::relu, {8}}, Pass::forward, 1}, {Softmax{4}, Pass::forward, 1}},
        options);
    EXPECT_EQ(met, 2 * (1 + 3));  // the pilot and three rounds
}

TEST(Measure, RefusesWhatNoBackendCanRun) {
    EXPECT_THROW(measure(std::vector<Problem>{}, quick()), InputError);
    EXPECT_THROW(measure(std::vector<Problem>{{Unknown{"Foo", 8, 0, {8}}, Pass::forward, 1}}, quick()), InputError);
    Options options = quick();
    options.backend = "no-such";
    EXPECT_THROW(measure(std::vector<Problem>{{Softmax{4}, Pass::forward, 1}}, options), InputError);
}

TEST(Measure, EnlargesTheArenaForAProblemBeyondItsFootprint) {
    const Problem problem{Activation{Nonlinearity::relu, {100000}}, Pass::backward_data, 1};
    EXPECT_GT(measure(std::vector<calibrate::Needed>{{problem, Bytes{64}}}, quick()).samples.front().median.value, 0);
}

// Random values come again after 2^20 - 3 of them, but from another place on.
TEST(Arena, GivesNoTwoOperandsTheSameValues) {
    constexpr std::int64_t count = 1 << 20;
    Arena arena{4 * count, 1};
    for (const DataType type : {DataType::f32, DataType::f16}) {
        arena.reset();
        std::vector<std::vector<float>> operands;
        for (int i = 0; i < (type == DataType::f32 ? 4 : 8); ++i) {
            operands.emplace_back(count);
            kernels::convert(arena.random(count, type), operands.back());
        }
        for (std::size_t a = 0; a < operands.size(); ++a) {
            for (std::size_t b = a + 1; b < operands.size(); ++b) {
                for (const std::size_t shift : {0, 1, 2, 3, 6, 9, 13, 16}) {
                    std::int64_t same = 0;
                    for (std::size_t i = 0; i + shift < count; ++i) same += operands[a][i + shift] == operands[b][i];
                    EXPECT_LT(same, count / 100) << a << " " << b << " " << shift << " " << to_string(type);
                }
            }
        }
    }
}

}  // namespace
}  // namespace rehearse::bench
