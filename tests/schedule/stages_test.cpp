// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/stages.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "schedule/axes/tensor.hpp"
#include "schedule/memory.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::ElementsAre;

double costliest(const std::vector<double>& costs, const std::vector<int>& ends) {
    double worst = 0;
    int begin = 0;
    for (const int end : ends) {
        worst = std::max(worst, std::accumulate(costs.begin() + begin, costs.begin() + end, 0.0));
        begin = end;
    }
    return worst;
}

TEST(Balance, IsTheBestOfAllCuts) {
    // Every way to cut eight layers into three, tried.
    for (std::uint32_t seed = 1; seed < 200; ++seed) {
        std::vector<double> costs;
        std::uint32_t state = seed;
        for (int i = 0; i < 8; ++i)
            costs.push_back(static_cast<double>((state = state * 1664525U + 1013904223U) >> 28U));
        if (std::ranges::count_if(costs, [](double c) { return c > 0; }) < 3) continue;
        double best = 1e9;
        for (int a = 1; a < 7; ++a) {
            for (int b = a + 1; b < 8; ++b) best = std::min(best, costliest(costs, {a, b, 8}));
        }
        const std::vector<int> ends = balance(costs, 3);
        EXPECT_EQ(ends.back(), 8);
        EXPECT_EQ(costliest(costs, ends), best) << "seed " << seed;
    }
}

// Every way to cut eight layers into three whose stages have room for them, tried.
TEST(Balance, WithLittleMemoryIsTheBestOfTheCutsThatFit) {
    int none = 0;
    for (std::uint32_t seed = 1; seed < 200; ++seed) {
        std::uint32_t state = seed;
        const auto random = [&] { return 1 + static_cast<double>((state = state * 1664525U + 1013904223U) >> 28U); };
        std::vector<double> costs(8);
        Room room{.needed = std::vector(3, std::vector<double>(8)), .available = {40, 10 + random(), 30}};
        std::ranges::generate(costs, random);
        for (std::vector<double>& stage : room.needed) std::ranges::generate(stage, random);
        double best = 1e9;
        for (int a = 1; a < 7; ++a) {
            for (int b = a + 1; b < 8; ++b) {
                const std::vector<int> ends{0, a, b, 8};
                bool fits = true;
                for (std::size_t s = 0; s < 3; ++s) {
                    const auto first = room.needed[s].begin();
                    fits = fits && std::accumulate(first + ends[s], first + ends[s + 1], 0.0) <= room.available[s];
                }
                if (fits) best = std::min(best, costliest(costs, {a, b, 8}));
            }
        }
        const std::vector<std::vector<double>> nothing(3, std::vector<double>(9));
        const auto ends = balance({std::vector(3, costs), nothing, nothing}, room);
        ASSERT_EQ(ends.has_value(), best < 1e9) << "seed " << seed;
        EXPECT_TRUE(!ends || costliest(costs, *ends) == best) << "seed " << seed;
        none += ends ? 0 : 1;
    }
    EXPECT_TRUE(none > 0 && none < 150) << none << " of 199 do not fit";
}

TEST(Balance, OfUnlikeDevicesIsTheBestOfAllCuts) {
    for (std::uint32_t seed = 1; seed < 100; ++seed) {
        std::uint32_t state = seed;
        const auto random = [&] { return 1 + static_cast<double>((state = state * 1664525U + 1013904223U) >> 28U); };
        std::vector<std::vector<double>> costs(3, std::vector<double>(8));
        for (std::vector<double>& stage : costs) std::ranges::generate(stage, random);
        const auto worst = [&](int a, int b) {
            const auto sum = [&](std::size_t s, int from, int to) {
                return std::accumulate(costs[s].begin() + from, costs[s].begin() + to, 0.0);
            };
            return std::max({sum(0, 0, a), sum(1, a, b), sum(2, b, 8)});
        };
        double best = 1e9;
        for (int a = 1; a < 7; ++a) {
            for (int b = a + 1; b < 8; ++b) best = std::min(best, worst(a, b));
        }
        const std::vector<int> ends = balance(costs);
        EXPECT_EQ(worst(ends[0], ends[1]), best) << "seed " << seed;
    }
}

