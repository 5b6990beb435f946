// SPDX-License-Identifier: Apache-2.0
// Recordings of steps that go through the network several times, and of layers that have no call, held against a
// network of two dense layers with a clip between them. Sums are worked out beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "calibrate/recorded_calls.hpp"
#include "calibrate/recorded_prices.hpp"
#include "calibrate/recorded_timeline.hpp"
#include "core/index.hpp"

namespace rehearse::calibrate {
namespace {

using Part = RecordedCall::Part;
using testing::ElementsAre;

// fc1 6 -> 4, clip, fc2 4 -> 3, loss; of two samples.
Schedule clipped() {
    Schedule schedule;
    schedule.mesh = {{{"data", 1}}};
    schedule.plan = "data=1";
    schedule.batch_per_rank = 2;
    RankClass& steps = schedule.classes.emplace_back();
    Network& net = steps.part.network;
    net.name = "clipped";
    net.layers = {{"input", Input{{6}}, {}, {6}},
                  {"fc1", MatMul{1, 4, 6}, {0}, {4}},
                  {"clip", Elementwise{.function = "clip", .shape = {4}, .inputs = {{4}}, .numbers = {0, 6}}, {1}, {4}},
                  {"fc2", MatMul{1, 3, 4}, {2}, {3}},
                  {"loss", SoftmaxLoss{3}, {3}, {1}}};
    const auto add = [&](int layer, Pass pass) {
        const Layer& of = net.layers[at(layer)];
        steps.steps.push_back({fmt::format("{}:{}", of.name, to_string(pass)),
                               Stream::compute,
                               Compute{LayerIndex{layer}, {of.op, pass, 2}, 0},
                               {}});
    };
    for (const int layer : {1, 2, 3, 4}) add(layer, Pass::forward);
    for (const int layer : {4, 3}) add(layer, Pass::backward_data);
    add(3, Pass::backward_weights);
    add(2, Pass::backward_data);
    add(1, Pass::backward_weights);
    steps.part.buckets = {{{1, 3}, 100, 0}};
    steps.steps.push_back(
        {"bucket0:update", Stream::compute, Update{BucketIndex{0}, {SgdUpdate{100}, Pass::update, 1}}, {}});
    schedule.network = net;
    return schedule;
}

DeviceClass slow_device() {
    DeviceClass device;
    device.name = "d";
    device.peak[DataType::f32] = {FlopRate{1e9}, "test"};
    device.memory_bandwidth = {Bandwidth{1e9}, "test"};
    return device;
}

// Calls one after the other, in us; nothing is idle but where a test says so.
class Program {
public:
    Program() {
        recording.path = "t.json";
        recording.texts = {""};
    }
    void call(Part part, std::string_view name, std::string_view shapes, std::int64_t time,
              std::int64_t sequence = -1) {
        RecordedCall made;
        made.part = part;
        made.step = static_cast<int>(recording.steps.size());
        made.name = text(name);
        made.shapes = text(shapes);
        made.sequence = numbered ? sequence : -1;
        made.start = made.at = now_;
        made.busy = time * 1000;
        made.end = now_ += made.busy;
        recording.calls.push_back(made);
    }
    void idle(std::int64_t time) { recording.calls.back().gap = time * 1000, now_ += time * 1000; }
    void forward(std::int64_t first = 0) {  // 10 us
        call(Part::forward, "aten::linear", "[[2, 6], [4, 6], [4]]", 4, first);
        if (clips) call(Part::forward, "aten::hardtanh_", "[[2, 4], [], []]", 1, first + 1);
        call(Part::forward, "aten::linear", "[[2, 4], [3, 4], [3]]", clips ? 3 : 4, first + 2);
        call(Part::forward, "aten::cross_entropy_loss", "[[2, 3], [2], []]", 2, first + 3);
    }
    void backward(std::int64_t first = 0) {  // 20 us
        const auto node = [&](const char* name, std::int64_t time, std::int64_t sequence) {
            call(Part::backward, fmt::format("autograd::engine::evaluate_function: {}", name), "", time, sequence);
        };
        node("NllLossBackward0", 2, first + 3);
        node("AddmmBackward0", 8, first + 2);
        if (clips) node("HardtanhBackward0", 3, first + 1);
        node("AddmmBackward0", clips ? 7 : 10, first);
    }
    void update() { call(Part::update, "Optimizer.step#SGD.step", "", 5); }
    void end() {
        recording.steps.push_back({begin_, now_, 0, 0});
        begin_ = now_;
    }

