// SPDX-License-Identifier: Apache-2.0
#include "schedule/remedies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/models.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::IsSupersetOf;

Bytes taken(const Network& network, std::string_view plan, const Job& job) {
    return make_schedule(network, sixes(), parse_plan(plan), job).memory_peak;
}

/// What a remedy says, made and measured.
Bytes taken(const Network& network, std::string_view plan, Job job, std::string text) {
    std::string changed{plan};
    while (!text.empty()) {
        const std::size_t space = text.find(' '), end = std::min(text.find(' ', space + 1), text.size());
        const std::string option = text.substr(0, space), value = text.substr(space + 1, end - space - 1);
        if (option == "--plan") changed = value;
        if (option == "--batch") job.batch_per_device = std::stoll(value);
        if (option == "--global-batch") job.global_batch = std::stoll(value);
        if (option == "--precision") job.precision = Precision::mixed;
        text = end == text.size() ? "" : text.substr(end + 1);
    }
    return taken(network, changed, job);
}

constexpr std::int64_t samples = 8;

TEST(Remedies, FitAndTakeWhatTheySay) {
    const Job job{.devices = 6, .batch_per_device = samples};
    for (const char* plan : {"data:bucket=1B", "data=3,pipe=2:microbatches=2", "tensor=2,data=3:zero=1"}) {
        const Bytes now = taken(tower(6), plan, job);
        for (const double share : {0.9, 0.6}) {
            SCOPED_TRACE(plan + std::string{" in "} + std::to_string(share));
            const std::vector<Remedy> found = remedies(tower(6), sixes(), parse_plan(plan), job, share * now);
            EXPECT_FALSE(found.empty());
            for (const Remedy& remedy : found) {
                EXPECT_LE(remedy.memory, share * now);
                EXPECT_EQ(taken(tower(6), plan, job, remedy.text), remedy.memory) << remedy.text;
            }
        }
    }
}

// What a user adds to the command must go with what is in it: --global-batch stays, and --batch excludes it.
TEST(Remedies, KeepTheGlobalBatch) {
    const Job job{.devices = 6, .global_batch = 6 * samples};
    for (const char* plan : {"data:bucket=1B", "data=3,pipe=2:microbatches=2"}) {
        const Bytes now = taken(tower(6), plan, job);
        bool fewer = false;
        for (const double share : {0.9, 0.7, 0.5}) {
            SCOPED_TRACE(plan + std::string{" in "} + std::to_string(share));
            for (const Remedy& remedy : remedies(tower(6), sixes(), parse_plan(plan), job, share * now)) {
                EXPECT_EQ(remedy.text.find("--batch"), std::string::npos) << remedy.text;
                EXPECT_LE(remedy.memory, share * now);
                EXPECT_EQ(taken(tower(6), plan, job, remedy.text), remedy.memory) << remedy.text;
                fewer = fewer || remedy.text.starts_with("--global-batch");
            }
        }
        EXPECT_TRUE(fewer) << plan << ": a smaller batch is one";
    }
}

TEST(Remedies, CutABatchOfAnOddNumberOfSamples) {
    const Job job{.devices = 6, .batch_per_device = 15};
    const Bytes now = taken(tower(6), "data:bucket=1B", job);
    std::vector<std::string> texts;
    for (const Remedy& remedy : remedies(tower(6), sixes(), parse_plan("data:bucket=1B"), job, 0.8 * now)) {
        EXPECT_EQ(taken(tower(6), "data:bucket=1B", job, remedy.text), remedy.memory) << remedy.text;
        texts.push_back(remedy.text);
    }
    EXPECT_THAT(texts, IsSupersetOf({"--plan data=6:bucket=1B:microbatches=3", "--plan data=6:bucket=1B:microbatches=5",
                                     "--plan data=6:bucket=1B:microbatches=15"}));
}

TEST(Remedies, AreSequenceParallelismAndRecomputedBlocksOfATransformer) {
    const Network network = models::load_network("gpt-h1024-a8-l8-v1024@256");
    const Job job{.devices = 6, .batch_per_device = 3};
    const Bytes now = taken(network, "data=3,tensor=2", job);
    std::vector<std::string> texts;
    for (const Remedy& remedy : remedies(network, sixes(), parse_plan("data=3,tensor=2"), job, 0.95 * now)) {
        EXPECT_LE(remedy.memory, 0.95 * now) << remedy.text;
        EXPECT_EQ(taken(network, "data=3,tensor=2", job, remedy.text), remedy.memory) << remedy.text;
        texts.push_back(remedy.text);
    }
    EXPECT_THAT(texts, IsSupersetOf({"--plan data=3,tensor=2:sequence=on", "--plan data=3:recompute=blocks,tensor=2",
                                     "--plan data=3:microbatches=3,tensor=2"}));
}

TEST(Remedies, KeepAnImagesRows) {
    const Job job{.devices = 8, .batch_per_device = samples};
    const Network network = models::load_network("cosmoflow");
    const Machine machine = models::load_machine("summit");
    const Bytes now = make_schedule(network, machine, parse_plan("data=2,spatial=2x2"), job).memory_peak;
    const std::vector<Remedy> found = remedies(network, machine, parse_plan("data=2,spatial=2x2"), job, 0.9 * now);
    bool plans = false;
    for (const Remedy& remedy : found) {
        if (!remedy.text.starts_with("--plan")) continue;
        plans = true;
        EXPECT_NE(remedy.text.find("spatial=2x2"), std::string::npos) << remedy.text;
    }
    EXPECT_TRUE(plans);
}

TEST(Remedies, AreSeveralChangesWhereOneIsNotEnough) {
    const Job job{.devices = 6, .batch_per_device = samples};
    const Bytes now = taken(tower(6), "data:bucket=1B", job);
    const auto fewest = [&](double share) {
        const std::vector<Remedy> found = remedies(tower(6), sixes(), parse_plan("data:bucket=1B"), job, share * now);
        return found.empty() ? 0 : std::ranges::min_element(found, {}, &Remedy::changes)->changes;
    };
    EXPECT_EQ(fewest(0.9), 1);
    EXPECT_GE(fewest(0.3), 2);
    EXPECT_EQ(fewest(0.001), 0) << "nothing tried is enough";
}

TEST(Remedies, KeepTheOtherOptionsOfThePlan) {
    const Job job{.devices = 6, .batch_per_device = samples};
    const char* plan = "data:allreduce=hierarchical(ring,halving):bucket=1B";
    const Bytes now = taken(tower(6), plan, job);
    for (const Remedy& remedy : remedies(tower(6), sixes(), parse_plan(plan), job, 0.7 * now)) {
        if (!remedy.text.starts_with("--plan")) continue;
        EXPECT_NE(remedy.text.find("allreduce=hierarchical(ring,halving):bucket=1B"), std::string::npos) << remedy.text;
    }
}

}  // namespace
}  // namespace rehearse::schedule