/// Eight equal dense layers on two nodes of one device.
Schedule eight_layers(double first_rate, double second_rate, double second_memory = 1e12) {
    Machine machine = sixes();
    machine.nodes = {node_of(1, 1), node_of(1, 1)};
    machine.nodes[1].vertices[0].device_class = 1;
    for (const auto& [rate, memory] : {std::pair{first_rate, 1e12}, std::pair{second_rate, second_memory}}) {
        DeviceClass& device = machine.classes.emplace_back();
        device.name = fmt::format("device{}", machine.classes.size());
        device.peak[DataType::f32].value = FlopRate{rate};
        device.memory.value = Bytes{memory};
        device.memory_bandwidth.value = Bandwidth{1e15};
    }
    Network n{.name = "wide", .layers = {}};
    int at = add(n, "input", Input{{64}}, {});
    for (int i = 0; i < 8; ++i) at = add(n, "dense" + std::to_string(i), MatMul{.m = 1, .n = 64, .k = 64}, {at});
    add(n, "loss", SoftmaxLoss{64}, {at});
    return make_schedule(n, machine, parse_plan("pipe=2:microbatches=4"), {.devices = 2, .batch_per_device = 64});
}

std::int64_t dense_layers(const RankClass& stage) {
    return std::ranges::count_if(stage.part.network.layers,
                                 [](const Layer& layer) { return std::holds_alternative<MatMul>(layer.op); });
}

// The second node's device is three times as fast: of eight equal layers it takes six.
TEST(Balance, OfAMixedMachineGivesTheFasterDevicesMoreLayers) {
    const Schedule schedule = eight_layers(1e9, 3e9);
    EXPECT_EQ(dense_layers(schedule.classes[0]), 2);
    EXPECT_EQ(dense_layers(schedule.classes[1]), 6);
}

// With memory for no more than `most` layers, six at the utmost, it takes that many. What they take is that of a
// pipeline whose devices are as fast as makes this the balance.
TEST(Balance, LeavesADeviceRoomForItsLayers) {
    std::vector<double> takes{0};
    for (int most = 1; most < 8; ++most) {
        const Schedule roomy = eight_layers((8 - most) * 1e9, most * 1e9);
        ASSERT_EQ(dense_layers(roomy.classes[1]), most);
        takes.push_back(total(memory_use(roomy, roomy.classes[1])).value);
    }
    for (int most = 1; most < 7; ++most) {
        for (const double more : {0.0, 0.9}) {  // of what one layer more would take
            const double memory = takes[at(most)] + more * (takes[at(most + 1)] - takes[at(most)]);
            EXPECT_EQ(dense_layers(eight_layers(1e9, 3e9, memory).classes[1]), most) << memory << " bytes";
        }
    }
    EXPECT_EQ(dense_layers(eight_layers(1e9, 3e9, 1000).classes[1]), 6) << "no cut fits: as if all had room";
}

// The first stage's two copies share its work, not its weights: balanced by time it has most of the layers. Oracle:
// each cut, written out.
TEST(Balance, LeavesCopiesOfAStageRoomForItsLayers) {
    Machine machine = sixes();
    DeviceClass& device = machine.classes.emplace_back();
    device.peak[DataType::f32].value = FlopRate{1e9};
    device.memory_bandwidth.value = Bandwidth{1e15};
    Network n{.name = "wide", .layers = {}};
    int last = add(n, "input", Input{{64}}, {});
    for (int i = 0; i < 8; ++i) last = add(n, "dense" + std::to_string(i), MatMul{.m = 1, .n = 64, .k = 64}, {last});
    add(n, "loss", SoftmaxLoss{64}, {last});
    const auto peak = [&](const std::string& cut, double memory) {
        device.memory.value = Bytes{memory};
        const Plan plan = parse_plan("pipe=3:copies=2+1:microbatches=4" + cut);
        return make_schedule(n, machine, plan, {.devices = 3, .batch_per_device = 64}).memory_peak.value;
    };
    std::vector<double> peaks;
    for (int layers = 1; layers < 9; ++layers) peaks.push_back(peak(":cut=" + std::to_string(layers + 1), 1e12));
    std::ranges::sort(peaks);
    ASSERT_GT(peak("", 1e12), peaks[2]);
    for (const double memory : {peaks[2], peaks[1]}) EXPECT_LE(peak("", memory), memory);
}