    Recording recording;
    bool numbered = true, clips = true;

private:
    std::uint32_t text(std::string_view wanted) {
        const auto found = std::ranges::find(recording.texts, wanted);
        if (found != recording.texts.end()) return static_cast<std::uint32_t>(found - recording.texts.begin());
        recording.texts.emplace_back(wanted);
        return static_cast<std::uint32_t>(recording.texts.size() - 1);
    }
    std::int64_t now_ = 0, begin_ = 0;
};

MatchedRecording found_in(const Recording& recording, const Schedule& schedule) {
    return matched({&recording, 1}, schedule, named_steps(schedule));
}

// us by step of the schedule; what is computed once and by the optimizer is in `all`.
std::map<std::string, double> prices_by_step(const Recording& recording, const Schedule& schedule) {
    std::map<std::string, double> prices, by_step;
    for (const Sample& sample : prices_of(found_in(recording, schedule), schedule, slow_device()))
        prices[to_string(sample.problem)] = sample.median.value * 1e6;
    for (const Step& step : schedule.classes.front().steps) {
        by_step[step.name] = prices.at(to_string(*problem_of(step)));
        by_step[step.name == "bucket0:update" ? "update" : "layers"] += by_step[step.name];
    }
    return by_step;
}

// Two micro-batches and one update: 2 x 30 + 5 us.
TEST(RecordedPasses, OfAccumulatedGradientsAreMicroBatches) {
    const Schedule schedule = clipped();
    for (const bool numbered : {true, false}) {
        Program program;
        program.numbered = numbered;
        for (int step = 0; step < 4; ++step) {
            for (const std::int64_t first : {0, 10}) program.forward(first), program.backward(first);
            program.update();
            program.end();
        }
        const MatchedRecording found = found_in(program.recording, schedule);
        EXPECT_EQ(found.passes, 2);
        EXPECT_TRUE(found.unmatched.empty());
        EXPECT_NEAR(found.shares.step, 65e-6, 1e-12);
        std::map<std::string, double> prices = prices_by_step(program.recording, schedule);
        EXPECT_NEAR(prices["fc1:forward"], 4, 1e-6);
        EXPECT_NEAR(prices["layers"], 30, 1e-6);
        EXPECT_NEAR(prices["update"], 5, 1e-6);
        EXPECT_NEAR(stretch_of(found, schedule, slow_device()), 1, 1e-9);
        std::map<int, int> events;  // of fc1:forward, by micro-batch
        for (const Event& event : found.timeline.events) events[event.micro_batch] += event.step == "fc1:forward";
        EXPECT_THAT(events, ElementsAre(std::pair(0, 3), std::pair(1, 3)));
    }
}

// Losses that are summed up first: both backward passes come after both forward passes.
TEST(RecordedPasses, MayGoBackTogether) {
    const Schedule schedule = clipped();
    for (const bool numbered : {true, false}) {
        Program program;
        program.numbered = numbered;
        for (int step = 0; step < 2; ++step) {
            program.forward(0), program.forward(10);
            program.backward(10), program.backward(0);
            program.update();
            program.end();
        }
        EXPECT_EQ(found_in(program.recording, schedule).passes, 2);
        EXPECT_NEAR(prices_by_step(program.recording, schedule)["layers"], 30, 1e-6) << numbered;
    }
}

TEST(RecordedPasses, WithoutABackwardPassAreNoMicroBatch) {
    Program program;
    for (int step = 0; step < 2; ++step) {
        program.forward(0), program.backward(0);
        program.update();
        program.forward(10);  // an evaluation
        program.end();
    }
    EXPECT_EQ(found_in(program.recording, clipped()).passes, 1);
}

// A program that joins the clip with a product: the clip's price is the machine's, and not added to a step of 35 us.
TEST(RecordedPasses, OfLayersWithoutACallAreInTheStepAlready) {
    const Schedule schedule = clipped();
    Program program;
    program.clips = false;
    for (int step = 0; step < 2; ++step) {
        program.forward(), program.backward(), program.update();
        program.end();
    }
    const MatchedRecording found = found_in(program.recording, schedule);
    EXPECT_THAT(found.missing, ElementsAre("clip"));
    std::map<std::string, double> prices = prices_by_step(program.recording, schedule);
    EXPECT_GT(prices["clip:forward"], 0);
    EXPECT_NEAR(prices["layers"] + prices["update"], 35, 1e-6);
}

// 5 us of an operator that has no layer, 40 idle behind it, and 10 before the first: in all prices alike.
TEST(RecordedPasses, SayWhatIsIdleWhereNoLayerIs) {
    const Schedule schedule = clipped();
    Program program;
    for (int step = 0; step < 2; ++step) {
        program.call(Part::idle, "before the first operator", "", 0);
        program.idle(10);
        program.forward(), program.backward();
        program.call(Part::forward, "aten::empty", "", 5, 20);
        program.idle(40);
        program.update();
        program.end();
    }
    const MatchedRecording found = found_in(program.recording, schedule);
    EXPECT_NEAR(found.shares.unmatched, 5e-6, 1e-12);
    EXPECT_NEAR(found.shares.beside, 50e-6, 1e-12);
    ASSERT_EQ(found.unmatched.size(), 2U);
    EXPECT_EQ(found.unmatched[0].name, "aten::empty");
    EXPECT_NEAR(found.unmatched[0].seconds, 5e-6, 1e-12);
    EXPECT_NEAR(found.unmatched[0].idle, 40e-6, 1e-12);
    EXPECT_EQ(found.unmatched[1].pass, "idle");
    EXPECT_NEAR(stretch_of(found, schedule, slow_device()), 90.0 / 35, 1e-9);
    EXPECT_NEAR(summarize(found.timeline).step.value, 90e-6, 1e-12);
}

TEST(RecordedPasses, AreOfFamiliesThatFrameworksAndNetworksShare) {
    for (const char* name : {"aten::hardtanh_", "aten::clamp", "aten::elu_", "aten::leaky_relu", "aten::silu_",
                             "autograd::engine::evaluate_function: HardtanhBackward0"})
        EXPECT_EQ(family_of(name), CallFamily::activation) << name;
    for (const char* function : {"clip", "elu", "leakyrelu", "hardswish"})
        EXPECT_EQ(family_of(Op{Elementwise{.function = function, .shape = {4}, .inputs = {{4}}}}),
                  CallFamily::activation)
            << function;
    EXPECT_EQ(family_of("aten::group_norm"), CallFamily::normalization);
    EXPECT_EQ(family_of("NativeGroupNormBackward0"), CallFamily::normalization);
    EXPECT_EQ(family_of("aten::batch_norm"), CallFamily::batch_norm);
    EXPECT_EQ(family_of("aten::lstm"), CallFamily::recurrent);
    EXPECT_EQ(family_of("aten::mul_"), CallFamily::arithmetic);
    const Op times{Elementwise{.function = "mul", .shape = {4}, .inputs = {{4}, {4}}}};
    EXPECT_TRUE(says_function(times, "aten::mul"));
    EXPECT_TRUE(says_function(times, "MulBackward0"));
    EXPECT_FALSE(says_function(times, "aten::div"));
    EXPECT_EQ(agreement({"lstm", Recurrent{"lstm", 32, 128, 128}, {}, {}}, "aten::lstm",
                        shapes_in("[[8, 32, 128], [], []]"), 8),
              Agreement::equal);
    EXPECT_EQ(agreement({"norm", Normalization{{16, 32, 32}, 4}, {}, {}}, "aten::group_norm",
                        shapes_in("[[8, 16, 32, 32], [], [16]]"), 4),
              Agreement::different);
}

}  // namespace
}  // namespace rehearse::calibrate
