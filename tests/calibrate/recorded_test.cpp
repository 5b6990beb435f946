// SPDX-License-Identifier: Apache-2.0
// Recordings written by hand, held against a network of a convolution, a ReLU and two dense layers. Sums are worked out
// beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>

#include "calibrate/quick.hpp"
#include "calibrate/recorded_calls.hpp"
#include "calibrate/recorded_prices.hpp"
#include "calibrate/recorded_timeline.hpp"
#include "core/error.hpp"
#include "core/iterations.hpp"
#include "models/models.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {
namespace {

using Part = RecordedCall::Part;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t batch = 2;
constexpr std::int64_t us = 1000;

// conv 3 x 8 x 8 -> 4 x 8 x 8, relu, flatten, fc1 256 -> 5, fc2 5 -> 5, loss.
Schedule network() {
    Schedule schedule;
    schedule.mesh = {{{"data", 1}}};
    schedule.plan = "data=1";
    schedule.batch_per_rank = batch;
    RankClass& steps = schedule.classes.emplace_back();
    const Window window{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    Network& net = steps.part.network;
    net.name = "tiny";
    net.layers = {{"input", Input{{3, 8, 8}}, {}, {3, 8, 8}},
                  {"conv", Conv{3, 8, 8, 4, window}, {0}, {4, 8, 8}},
                  {"relu", Activation{Nonlinearity::relu, {4, 8, 8}}, {1}, {4, 8, 8}},
                  {"flatten", Flatten{{4, 8, 8}}, {2}, {256}},
                  {"fc1", MatMul{1, 5, 256}, {3}, {5}},
                  {"fc2", MatMul{1, 5, 5}, {4}, {5}},
                  {"loss", SoftmaxLoss{5}, {5}, {1}}};
    const auto add = [&](int layer, Pass pass) {
        const Layer& of = net.layers[at(layer)];
        steps.steps.push_back({fmt::format("{}:{}", of.name, to_string(pass)),
                               Stream::compute,
                               Compute{LayerIndex{layer}, {of.op, pass, batch}, 0},
                               {}});
    };
    for (const int layer : {1, 2, 4, 5, 6}) add(layer, Pass::forward);
    add(6, Pass::backward_data);
    for (const int layer : {5, 4}) add(layer, Pass::backward_weights), add(layer, Pass::backward_data);
    add(2, Pass::backward_data);
    add(1, Pass::backward_weights);
    steps.part.buckets = {{{1, 4, 5}, 1000, 0}};
    steps.steps.push_back(
        {"bucket0:update", Stream::compute, Update{BucketIndex{0}, {SgdUpdate{1000}, Pass::update, 1}}, {}});
    schedule.network = net;
    return schedule;
}

DeviceClass device() {
    DeviceClass device;
    device.name = "d";
    device.peak[DataType::f32] = {FlopRate{1e12}, "test"};
    device.memory_bandwidth = {Bandwidth{1e11}, "test"};
    return device;
}

class Recorder {
public:
    /// Gradients are set to zero before the call of each step that has this number; nowhere without one.
    explicit Recorder(int steps, int zeroed_before = -1) : zeroed_before_(zeroed_before) {
        recording_.path = "t.json";
        recording_.texts = {""};
        for (int i = 0; i < steps; ++i) step(i);
    }
    const Recording& recording() const { return recording_; }
    Recording& recording() { return recording_; }

private:
    // One call after the other; of each `time` us, and 1 us idle behind it. In all 64 us a step.
    void step(int number) {
        const std::int64_t start = now_;
        int calls = 0;
        const auto take = [&](Part part, std::string_view name, std::string_view shapes, std::int64_t sequence,
                              std::int64_t time) {
            RecordedCall made;
            made.part = part;
            made.step = number;
            made.name = text(name);
            made.shapes = text(shapes);
            made.sequence = sequence < 0 ? -1 : 100 * number + sequence;
            made.start = made.at = now_;
            made.end = now_ + time * us;
            made.busy = time * us;
            made.gap = us;
            now_ += (time + 1) * us;
            recording_.calls.push_back(made);
        };
        const auto zero = [&] {
            if (calls++ == zeroed_before_) take(Part::update, "Optimizer.zero_grad#SGD.zero_grad", "", -1, 7);
        };
        const auto call = [&](Part part, std::string_view name, std::string_view shapes, std::int64_t sequence,
                              std::int64_t time) {
            zero();
            take(part, name, shapes, sequence, time);
        };
        const auto node = [&](std::string_view name, std::int64_t sequence, std::int64_t time) {
            call(Part::backward, fmt::format("autograd::engine::evaluate_function: {}", name), "", sequence, time);
        };
        call(Part::forward, "aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [], []]", 0, 9);
        call(Part::forward, "aten::relu_", "[[2, 4, 8, 8]]", 1, 3);
        call(Part::forward, "aten::flatten", "[[2, 4, 8, 8], [], []]", 2, 1);
        call(Part::forward, "aten::linear", "[[2, 256], [5, 256], [5]]", 3, 4);
        call(Part::forward, "aten::linear", "[[2, 5], [5, 5], [5]]", 5, 2);
        call(Part::forward, "aten::cross_entropy_loss", "[[2, 5], [2], []]", 7, 2);
        node("NllLossBackward0", 8, 1);
        node("LogSoftmaxBackward0", 7, 1);
        node("AddmmBackward0", 6, 2);
        node("TBackward0", 5, 0);
        node("AddmmBackward0", 4, 6);
        inner("aten::mm", "[[2, 5], [5, 256]]", 2);
        inner("aten::mm", "[[5, 2], [2, 256]]", 4);
        node("torch::autograd::AccumulateGrad", -1, 1);
        node("ReluBackward0", 1, 2);
        node("ConvolutionBackward0", 0, 9);
        call(Part::forward, "aten::mystery", "", 10, 1);
        call(Part::update, "Optimizer.step#SGD.step", "", -1, 4);
        zero();
        recording_.steps.push_back({start, now_, 0, 0});
    }
    void inner(std::string_view name, std::string_view shapes, std::int64_t time) {
        RecordedCall& node = recording_.calls.back();
        if (node.inners++ == 0) node.inner = static_cast<std::uint32_t>(recording_.inner.size());
        recording_.inner.push_back({text(name), text(shapes), time * us});
    }
    std::uint32_t text(std::string_view wanted) {
        for (std::size_t i = 0; i < recording_.texts.size(); ++i) {
            if (recording_.texts[i] == wanted) return static_cast<std::uint32_t>(i);
        }
        recording_.texts.emplace_back(wanted);
        return static_cast<std::uint32_t>(recording_.texts.size() - 1);
    }

    Recording recording_;
    int zeroed_before_;
    std::int64_t now_ = 0;
};

std::map<std::string, double> times_of(const Timeline& timeline) {  // us, of the first iteration
    std::map<std::string, double> times;
    for (const Event& event : timeline.events) {
        if (event.iteration == 1) times[event.step] += (event.end - event.start).value * 1e6;
    }
    return times;
}

TEST(Recorded, FamiliesAndShapesAreReadOutOfNames) {
    EXPECT_EQ(family_of("aten::cudnn_convolution"), CallFamily::convolution);
    EXPECT_EQ(family_of("autograd::engine::evaluate_function: AddmmBackward0"), CallFamily::product);
    EXPECT_EQ(family_of("aten::add_"), CallFamily::add);
    EXPECT_EQ(family_of("aten::tanh"), CallFamily::activation);
    EXPECT_EQ(family_of("aten::t"), CallFamily::movement);
    EXPECT_EQ(family_of("aten::log_softmax"), CallFamily::loss);
    EXPECT_EQ(family_of("aten::_softmax"), CallFamily::softmax);
    EXPECT_THAT(shapes_in("[[2, 256], [5, 256], []]"),
                ElementsAre(ElementsAre(2, 256), ElementsAre(5, 256), ElementsAre()));
    EXPECT_TRUE(shapes_in("").empty());
}

// Times with 1 us of idle time behind each call: conv 9 + 1, both gradients of fc1 in the shares of its products, 2 :
// 4, of 6 + 1 us, and what adds to the weights' gradient behind it, 1 + 1.
TEST(Recorded, CallsBecomeTheStepsOfASchedule) {
    const Recorder recorder(4);
    const Schedule schedule = network();
    const MatchedRecording found = matched({&recorder.recording(), 1}, schedule, named_steps(schedule));
    EXPECT_TRUE(found.by_shape);
    EXPECT_EQ(found.steps, 3);  // without the warm-up
    EXPECT_TRUE(found.missing.empty());
    std::map<std::string, double> times = times_of(found.timeline);
    EXPECT_NEAR(times["conv:forward"], 10, 1e-6);
    EXPECT_NEAR(times["conv:backward_weights"], 10, 1e-6);  // the input has no gradient
    EXPECT_NEAR(times["fc1:backward_data"], 7 * 2.0 / 6, 1e-6);
    EXPECT_NEAR(times["fc1:backward_weights"], 7 * 4.0 / 6 + 2, 1e-6);
    EXPECT_NEAR(times["fc2:backward_data"] + times["fc2:backward_weights"], 4, 1e-6);  // with the transposition
    EXPECT_NEAR(times["loss:backward_data"], 4, 1e-6);
    EXPECT_NEAR(times["bucket0:update"], 5, 1e-6);
    EXPECT_NEAR(times["aten::mystery"], 2, 1e-6);
    ASSERT_EQ(found.unmatched.size(), 2U);
    EXPECT_EQ(found.unmatched[0].name, "aten::flatten");
    EXPECT_EQ(found.unmatched[1].name, "aten::mystery");
    EXPECT_NEAR(found.shares.step, 64e-6, 1e-12);
    EXPECT_NEAR(found.shares.gaps, 16e-6, 1e-12);
    EXPECT_NEAR(found.shares.unmatched, 2e-6, 1e-12);
}

// Steps of 64 us, and 8 us in which gradients are set to zero: before the forward pass, before the backward pass or
// after the optimizer's step. The optimizer's 5 and these 8 us are one event, which nothing else is beside.
TEST(Recorded, TheOptimizersCallsAreOneEventBesideNoOther) {
    for (const int before : {0, 6, 16}) {
        const Recorder recorder(4, before);
        const Schedule schedule = network();
        const MatchedRecording found = matched({&recorder.recording(), 1}, schedule, named_steps(schedule));
        EXPECT_NEAR(times_of(found.timeline)["bucket0:update"], 13, 1e-6) << before;
        EXPECT_NEAR(summarize(found.timeline).step.value, 72e-6, 1e-12) << before;
        Seconds update{}, others{};  // when it begins, and when they end
        for (const Event& event : found.timeline.events) {
            if (event.iteration != 2) continue;
            if (event.step == "bucket0:update") update = event.start;
            if (event.step != "bucket0:update") others = std::max(others, event.end);
        }
        EXPECT_NEAR(update.value, others.value, 1e-12) << before;
    }
}

// A call of 1 us, and 1 us idle behind it, as a wait for samples; the device beside it had nothing to do for as long.
TEST(Recorded, AWaitForSamplesIsInTheTimelineAndInNoPrice) {
    Recorder recorder(4);
    Recording& recording = recorder.recording();
    for (RecordedCall& call : recording.calls) {
        if (recording.name_of(call) == "aten::mystery") call.part = Part::loader;
    }
    for (RecordedStep& step : recording.steps) step.loader = us;
    const Schedule schedule = network();
    const MatchedRecording found = matched({&recording, 1}, schedule, named_steps(schedule));
    EXPECT_NEAR(found.shares.loader, 1e-6, 1e-12);
    EXPECT_NEAR(found.computing(), 63e-6, 1e-12);
    const auto wait = std::ranges::find(found.timeline.events, Stream::io, &Event::stream);
    ASSERT_NE(wait, found.timeline.events.end());
    EXPECT_EQ(wait->pass, "load");
    EXPECT_NEAR((wait->end - wait->start).value, 2e-6, 1e-12);
    EXPECT_NEAR(summarize(found.timeline).step.value, 64e-6, 1e-12);
}

// Who compares timelines leaves the first of three or more iterations out: it is the warm-up, which is gone already.
TEST(Recorded, TheWarmUpIsLeftOutOnce) {
    const Schedule schedule = network();
    const auto counted = [&](int steps) {
        const Recorder recorder(steps);
        return to_string(iterations(matched({&recorder.recording(), 1}, schedule, named_steps(schedule)).timeline));
    };
    EXPECT_EQ(counted(1), "1 iteration");
    EXPECT_EQ(counted(2), "median of 2 iterations");
    EXPECT_EQ(counted(3), "median of 2 iterations (the first, a warm-up, left out)");
    EXPECT_EQ(counted(4), "median of 3 iterations (the first, a warm-up, left out)");
}

TEST(Recorded, PricesAddUpToTheStep) {
    const Recorder recorder(4);
    const Schedule schedule = network();
    const MatchedRecording found = matched({&recorder.recording(), 1}, schedule, named_steps(schedule));
    double sum = 0;
    for (const Sample& sample : prices_of(found, schedule, device())) {
        EXPECT_EQ(sample.count, 3);
        sum += sample.median.value;  // each problem is once in this network
    }
    EXPECT_NEAR(sum, 64e-6, 1e-12);
}

// Every other step is longer by far: a price stays uncertain by no more than itself.
TEST(Recorded, ErrorsOfPricesStayBelowThePrice) {
    Recorder recorder(6);
    for (RecordedCall& call : recorder.recording().calls) {
        if (call.step % 2 == 1) call.busy *= call.part == Part::update ? 1 : 50 * call.step;
    }
    const Schedule schedule = network();
    const MatchedRecording found = matched({&recorder.recording(), 1}, schedule, named_steps(schedule));
    for (const Sample& sample : prices_of(found, schedule, device()))
        EXPECT_LE(sample.error, 1) << to_string(sample.problem);
}

// Steps of 64 us, every other one 8 us longer. Half of the differences of two normal values are within
// 0.674490 x sqrt(2) = 0.953873 deviations (tables of the normal distribution).
TEST(Recorded, StepsThatDifferFromTheirNeighboursGoIntoTheMachine) {
    Recorder recorder(6);
    const Schedule schedule = network();
    const auto found = [&] { return matched({&recorder.recording(), 1}, schedule, named_steps(schedule)); };
    EXPECT_EQ(found().spread, 0) << "all alike";
    for (std::size_t step = 0; step < 6; step += 2) recorder.recording().steps[step].end += 8 * us;
    const double expected = 8.0 / 64 / 0.953873;
    EXPECT_NEAR(found().spread, expected, 1e-6);
    recorder.recording().steps[5].end += 1000 * us;
    EXPECT_NEAR(found().spread, expected * 64 / 72, 1e-6) << "one step that was held up says nothing of the others";
    Machine machine = machine_of_one("d", "test", Bytes{1e9});
    machine = with_prices(machine, prices_of(found(), schedule, device()), found().spread, "test");
    EXPECT_NEAR(models::parse_machine(models::to_toml(machine), "m.toml").classes.front().step_spread.value,
                expected * 64 / 72, 1e-6);
    Recorder few(4);
    few.recording().steps[1].end += 8 * us;
    EXPECT_EQ(matched({&few.recording(), 1}, schedule, named_steps(schedule)).spread, 0) << "three after the first";
}

TEST(Recorded, TheOptimizersShareOfTheBandwidthGoesIntoTheMachine) {
    const Recorder recorder(4);
    const Schedule schedule = network();
    const MatchedRecording found = matched({&recorder.recording(), 1}, schedule, named_steps(schedule));
    Machine machine = machine_of_one("d", "test", Bytes{1e9});
    machine.classes.front() = device();
    machine = with_prices(machine, prices_of(found, schedule, device()), found.spread, "test");
    const Problem update{SgdUpdate{1000}, Pass::update, 1}, larger{SgdUpdate{3000}, Pass::update, 1};
    const double one = price(update, machine.classes.front()).time.value;
    EXPECT_NEAR(price(larger, machine.classes.front()).time.value, 3 * one, 1e-12);
}

TEST(Recorded, QueriesKeysAndValuesMayBeThreeCalls) {
    Layer qkv{"qkv", MatMul{4, 24, 8}, {}, {}};
    EXPECT_EQ(agreement(qkv, "aten::linear", shapes_in("[[2, 4, 8], [24, 8], [24]]"), 2), Agreement::equal);
    EXPECT_EQ(agreement(qkv, "aten::linear", shapes_in("[[2, 4, 8], [8, 8], [8]]"), 2), Agreement::different);
    EXPECT_EQ(agreement(qkv, "aten::linear", {}, 2), Agreement::unknown);
    EXPECT_EQ(agreement(qkv, "aten::addmm", shapes_in("[[24], [8, 8], [8, 24]]"), 2), Agreement::equal);
    EXPECT_EQ(agreement(qkv, "aten::matmul", shapes_in("[[2, 2, 4, 4], [2, 2, 4, 4]]"), 2), Agreement::different);
}

TEST(Recorded, AnotherBatchIsRefusedWithTheOneThatWasRecorded) {
    const Recorder recorder(3);
    Schedule schedule = network();
    schedule.batch_per_rank = 7;
    EXPECT_THAT(
        [&] {
            matched({&recorder.recording(), 1}, schedule, named_steps(schedule));
        },
        ThrowsMessage<InputError>(testing::AllOf(HasSubstr("at 7 samples"), HasSubstr("[[2, 3, 8, 8]"))));
}

// Without numbers and shapes: nodes of a kind in the opposite order of the calls of that kind.
TEST(Recorded, OrderAndKindAreEnoughWhereNothingElseIsKnown) {
    Recorder recorder(4);
    for (RecordedCall& call : recorder.recording().calls) call.sequence = -1, call.shapes = 0;
    const Schedule schedule = network();
    const MatchedRecording found = matched({&recorder.recording(), 1}, schedule, named_steps(schedule));
    EXPECT_FALSE(found.by_shape);
    std::map<std::string, double> times = times_of(found.timeline);
    EXPECT_NEAR(times["conv:backward_weights"], 10, 1e-6);
    EXPECT_NEAR(times["relu:backward_data"], 3, 1e-6);
    EXPECT_NEAR(times["fc1:backward_data"] + times["fc1:backward_weights"], 9, 1e-6);
}

// Of two ranks' times of one collective the shorter: who came last waited for nobody. 4 ranks, 1 MB in 60 us: six
// messages of 250 kB of 10 us.
TEST(Recorded, CollectivesBecomeMessagesOfARing) {
    Recording a, b;
    a.collectives = {{"all_reduce", Bytes{1e6}, 4, 0, 0, 90 * us}};
    b.collectives = {{"all_reduce", Bytes{1e6}, 4, 0, 30 * us, 90 * us}};
    const std::array<Recording, 2> both{a, b};
    const std::vector<RecordedMessage> messages = messages_of(both, 4);
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_NEAR(messages[0].time.value, 60e-6, 1e-12);
    EXPECT_NEAR(messages[0].bus.value, 1e6 / 60e-6 * 1.5, 1);
    ASSERT_EQ(messages[0].samples.size(), 1U);
    EXPECT_NEAR(messages[0].samples[0].size.value, 250e3, 1e-6);
    EXPECT_NEAR(messages[0].samples[0].one_way.value, 10e-6, 1e-12);
}

// Of 8 ranks on nodes of 4: those of a node, one of each node, all, and two that nobody lists; six fill no two nodes.
TEST(Recorded, CollectivesAreWhereTheirRanksAre) {
    Recording recording;
    recording.ranks = 8;
    const auto hosts = [&](std::int64_t ranks, std::vector<std::int64_t> members) {
        recording.collectives = {{"all_reduce", Bytes{1e6}, ranks, 0, 0, 90 * us, std::move(members)}};
        return messages_of({&recording, 1}, 4).at(0).hosts;
    };
    EXPECT_EQ(hosts(4, {4, 5, 6, 7}), 1);
    EXPECT_EQ(hosts(2, {1, 5}), 2);
    EXPECT_EQ(hosts(8, {}), 2);
    EXPECT_EQ(hosts(2, {}), 0);
    EXPECT_EQ(hosts(6, {0, 1, 2, 3, 4, 5}), 6);
    recording.ranks = 4;
    EXPECT_EQ(hosts(2, {}), 1) << "the whole job fits a node";
}

}  // namespace
}  // namespace rehearse::calibrate
