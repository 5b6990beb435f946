// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/spatial.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/builder.hpp"
#include "models/models.hpp"
#include "schedule/memory.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

/// "name 2x3 halo1 own 4 of 6": each layer with the sizes of its output for one sample.
std::string picture(const Part& part) {
    std::string text;
    for (const Layer& layer : part.network.layers) {
        text += fmt::format("{} {}", layer.name, to_string(layer.output));
        const auto* moved = std::get_if<Communication>(&layer.op);
        if (moved != nullptr && moved->movement == Movement::halo) {
            text += fmt::format(" of {} from {}r-{}", moved->halo.own, moved->halo.step, moved->halo.before);
        }
        text += "\n";
    }
    return text;
}

using models::square;

/// 2x8x8 -> c (3x3) -> bn -> pool (3x3, every second) -> half (1x1, every second) -> flatten -> f -> loss.
Network pictures() {
    Network n{.name = "pictures", .layers = {}};
    int at = add(n, "input", Input{{2, 8, 8}}, {});
    at = add(n, "c", Conv{.channels = 2, .height = 8, .width = 8, .filters = 4, .window = square(3, 1, 1)}, {at});
    at = add(n, "bn", BatchNorm{4, 8, 8}, {at});
    at = add(n, "pool", Pool{PoolKind::max, 4, 8, 8, square(3, 2, 1)}, {at});
    at = add(n, "half", Conv{.channels = 4, .height = 4, .width = 4, .filters = 4, .window = square(1, 2, 0)}, {at});
    at = add(n, "flatten", Flatten{{4, 2, 2}}, {at});
    at = add(n, "f", MatMul{.m = 1, .n = 3, .k = 16}, {at});
    add(n, "loss", SoftmaxLoss{3}, {at});
    n.state = 8;
    return n;
}

Part shared_by_two(const Network& network) {
    const std::vector<SpatialAxis> axes{{"spatial", 0, 2, 1}};
    return split_spatial(network, axes, "spatial");
}

// Two ranks, four rows each. A window of three needs a row more at each side; every second one of eight rows with one
// of padding needs a row before only; a window of one needs none.
TEST(Spatial, DrawnByHand) {
    EXPECT_EQ(picture(shared_by_two(pictures())),
              "input 2x4x8\n"
              "c.halo1 2x6x8 of 4 from 4r-1\nc 4x4x8\n"
              "bn.sums 8\nbn.sum 8\nbn.copy 8\nbn 4x4x8\n"
              "pool.halo1 4x5x8 of 4 from 4r-1\npool 4x2x4\n"
              "half 4x1x2\nhalf.gather1 4x2x2\nflatten 16\nf 3\nloss 1\n");
}

TEST(Spatial, SumsTheGradientsOfWhatWorksOnBlocks) {
    const Part part = shared_by_two(pictures());
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const std::string& name = part.network.layers[i].name;
        const bool blocks = name == "c" || name == "bn" || name == "half";
        EXPECT_EQ(part.origins[i].summed, blocks ? std::vector<int>{0} : std::vector<int>{}) << name;
    }
    EXPECT_EQ(parameters(part.network), parameters(pictures()));
}

// Of b samples, one row of c channels and w pixels to each neighbour (Dryden et al. 2019, section III): two ranks lend
// one row of the input each, and one of them a row of bn's output.
TEST(Spatial, MovesRows) {
    const Schedule schedule = schedule_of(pictures(), "spatial=2", 2, 10);
    std::int64_t moved = 0;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr || action->kind != CollectiveKind::halo || action->pass != Pass::forward) continue;
        const Collective rounds{action->kind, action->algorithm, {2, 2}, action->elements};
        ASSERT_EQ(rounds.rounds(), 1);
        for (const Message& message : rounds.messages(0)) moved += message.elements;
    }
    EXPECT_EQ(moved, 10 * (2 * 2 * 8 + 4 * 8));
}

// The rows that were lent go back while the gradient of the weights is computed.
TEST(Spatial, SendsGradientsOfRowsBesideTheGradientOfTheWeights) {
    Network n{.name = "two", .layers = {}};
    int at = add(n, "input", Input{{2, 8, 8}}, {});
    for (const char* name : {"a", "b"}) {
        at = add(n, name, Conv{.channels = 2, .height = 8, .width = 8, .filters = 2, .window = square(3, 1, 1)}, {at});
    }
    at = add(n, "flatten", Flatten{{2, 8, 8}}, {at});
    at = add(n, "f", MatMul{.m = 1, .n = 3, .k = 128}, {at});
    add(n, "loss", SoftmaxLoss{3}, {at});
    const Schedule schedule = schedule_of(n, "spatial=2", 2);
    std::string order;
    for (const Step& step : schedule.classes[0].steps) {
        if (step.name.starts_with("b") && step.name.find("forward") == step.name.npos) order += step.name + " ";
    }
    EXPECT_TRUE(order.find("b:backward_data b.halo1:gradient_halo b:backward_weights") != order.npos) << order;
}