TEST(Balance, NeedsALayerThatComputesForEachStage) {
    EXPECT_THAT(balance(std::vector<double>{0, 1, 0, 1}, 2), ElementsAre(3, 4));
    EXPECT_THROW(static_cast<void>(balance(std::vector<double>{0, 1, 0, 1}, 3)), InputError);
}

std::string names(const Stage& stage) {
    std::string text;
    for (const Layer& layer : stage.part.network.layers) {
        text += text.empty() ? "" : " ";
        text += layer.name;
        for (const int input : layer.inputs)
            text += "<" + stage.part.network.layers[static_cast<std::size_t>(input)].name;
    }
    return text;
}

TEST(CutStages, HandOverWhatIsReadLater) {
    const Part part = whole(residual());
    // input bn | c | sum flatten drop f loss: bn is read in the third stage too, so the second hands it on.
    const std::vector<Stage> stages = cut_stages(part, std::vector{2, 3, 8}, 3, "pipe");
    EXPECT_EQ(names(stages[0]), "input bn<input bn.send<bn");
    EXPECT_EQ(names(stages[1]), "bn.receive c<bn.receive bn.send<bn.receive c.send<c");
    EXPECT_EQ(names(stages[2]), "bn.receive c.receive sum<bn.receive<c.receive flatten<sum drop<flatten f<drop loss<f");
    for (const Stage& stage : stages) check(stage.part.network);
    EXPECT_EQ(stages[0].part.network.state, 4);
    EXPECT_EQ(stages[2].part.network.state, 0);
}

// Narayanan et al. 2021, section 4.1: of what all tensor ranks have, each sends a piece, and those of the next stage
// gather it. Of the two channels of these images four ranks would have half a channel each: they send all of them.
TEST(CutStages, ScatterWhatTensorRanksHaveAlike) {
    const Part part = whole(residual());
    const std::vector<Stage> stages = cut_stages(part, std::vector{2, 3, 8}, 3, "pipe", true, {"tensor", 2});
    EXPECT_EQ(names(stages[0]), "input bn<input bn.send.slice<bn bn.send<bn.send.slice");
    EXPECT_EQ(names(stages[1]),
              "bn.receive bn.receive.gather<bn.receive c<bn.receive.gather bn.send.slice<bn.receive.gather "
              "bn.send<bn.send.slice c.send.slice<c c.send<c.send.slice");
    EXPECT_EQ(names(stages[2]),
              "bn.receive bn.receive.gather<bn.receive c.receive c.receive.gather<c.receive "
              "sum<bn.receive.gather<c.receive.gather flatten<sum drop<flatten f<drop loss<f");
    for (const Stage& stage : stages) {
        check(stage.part.network);
        for (const Layer& layer : stage.part.network.layers) {
            const auto* op = std::get_if<Communication>(&layer.op);
            if (op == nullptr || op->axis != "pipe") continue;
            EXPECT_EQ(op->shape, (Shape{1, 3, 3})) << layer.name << ": half of its two channels";
        }
    }
    const std::vector<Stage> four = cut_stages(part, std::vector{2, 3, 8}, 3, "pipe", true, {"tensor", 4});
    EXPECT_EQ(names(four[0]), "input bn<input bn.send<bn");
}

