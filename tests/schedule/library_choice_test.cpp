// SPDX-License-Identifier: Apache-2.0
// allreduce=LIBRARY: each bucket gets what the library's table says for its size.
#include "schedule/library_choice.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::schedule {
namespace {

std::set<std::string> sums(const std::string& plan, std::int64_t devices) {
    const Machine machine = models::load_machine("abci");  // 4 V100 a node
    const Network network = models::load_network("resnet50");
    const Schedule schedule =
        make_schedule(network, machine, parse_plan(plan), Job{.devices = devices, .batch_per_device = 32});
    std::set<std::string> names;
    for (const Step& step : schedule.classes.front().steps) {
        if (const auto* sum = std::get_if<Communicate>(&step.action); sum != nullptr && sum->of_bucket())
            names.insert(to_string(sum->algorithm));
    }
    return names;
}

// ResNet-50's largest layers have megabytes, its normalisations some hundred bytes, each its own bucket here.
TEST(LibraryChoice, GoesBucketByBucket) {
    EXPECT_EQ(sums("data:allreduce=openmpi(4.0):bucket=1B", 32), (std::set<std::string>{"doubling", "ring"}));
    EXPECT_EQ(sums("data:allreduce=openmpi(4.0):bucket=25MB", 32), (std::set<std::string>{"ring"}));
    EXPECT_EQ(sums("data:allreduce=openmpi:bucket=25MB", 32), (std::set<std::string>{"halving"}));
    EXPECT_EQ(sums("data:allreduce=mpich:bucket=25MB", 32), (std::set<std::string>{"hierarchical(tree,halving)"}));
    EXPECT_EQ(sums("data:allreduce=mpich:bucket=25MB", 4), (std::set<std::string>{"halving"}));
}

// 30 ranks do not fill nodes of 4: no rank can speak for a node.
TEST(LibraryChoice, LeavesUnevenNodesFlat) {
    EXPECT_EQ(sums("data:allreduce=mpich:bucket=25MB", 30), (std::set<std::string>{"halving"}));
}

TEST(LibraryChoice, RefusesWhatIsNotKnown) {
    EXPECT_THROW(parse_plan("data:allreduce=openmpi(1.0)"), InputError);
    EXPECT_THROW(parse_plan("data:allreduce=openmp"), InputError);
}

}  // namespace
}  // namespace rehearse::schedule
