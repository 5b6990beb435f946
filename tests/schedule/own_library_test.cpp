// SPDX-License-Identifier: Apache-2.0
// allreduce=own: the library that the machine's file names.
#include "schedule/own_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/models.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {
namespace {

using testing::HasSubstr;

struct Chosen {
    std::set<std::string> sums;
    std::string why;
};

Chosen chosen(const std::string& name, const std::string& text, std::int64_t devices) {
    const Machine machine = models::load_machine(name);
    const Network network = models::load_network("resnet50");
    const Plan plan = parse_plan(text);
    const Schedule schedule = make_schedule(network, machine, plan, Job{.devices = devices, .batch_per_device = 32});
    Chosen result{.sums = {}, .why = why_rings(plan, machine, schedule)};
    for (const Step& step : schedule.classes.front().steps) {
        if (const auto* sum = std::get_if<Communicate>(&step.action); sum != nullptr && sum->of_bucket())
            result.sums.insert(to_string(sum->algorithm));
    }
    return result;
}

TEST(OwnLibrary, IsTheMachines) {
    EXPECT_EQ(chosen("summit", "data:allreduce=own", 12).sums, (std::set<std::string>{"nccl"}));
    EXPECT_EQ(chosen("summit", "data:allreduce=own", 12).why, "");
    EXPECT_EQ(chosen("frontier", "data:allreduce=own", 16).sums, (std::set<std::string>{"rccl"}));
    EXPECT_EQ(chosen("summit", "data:allreduce=own:zero=2", 12).sums, (std::set<std::string>{"nccl"}))
        << "reduce-scatters and all-gathers, too";
    EXPECT_EQ(chosen("summit", "data:allreduce=own", 1).why, "") << "nothing is summed";
}

TEST(OwnLibrary, IsARingWhereTheFileNamesNone) {
    const Chosen found = chosen("titanx-server", "data:allreduce=own", 2);
    EXPECT_EQ(found.sums, (std::set<std::string>{"ring"}));
    EXPECT_THAT(found.why, HasSubstr("machine 'titanx-server' names no library"));
    EXPECT_EQ(chosen("titanx-server", "data:allreduce=ring", 2).why, "") << "which the plan asked for";
}

// NCCL over the hosts' memory is no NCCL over NVLink.
TEST(OwnLibrary, IsARingOverAnotherTransport) {
    const Chosen found = chosen("dgx1-v100@nccl-shm", "data:allreduce=own", 8);
    EXPECT_EQ(found.sums, (std::set<std::string>{"ring"}));
    EXPECT_THAT(found.why, HasSubstr("'dgx1-v100@nccl-shm' says of nccl is of its network without that transport"));
    EXPECT_EQ(chosen("dgx1-v100", "data:allreduce=own", 8).sums, (std::set<std::string>{"nccl"}));
}

// Intel's oneCCL is taken to choose as NCCL does, of which nothing is known for its GPUs.
TEST(OwnLibrary, IsARingOfDevicesThatItDoesNotKnow) {
    const Chosen found = chosen("aurora", "data:allreduce=own", 24);
    EXPECT_EQ(found.sums, (std::set<std::string>{"ring"}));
    EXPECT_EQ(found.why, "nccl knows no device 'max-1550'");
}

// Summit has six devices a node: 15 are six, six and three; of tensor=4 a group along data has the first of each four
// ranks, 0, 4 and 8, of which two are on the first node.
TEST(OwnLibrary, IsARingWhereNodesHaveUnlikeNumbersOfRanks) {
    const Chosen last = chosen("summit", "data:allreduce=own", 15);
    EXPECT_EQ(last.sums, (std::set<std::string>{"ring"}));
    EXPECT_THAT(last.why, HasSubstr("a node has 6 of its ranks and another 3, for which nccl is not modelled"));
    EXPECT_THAT(chosen("summit", "data=3:allreduce=own,tensor=4", 12).why, HasSubstr("2 of its ranks and another 1"));
    EXPECT_EQ(chosen("summit", "data=6:allreduce=own,tensor=2", 12).why, "");
}

}  // namespace
}  // namespace rehearse::schedule