/// The steps of layers that begin with `first`, in their order on both streams.
std::string steps_of(const Schedule& schedule, std::string_view first) {
    std::string order;
    for (const Step& step : schedule.classes[0].steps) {
        if (step.name.starts_with(first)) order += step.name + " ";
    }
    return order;
}

// Of four rows the two in the middle need no neighbour's: they are computed while the others come, and the rows that
// were lent go back while the gradient of their weights is computed.
TEST(Spatial, ComputesTheEdgesApart) {
    const std::vector<SpatialAxis> axes{{"spatial", 0, 2, 1}};
    const Part part = split_spatial(pictures(), axes, "spatial", {.apart = true});
    EXPECT_TRUE(
        picture(part).starts_with("input 2x4x8\n"
                                  "c.halo1 2x6x8 of 4 from 4r-1\nc 4x2x8\n"
                                  "c.before.rows 2x3x8\nc.before 4x1x8\n"
                                  "c.after.rows 2x3x8\nc.after 4x1x8\nc.join 4x4x8\n"))
        << picture(part);
    EXPECT_EQ(parameters(part.network), parameters(pictures()));
    check(part.network);
    Network n{.name = "two", .layers = {}};
    int at = add(n, "input", Input{{2, 8, 8}}, {});
    for (const char* name : {"a", "b"}) {
        at = add(n, name, Conv{.channels = 2, .height = 8, .width = 8, .filters = 2, .window = square(3, 1, 1)}, {at});
    }
    at = add(n, "flatten", Flatten{{2, 8, 8}}, {at});
    at = add(n, "f", MatMul{.m = 1, .n = 3, .k = 128}, {at});
    add(n, "loss", SoftmaxLoss{3}, {at});
    EXPECT_EQ(steps_of(schedule_of(n, "spatial=2:edges=apart", 2), "b."),
              "b.halo1:halo b.before.rows:forward b.before:forward b.after.rows:forward b.after:forward b.join:forward "
              "b.join.gather1:allgather b.join.gather1:backward_data b.join:backward_data b.after:backward_weights "
              "b.after:backward_data b.after.rows:backward_data "
              "b.before:backward_weights b.before:backward_data b.before.rows:backward_data b.halo1:gradient_halo ");
    const Schedule schedule = schedule_of(n, "spatial=2:edges=apart", 2);
    const auto place = [&](std::string_view name) {
        for (std::size_t i = 0; i < schedule.classes[0].steps.size(); ++i) {
            if (schedule.classes[0].steps[i].name == name) return static_cast<int>(i);
        }
        return -1;
    };
    EXPECT_LT(place("b.halo1:halo"), place("b:forward"));
    EXPECT_TRUE(schedule.classes[0].steps[static_cast<std::size_t>(place("b:forward"))].after.empty());
    EXPECT_LT(place("b.halo1:gradient_halo"), place("b:backward_weights"));
    EXPECT_TRUE(schedule.classes[0].steps[static_cast<std::size_t>(place("b:backward_weights"))].after.empty());
}

TEST(Spatial, IsRefusedWhereRowsCannotBeShared) {
    EXPECT_THROW(schedule_of(pictures(), "spatial=3", 3), InputError);
    EXPECT_THROW(schedule_of(pictures(), "spatial=2x1x2", 4), InputError) << "an image has two dimensions";
    EXPECT_THROW(schedule_of(two_dense(), "spatial=2", 2), InputError) << "vectors";
    EXPECT_THROW(schedule_of(pictures(), "data=2,pipe=2,spatial=2", 8), InputError) << "pipe between the sums' axes";
}

// A network of volumes on eight ranks: an eighth of the activations, and of what convolutions read a copy with rows
// more.
TEST(Spatial, SharesTheActivations) {
    const Network unet = models::load_network("unet3d");
    const auto held = [&](const char* plan, std::int64_t devices) {
        const MemoryUse use = memory_use(schedule_of(unet, plan, devices, 1));
        return use.activations + use.activation_gradients;
    };
    EXPECT_GT(held("spatial=2x2x2", 8) / held("data", 1), 1.0 / 8);
    EXPECT_LT(held("spatial=2x2x2", 8) / held("data", 1), 1.8 / 8);
}

}  // namespace
}  // namespace rehearse::schedule
