// SPDX-License-Identifier: Apache-2.0
#include "schedule/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::schedule {
namespace {

using namespace rehearse::literals;
using testing::HasSubstr;

std::string refusal(std::string_view text) {
    try {
        static_cast<void>(parse_plan(text));
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Plan, OfDataAloneLeavesItsSizeOpen) {
    const Plan plan = parse_plan("data");
    ASSERT_EQ(plan.mesh.axes.size(), 1U);
    EXPECT_EQ(plan.mesh.axes[0].name, "data");
    EXPECT_EQ(plan.mesh.axes[0].size, 0);
    EXPECT_FALSE(plan.all_reduce.has_value());
    EXPECT_EQ(plan.bucket, 25_MB);
    EXPECT_EQ(plan.first_bucket, 1_MB);
    EXPECT_TRUE(plan.overlap);
}

TEST(Plan, KeepsEveryOptionAndTheTextAsWritten) {
    const std::string text = "data=4560:allreduce=hierarchical(ring,halving):bucket=16MiB:first=2kB:overlap=off";
    const Plan plan = parse_plan(text);
    EXPECT_EQ(plan.text, text);
    EXPECT_EQ(plan.mesh.axes.at(0).size, 4560);
    EXPECT_EQ(plan.all_reduce, (Algorithm{"hierarchical", "ring", "halving"}));
    EXPECT_EQ(plan.bucket, 16_MiB);
    EXPECT_EQ(plan.first_bucket, 2_kB);
    EXPECT_FALSE(plan.overlap);
}

TEST(Plan, TakesEveryAllReduceThatCoreHas) {
    for (const AlgorithmName& algorithm : algorithms(CollectiveKind::all_reduce)) {
        const std::string_view name = algorithm.name.substr(0, algorithm.name.find('('));
        SCOPED_TRACE(name);
        const std::string value = name == "hierarchical" ? "hierarchical(halving,tree)" : std::string{name};
        EXPECT_EQ(to_string(parse_plan("data=8:allreduce=" + value).all_reduce.value()), value);
        const auto word = std::ranges::find(plan_words(), "allreduce", &PlanWord::name);
        ASSERT_NE(word, plan_words().end());
        EXPECT_THAT(std::string{word->values}, HasSubstr(std::string{name})) << "the help lists it";
    }
}

TEST(Plan, IsRefusedWithTheReasonAndWhatWouldBeRight) {
    struct Case {
        std::string_view text;
        std::vector<std::string> fragments;
    };
    const std::vector<Case> cases{
        {"", {"the plan is empty", "data[=N]"}},
        {",", {"an axis is missing"}},
        {"data=4,", {"an axis is missing"}},
        {"=4", {"an axis is missing"}},
        {"dtaa=4", {"unknown axis 'dtaa'", "did you mean 'data'", "what works: data[=N]"}},
        {"pip=4", {"unknown axis 'pip'", "did you mean 'pipe'"}},
        {"qqqqqqqq", {"unknown axis 'qqqqqqqq'; what works"}},
        {"pipe=8:schedule=gpip", {"unknown schedule 'gpip'", "did you mean 'gpipe'"}},
        {"pipe=8:microbatches=0", {"microbatches=0", "from 1 to"}},
        {"data:microbatches=2,pipe=8:microbatches=4", {"'microbatches' is given twice"}},
        {"pipe=8:chunks=2", {"chunks=2 needs schedule=interleaved"}},
        {"pipe=8:schedule=interleaved:chunks=1", {"at least 2 chunks"}},
        {"pipe=8:scatter=on,data=2", {"scatter=on needs tensor=N"}},
        {"pipe=8:recompute=yes", {"write off, on, blocks, attention"}},
        {"spatial", {"spatial=: write the ranks along each dimension"}},
        {"spatial=2x", {"like spatial=2, 2x2 or 2x2x2"}},
        {"spatial=2,context=2", {"context does not go with spatial", "leave out one"}},
        {"tensor=2:split=rows", {"split=rows: write turns, filters or channels"}},
        {"tensor=2:split=filters:sequence=on", {"layers that are cut by turns"}},
        {"server:shards=8", {"unknown option of server 'shards'"}},
        {"server,data", {"server needs a number", "server=2"}},
        {"server=2", {"server keeps weights for others: add data"}},
        {"server=2:shards=8,data", {"unknown option of server 'shards'"}},
        {"server=2,data,server=1", {"'server' is given twice"}},
        {"server=0,data", {"server=0", "from 1 to"}},
        {"server=2:copies=3,data", {"copies=3 of the weights need as many servers, there are 2"}},
        {"server=2:quorum=1.5,data", {"quorum=1.5: a number above 0, at most 1"}},
        {"server=2,data:zero=1", {"server does not go with zero"}},
        {"server=2,groups=2", {"groups needs data=N"}},
        {"groups=8,data", {"groups needs server=N"}},
        {"data:elastic=0.5", {"elastic needs local=N"}},
        {"data:local=2:average_momentum=0.5", {"average_momentum needs elastic"}},
        {"data:local=2:microbatches=4", {"local does not go with microbatches"}},
        {"data:local=0", {"local=0", "from 1 to"}},
        {"data:compress=top", {"like top(0.01)"}},
        {"data:compress=top(2)", {"top=2: a number above 0, at most 1"}},
        {"replica=4", {"'replica' is not yet"}},
        {"data:combine=updates", {"combine=updates needs allreduce=adasum"}},
        {"data:kfac=1:lag=1", {"kfac does not go with lag=1"}},
        {"data:shares=balanced,expert=2", {"expert does not go with shares"}},
        {"server=2:dense=vectors,data=2,expert=2", {"dense=vectors does not go with expert"}},
        {"server=2,data=2:dense=shared", {"server does not go with dense=shared", "groups=N"}},
        {"expert=4:zero=1", {"unknown option of expert 'zero'"}},
        {"data=4:kfac=1:tables=shared:bottom=one", {"kfac does not go with bottom=one", "layers"}},
        {"tensor=4:allreduce=adasum", {"of data, not of tensor"}},
        {"data=0", {"data=0", "at least one rank"}},
        {"data=-4", {"at least one rank"}},
        {"data=four", {"'four' is not a whole number"}},
        {"data=4.5", {"'4.5' is not a whole number"}},
        {"data=99999999999999999999", {"beyond what is counted here"}},
        {"data=", {"'data=' has no size", "data alone"}},
        {"data=2,data=4", {"'data' is given twice"}},
        {"data:lag=2", {"lag=2: write 0 or 1"}},
        {"data:lag=1:overlap=off", {"lag=1 does not go with overlap=off", "beside the whole next step"}},
        {"data:compress=int8", {"compress=int8: write fp16 or bf16"}},
        {"data:control=ring", {"control=ring: write none, star, or tree(R)"}},
        {"data:control=tree(1)", {"a rank of a tree has 2 children or more"}},
        {"data:variables=some:zero=2", {"write variables=cut or whole"}},
        {"data:variables=whole", {"needs zero=2"}},
        {"data:zero=4", {"zero=4: write 0, 1, 2 or 3"}},
        {"data:buckets=1MB", {"unknown option of data 'buckets'", "did you mean 'bucket'"}},
        {"data:", {"option of data is missing"}},
        {"data::overlap=on", {"option of data is missing"}},
        {"data:bucket", {"'bucket' has no value", "bucket=SIZE"}},
        {"data:bucket=", {"'bucket' has no value"}},
        {"data:bucket=25", {"'25'", "the unit is missing"}},
        {"data:bucket=25MBps", {"unknown unit 'MBps'"}},
        {"data:bucket=0MB", {"must be more than 0"}},
        {"data:bucket=-1MB", {"must be more than 0"}},
        {"data:first=0B", {"must be more than 0"}},
        {"data:bucket=1MB:bucket=2MB", {"'bucket' is given twice"}},
        {"data:overlap=maybe", {"overlap=maybe", "on or off"}},
        {"data:allreduce=rinq", {"unknown algorithm 'rinq'", "did you mean 'ring'"}},
        {"data:allreduce=hierarchical", {"hierarchical(ring,halving)"}},
        {"data:allreduce=hierarchical(ring,halvin)", {"'halvin'", "did you mean 'halving'"}},
        {"data:allreduce=hierarchical(ring,halving", {"'(' without ')'"}},
        {"data:allreduce=ring)", {"')' without '('"}},
        {"data = 4", {"a plan has no spaces"}},
        {"data=4,\ttensor=2", {"a plan has no spaces"}},
        {"plan.toml", {"not yet in this version", "write it as text"}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.text);
        const std::string message = refusal(c.text);
        EXPECT_THAT(message, HasSubstr("--plan '" + std::string{c.text} + "'"));
        for (const std::string& fragment : c.fragments) EXPECT_THAT(message, HasSubstr(fragment));
    }
}

TEST(PlanWords, AreWhatTheParserTakes) {
    for (const PlanWord& word : plan_words()) {
        SCOPED_TRACE(word.name);
        EXPECT_FALSE(word.summary.empty());
        const std::string text = word.axis.empty() ? std::string{word.name} + "="
                                                   : std::string{word.axis} + "=2:" + std::string{word.name} + "=";
        EXPECT_THAT(refusal(text), testing::AllOf(HasSubstr("has no"), HasSubstr(std::string{word.values})));
    }
}

}  // namespace
}  // namespace rehearse::schedule