TEST(CutStages, SendNoGradientOfTheSamples) {
    Network network = two_dense();
    network.layers.pop_back();
    // A second branch on the input, in the second stage.
    const int side = add(network, "side", MatMul{.m = 1, .n = 2, .k = 4}, {0});
    const int sum = add(network, "sum", Add{{2}, 2}, {3, side});
    add(network, "loss", SoftmaxLoss{2}, {sum});
    const std::vector<Stage> stages = cut_stages(whole(network), std::vector{3, 7}, 2, "pipe");
    EXPECT_EQ(names(stages[1]), "input.receive relu.receive b<relu.receive side<input.receive sum<b<side loss<sum");
    const auto gradient = [&](std::size_t layer) {
        return std::get<Communication>(stages[1].part.network.layers[layer].op).gradient;
    };
    EXPECT_FALSE(gradient(0));
    EXPECT_TRUE(gradient(1));
}

TEST(CutStages, ChunksOfAStageLieApart) {
    const Part part = whole(tower(4));
    const std::vector<Stage> stages = cut_stages(part, std::vector{2, 3, 4, 6}, 2, "pipe");
    EXPECT_EQ(names(stages[0]),
              "input dense0<input dense0.send0<dense0 dense1.receive1 dense2<dense1.receive1 dense2.send2<dense2");
    EXPECT_EQ(names(stages[1]),
              "dense0.receive0 dense1<dense0.receive0 dense1.send1<dense1"
              " dense2.receive2 dense3<dense2.receive2 loss<dense3");
    const auto offset = [](const Stage& stage, std::size_t layer) {
        return std::get<Communication>(stage.part.network.layers[layer].op).offset;
    };
    EXPECT_EQ(offset(stages[0], 2), 1);
    EXPECT_EQ(offset(stages[1], 2), -1) << "the last stage hands over to the first";
    EXPECT_EQ(offset(stages[0], 3), 1) << "which receives from the last";
}

// A table whose words an encoder reads, then a decoder, and whose transpose scores them, as in T5.
Network three_readers() {
    Network n{.name = "tied", .layers = {}};
    const int ids = add(n, "input", Input{{4}, 6}, {});
    const int table = add(n, "table", Embedding{4, 6, 8}, {ids});
    const int more = add(n, "more", Input{{4}, 6}, {});
    const int again = add(n, "again", Shared{std::make_shared<const SharedOp>(SharedOp{Embedding{4, 6, 8}})}, {more});
    n.layers.back().weights_of = table;
    const int sum = add(n, "sum", Add{{4, 8}, 2}, {table, again});
    const int scores = add(n, "scores", MatMul{.m = 4, .n = 6, .k = 8, .bias = false, .tied = true}, {sum});
    n.layers.back().weights_of = table;
    add(n, "loss", SoftmaxLoss{.classes = 6, .rows = 4}, {scores});
    check(n);
    return n;
}

TEST(CutStages, LayersOfOneStageShareOneCopyOfAFarTable) {
    const std::vector<Stage> stages = cut_stages(whole(three_readers()), std::vector{2, 7}, 2, "pipe");
    for (const Stage& stage : stages) {
        EXPECT_NO_THROW(check(stage.part.network));
        EXPECT_EQ(parameters(stage.part.network), 6 * 8);
        EXPECT_EQ(stage.ties.size(), 1);
    }
    const Network& second = stages[1].part.network;
    const int copy = find_layer(second, "again").value();
    EXPECT_EQ(second.layers[at(find_layer(second, "scores").value())].weights_of, copy);
    EXPECT_EQ(stages[1].part.origins[at(copy)].layer, 1) << "the table's weights, of layer 1 of the whole";
}

TEST(CutStages, SayThatMoreThanTwoStagesCannotShareWeights) {
    EXPECT_THAT(
        [] {
            (void)cut_stages(whole(three_readers()), std::vector{2, 5, 7}, 3, "pipe");
        },
        testing::ThrowsMessage<InputError>(testing::HasSubstr("share the weights of 'table'")));
    EXPECT_NO_THROW((void)cut_stages(whole(three_readers()), std::vector{2, 5, 7}, 3, "pipe", false))
        << "asynchronous stages have tables with lives of their own";
}

}  // namespace
}  // namespace rehearse::schedule
