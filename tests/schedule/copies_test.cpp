// SPDX-License-Identifier: Apache-2.0
// Pipelines whose stages have unlike numbers of copies: who works on which micro-batches, and sends them to whom.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Of a class: "F0 F2 B0 B2", by its last computation of each pass and micro-batch.
std::string order_of(const RankClass& rank_class) {
    std::string order;
    for (const Step& step : rank_class.steps) {
        const auto* compute = std::get_if<Compute>(&step.action);
        if (compute == nullptr) continue;
        const std::string item =
            fmt::format("{}{}", compute->problem.pass == Pass::forward ? 'F' : 'B', compute->micro_batch);
        if (!order.ends_with(item)) order += (order.empty() ? "" : " ") + item;
    }
    return order;
}

/// By micro-batch, the places along the pipeline that a class at `place` sends its outputs (or gradients) to.
std::map<int, std::int64_t> sent_to(const RankClass& rank_class, Stream stream, std::int64_t place) {
    std::map<int, std::int64_t> places;
    for (const Step& step : rank_class.steps) {
        const auto* send = std::get_if<Send>(&step.action);
        if (send != nullptr && step.stream == stream) places[send->micro_batch] = place + send->offset;
    }
    return places;
}

TEST(Copies, TakeTurnsOverTheMicroBatches) {
    const Schedule schedule = schedule_of(tower(4), "pipe=3:copies=2+1:microbatches=4", 3, 8);
    ASSERT_EQ(schedule.classes.size(), 3U);
    EXPECT_EQ(schedule.classes[0].name, "stage0:copy0");
    EXPECT_EQ(schedule.classes[1].name, "stage0:copy1");
    EXPECT_EQ(schedule.classes[2].name, "stage1");
    EXPECT_EQ(order_of(schedule.classes[0]), "F0 F2 B0 B2");
    EXPECT_EQ(order_of(schedule.classes[1]), "F1 F3 B1 B3");
    EXPECT_EQ(order_of(schedule.classes[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
    EXPECT_EQ(global_batch(schedule), 8);
    EXPECT_EQ(micro_batch_size(schedule), 2);
}

// Three of the second stage: each copy of the first one sends to all of them, each to its own sender of that.
TEST(Copies, SendEachMicroBatchToTheCopyThatHasIt) {
    const Schedule schedule = schedule_of(tower(4), "pipe=6:copies=2+3+1:microbatches=6", 6, 6);
    const auto sends = [&](int place, Stream stream) {
        return sent_to(schedule.classes[static_cast<std::size_t>(place)], stream, place);
    };
    using Places = std::map<int, std::int64_t>;
    EXPECT_EQ(sends(0, Stream::send_activations), (Places{{0, 2}, {2, 4}, {4, 3}}));
    EXPECT_EQ(sends(1, Stream::send_activations), (Places{{1, 3}, {3, 2}, {5, 4}}));
    EXPECT_EQ(sends(3, Stream::send_activations), (Places{{1, 5}, {4, 5}}));
    EXPECT_EQ(sends(3, Stream::send_gradients), (Places{{1, 1}, {4, 0}}));
    EXPECT_EQ(sends(5, Stream::send_gradients), (Places{{0, 2}, {1, 3}, {2, 4}, {3, 2}, {4, 3}, {5, 4}}));
    EXPECT_EQ(sends(5, Stream::send_activations), Places{});
}

// Once a step, beside the backward pass of each copy's last micro-batch.
TEST(Copies, SumTheGradientsOfTheirStage) {
    const Schedule schedule = schedule_of(tower(4), "pipe=3:copies=2+1:microbatches=4", 3, 8);
    for (const RankClass& rank_class : schedule.classes) {
        std::vector<std::string> axes;
        std::vector<int> micro_batches;
        for (const Step& step : rank_class.steps) {
            const auto* sum = std::get_if<Communicate>(&step.action);
            if (sum == nullptr) continue;
            axes.push_back(name_of(schedule.mesh, sum->axis));
            micro_batches.push_back(sum->micro_batch);
            EXPECT_EQ(sum->kind, CollectiveKind::all_reduce);
        }
        if (rank_class.name == "stage1") {
            EXPECT_TRUE(axes.empty());
        } else {
            EXPECT_THAT(axes, ElementsAre("pipe(0..1)"));
            EXPECT_THAT(micro_batches, ElementsAre(rank_class.copy == 0 ? 2 : 3));
        }
    }
}

// Three quarters of the layers are as much work for three ranks as one quarter is for one; they are so wide that what
// stages hand on is little beside it.
TEST(Copies, AreCountedWhereStagesAreBalanced) {
    Network wide{.name = "wide", .layers = {}};
    int last = add(wide, "input", Input{{512}}, {});
    for (int i = 0; i < 12; ++i)
        last = add(wide, fmt::format("dense{}", i), MatMul{.m = 1, .n = 512, .k = 512}, {last});
    add(wide, "loss", SoftmaxLoss{512}, {last});
    const Schedule schedule = schedule_of(wide, "pipe=4:copies=3+1", 4, 6);
    const auto dense = [](const RankClass& rank_class) {
        return std::ranges::count_if(rank_class.part.network.layers,
                                     [](const Layer& layer) { return std::holds_alternative<MatMul>(layer.op); });
    };
    EXPECT_EQ(dense(schedule.classes.front()), 9);
    EXPECT_EQ(dense(schedule.classes.back()), 3);
}

// PipeDream keeps as many micro-batches in a copy as there are ranks from its stage on, over the stage's copies.
TEST(Copies, HoldNoMoreMicroBatchesThanKeepAllBusy) {
    const Schedule schedule = schedule_of(tower(6), "pipe=8:copies=2+5+1:microbatches=20", 8, 20);
    std::vector<int> in_flight;
    for (const RankClass& rank_class : schedule.classes) in_flight.push_back(rank_class.in_flight);
    EXPECT_THAT(in_flight, ElementsAre(4, 4, 2, 2, 2, 2, 2, 1));
}

// A gradient that a stage hands on lies in its slot until it has left; the next one of that slot comes after it,
// however late the copy that it goes to is.
TEST(Copies, ReceiveAGradientWhenItsSlotsLastOneHasLeft) {
    const Schedule schedule = schedule_of(tower(6), "pipe=4:copies=2+1+1:microbatches=8", 4, 8);
    const RankClass& middle = schedule.classes[2];
    ASSERT_EQ(middle.slots, 3);
    std::map<int, int> sent;  // by micro-batch
    int found = 0;
    for (std::size_t i = 0; i < middle.steps.size(); ++i) {
        const Step& step = middle.steps[i];
        if (step.stream == Stream::send_gradients) sent[std::get<Send>(step.action).micro_batch] = static_cast<int>(i);
        if (step.stream != Stream::receive_gradients) continue;
        const int micro_batch = std::get<Recv>(step.action).micro_batch;
        if (micro_batch < middle.slots) continue;
        EXPECT_THAT(step.after, testing::Contains(sent.at(micro_batch - middle.slots))) << step.name;
        ++found;
    }
    EXPECT_EQ(found, 5);
}

TEST(Copies, HaveAsManyMicroBatchesAsRanksInWholeTurns) {
    EXPECT_EQ(schedule_of(tower(4), "pipe=3:copies=2+1", 3, 8).micro_batches, 4);
    EXPECT_EQ(schedule_of(tower(4), "pipe:copies=3x1+2", 5, 12).micro_batches, 6);
}

TEST(Copies, RefuseWhatCannotBe) {
    const auto refusal = [](std::string_view plan, std::int64_t devices, std::int64_t batch) -> std::string {
        try {
            static_cast<void>(schedule_of(tower(4), plan, devices, batch));
        } catch (const InputError& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_THAT(refusal("pipe=4:copies=2+1", 4, 4), HasSubstr("stages of 3 ranks, but pipe=4; write pipe=3"));
    EXPECT_THAT(refusal("pipe=2:copies=2", 2, 4), HasSubstr("write data=2"));
    EXPECT_THAT(refusal("pipe=3:copies=2+1:microbatches=3", 3, 6), HasSubstr("multiples of 2 would do"));
    EXPECT_THAT(refusal("pipe=3:copies=2+0", 3, 4), HasSubstr("copies"));
    EXPECT_THAT(refusal("pipe=3:copies=2+1:schedule=interleaved", 3, 4), HasSubstr("copies"));
    EXPECT_THAT(refusal("data=2,pipe=3:copies=2+1", 6, 4), HasSubstr("write 'data' behind 'pipe'"));
    EXPECT_THAT(refusal("pipe=7:copies=6x1+1", 7, 7), HasSubstr("cannot make 7 stages"));
}

}  // namespace
}  // namespace rehearse::schedule
