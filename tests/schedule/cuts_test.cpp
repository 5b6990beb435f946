// SPDX-License-Identifier: Apache-2.0
// Stages that end where the plan says: by the number of layers before a cut, or by the name of the last of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "schedule/mesh.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// input -> dense0 ... dense5 -> loss: eight layers, of 16 features.
Network six_dense() {
    Network n{.name = "six-dense", .layers = {}};
    int at = add(n, "input", Input{{16}}, {});
    for (int i = 0; i < 6; ++i) at = add(n, fmt::format("dense{}", i), MatMul{.m = 1, .n = 16, .k = 16}, {at});
    add(n, "loss", SoftmaxLoss{16}, {at});
    return n;
}

/// The names of the layers of each class that are the network's own.
std::vector<std::string> stages_of(const Schedule& schedule) {
    std::vector<std::string> stages;
    for (const RankClass& rank_class : schedule.classes) {
        std::string& text = stages.emplace_back();
        for (const Layer& layer : rank_class.part.network.layers) {
            if (!std::holds_alternative<Communication>(layer.op)) text += (text.empty() ? "" : " ") + layer.name;
        }
    }
    return stages;
}

std::string refusal(const Network& network, std::string_view plan, std::int64_t devices) {
    try {
        static_cast<void>(schedule_of(network, plan, devices, 12));
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Cuts, EndStagesBehindSoManyLayers) {
    EXPECT_THAT(stages_of(schedule_of(six_dense(), "pipe=3:cut=2+3:microbatches=2", 3)),
                ElementsAre("input dense0", "dense1", "dense2 dense3 dense4 dense5 loss"));
}

TEST(Cuts, EndStagesBehindALayerOfThisName) {
    EXPECT_THAT(stages_of(schedule_of(six_dense(), "pipe=3:cut=dense0+dense1:microbatches=2", 3)),
                ElementsAre("input dense0", "dense1", "dense2 dense3 dense4 dense5 loss"));
    EXPECT_THAT(stages_of(schedule_of(six_dense(), "pipe=2:cut=input:microbatches=2", 2)),
                ElementsAre("input", "dense0 dense1 dense2 dense3 dense4 dense5 loss"));
}

TEST(Cuts, SayHowManyStagesThereAre) {
    const Schedule schedule = schedule_of(six_dense(), "data,pipe:cut=2+3:microbatches=2", 6);
    EXPECT_EQ(axis_size(schedule.mesh, "pipe"), 3);
    EXPECT_EQ(axis_size(schedule.mesh, "data"), 2);
    EXPECT_EQ(schedule.plan, "data=2,pipe:cut=2+3:microbatches=2");
}

// Two stages of two chunks: parts 0 and 2 are on the first.
TEST(Cuts, AreOfEveryChunk) {
    const Schedule schedule = schedule_of(six_dense(), "pipe=2:schedule=interleaved:cut=2+4+5:microbatches=2", 2, 2);
    EXPECT_THAT(stages_of(schedule), ElementsAre("input dense0 dense3", "dense1 dense2 dense4 dense5 loss"));
}

TEST(Cuts, AreOfStagesAndNotOfTheirCopies) {
    EXPECT_THAT(stages_of(schedule_of(six_dense(), "pipe:copies=2+1:cut=6:microbatches=2", 3, 2)),
                ElementsAre("input dense0 dense1 dense2 dense3 dense4", "input dense0 dense1 dense2 dense3 dense4",
                            "dense5 loss"));
}

// dense0 is cut by columns, dense1 by rows: what its ranks add up is the first stage's work, and the bias that follows.
TEST(Cuts, LieBehindTheSumsThatCompleteALayer) {
    const Schedule schedule = schedule_of(six_dense(), "pipe=2:cut=dense1:microbatches=2,tensor=2", 4);
    EXPECT_THAT(stages_of(schedule), ElementsAre("input dense0 dense1 dense1.bias",
                                                 "dense2 dense3 dense3.bias dense4 dense5 dense5.bias loss"));
    bool summed = false;
    for (const Layer& layer : schedule.classes.front().part.network.layers) {
        const auto* op = std::get_if<Communication>(&layer.op);
        if (op == nullptr) continue;
        if (op->movement == Movement::sum) summed = true;
        if (op->movement == Movement::send) {
            EXPECT_TRUE(summed);
            EXPECT_EQ(op->shape, (Shape{16}));
        }
    }
    EXPECT_TRUE(summed);
}

// A shortcut that a cut goes through is handed on beside what goes on: of c in the second stage bn is read, and by the
// addition in the third.
TEST(Cuts, MayGoThroughABlock) {
    const Schedule schedule = schedule_of(residual(), "pipe=3:cut=bn+c:microbatches=2", 3);
    EXPECT_THAT(stages_of(schedule), ElementsAre("input bn", "c", "sum flatten drop f loss"));
}

TEST(Cuts, AreRefusedWithTheReasonAndWhatWouldBeRight) {
    struct Case {
        std::string_view plan;
        std::int64_t devices;
        std::vector<std::string> fragments;
    };
    const std::vector<Case> cases{
        {"pipe=4:cut=2+3", 4, {"cut=2+3: 3 parts of the network, but 4 stages", "name 3 layers"}},
        {"pipe=2:schedule=interleaved:cut=2", 2, {"2 parts of the network, but 2 stages of 2 chunks", "name 3 layers"}},
        {"pipe:schedule=interleaved:cut=2+3", 2, {"cut=2+3: 3 parts of the network"}},
        {"pipe=3:copies=2+1:cut=2+3", 3, {"3 parts of the network, but 2 stages: name 1 layer"}},
        {"pipe=3:cut=3+2", 3, {"cut=3+2: 2 comes no later than 3", "in the order of the network"}},
        {"pipe=3:cut=3+3", 3, {"3 comes no later than 3"}},
        {"pipe=3:cut=dense3+dense1", 3, {"dense1 comes no later than dense3 (3 and 5 layers)"}},
        {"pipe=3:cut=3+8", 3, {"network 'six-dense'", "cut after 8 layers: it has 8", "after 1 to 7"}},
        {"pipe=2:cut=0", 2, {"cut after 0 layers"}},
        {"pipe=2:cut=99999999999999999999", 2, {"cut"}},
        {"pipe=2:cut=dens1",
         2,
         {"cut after 'dens1': no layer has this name (did you mean 'dense1'?)", "rehearse models six-dense"}},
        {"pipe=2:cut=loss", 2, {"cut after 'loss'", "nothing is left for the next stage"}},
        {"pipe=2:cut=+3", 2, {"cut=+3: write prices, blocks, or"}},
        {"pipe=2:cut=3+", 2, {"cut=3+: write prices, blocks, or"}},
        {"pipe=2:cut=block", 2, {"cut after 'block'", "no layer has this name"}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.plan);
        const std::string message = refusal(six_dense(), c.plan, c.devices);
        EXPECT_THAT(message, HasSubstr("--plan '" + std::string{c.plan} + "'"));
        for (const std::string& fragment : c.fragments) EXPECT_THAT(message, HasSubstr(fragment));
    }
    EXPECT_EQ(refusal(six_dense(), "pipe=3:cut=2+3", 3), "accepted");
}

}  // namespace
}  // namespace rehearse::schedule
