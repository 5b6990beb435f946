// SPDX-License-Identifier: Apache-2.0
// A right prediction passes, and each way in which a simulator could be wrong is caught.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "fixture.hpp"
#include "modes.hpp"
#include "refusal.hpp"
#include "sim/check/bounds.hpp"
#include "sim/check/certificate.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::HasSubstr;

// A product of 2 GFLOP, whose device does 1 TFLOP/s: 2 ms; then two buckets of 40 and 4 MB, and a step after them.
Schedule training(std::int64_t ranks, const char* algorithm) {
    const Problem product{.op = MatMul{.m = 1000, .n = 1000, .k = 1000, .bias = false},
                          .pass = Pass::forward,
                          .batch = 1,
                          .type = DataType::f32};
    std::vector<Step> steps{{"product", Stream::compute, Compute{LayerIndex{0}, product, 0}, {}},
                            all_reduce_step(0, 10'000'000, parse_algorithm(algorithm), {0}),
                            all_reduce_step(1, 1'000'000, parse_algorithm(algorithm), {0}),
                            {"last", Stream::compute, Compute{LayerIndex{0}, product, 0}, {1, 2}}};
    return data_schedule(ranks, std::move(steps));
}

struct Case {
    Machine machine = summit_like(4);
    Schedule schedule;
    Timeline timeline;

    explicit Case(Mode mode, const char* algorithm = "ring", std::int64_t ranks = 24)
        : schedule(training(ranks, algorithm)) {
        timeline = simulate(schedule, machine, {.mode = mode, .iterations = 2, .links = true}).timeline;
    }
    std::string refusal() const { return test::refusal(timeline, schedule, machine); }
    void each(std::string_view step, const std::function<void(Event&)>& change) {
        for (Event& event : timeline.events) {
            if (event.step.starts_with(step)) change(event);
        }
    }
};

class Certificate : public testing::TestWithParam<Mode> {};

TEST_P(Certificate, IsGivenToWhatIsRight) {
    for (const char* algorithm : {"ring", "doubling", "halving", "tree", "hierarchical(ring,halving)", "doubletree"}) {
        EXPECT_EQ(Case(GetParam(), algorithm).refusal(), "nothing") << algorithm;
    }
}

// Two products of 2 ms; the ring sends 2 x 23/24 x 44 MB a rank over all links of its device, and the six ranks of a
// node share its NICs: 2 x 3/4 x 4 nodes x 44 MB over four nodes' NICs.
TEST_P(Certificate, SaysWhatItHeldTheStepAgainst) {
    const Case c{GetParam()};
    const Bounds bounds = simulate(c.schedule, c.machine, {.mode = GetParam(), .iterations = 2}).bounds;
    EXPECT_NEAR(bounds.compute.value, 4e-3, 1e-9);
    const Wiring wiring{c.machine, nominal, {}};
    const double own = 2 * 23 / 24.0 * 44e6 / wiring.egress(0).value;
    const double nics = 2 * 3 * 44e6 / (4 * wiring.node_egress(0).value);
    EXPECT_NEAR(bounds.wire.value, std::max(own, nics), 1e-9);
}

TEST_P(Certificate, CatchesKernelsAbovePeak) {
    Case wrong{GetParam()};
    wrong.each("product", [](Event& e) { e.end = e.start + Seconds{1.9e-3}; });
    EXPECT_THAT(wrong.refusal(), HasSubstr("product of rank 0"));
    EXPECT_THAT(wrong.refusal(), HasSubstr("2 ms"));
}

// 24 ranks on 4 nodes with two NICs of 10 GB/s: 2 * 3 * 40 MB over 80 GB/s are 3 ms, of the small bucket 0.3 ms; a ring
// that crosses one NIC a node takes twice that. Three times too fast is less than the wire allows.
TEST_P(Certificate, CatchesCollectivesFasterThanTheWire) {
    Case wrong{GetParam(), "hierarchical(ring,halving)"};
    Seconds begin{1e300};
    wrong.each("bucket0", [&](Event& e) { begin = std::min(begin, e.start); });
    const auto faster = [&](Event& e) {
        e.start = begin + (e.start - begin) * 0.3;
        e.end = begin + (e.end - begin) * 0.3;
    };
    std::erase_if(wrong.timeline.events, [](const Event& e) { return e.iteration > 0; });
    wrong.each("bucket", faster);
    EXPECT_THAT(wrong.refusal(), testing::AnyOf(HasSubstr("where NICs need"), HasSubstr("than all links")));
}

// Six ranks of a node read 1 GB each through two NICs of 12.5 GB/s at 0.8: 300 ms. In half of that, one rank of them
// alone would not be too fast.
TEST_P(Certificate, CatchesLoadsFasterThanTheNicsOfTheNode) {
    Machine machine = summit_like(4);
    machine.storage = {{"shared", {2500.0_GBps, "test"}, false}};
    const Schedule schedule = data_schedule(6, {{"load", Stream::io, Load{"shared", 1_GB}, {}}});
    Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_EQ(refusal(timeline, schedule, machine), "nothing");
    EXPECT_NEAR(length(timeline).value, 0.3, 1e-9);
    for (Event& event : timeline.events) event.end = event.start + 0.15_s;
    EXPECT_THAT(refusal(timeline, schedule, machine), HasSubstr("the NICs of all nodes need"));
}

TEST_P(Certificate, CatchesStepsThatDoNotWait) {
    Case wrong{GetParam()};
    wrong.each("last", [](Event& e) {
        e.start -= 1e-3_s;
        e.end -= 1e-3_s;
    });
    EXPECT_THAT(wrong.refusal(), HasSubstr("begins before bucket"));
}

TEST_P(Certificate, CatchesStepsThatAreLost) {
    Case wrong{GetParam()};
    wrong.timeline.events.erase(std::ranges::find(wrong.timeline.events, "bucket1:allreduce", &Event::step));
    EXPECT_THAT(wrong.refusal(), HasSubstr("skips steps"));
    Case renamed{GetParam()};
    renamed.each("bucket1", [](Event& e) { e.step = "bucket7:allreduce"; });
    EXPECT_THAT(renamed.refusal(), HasSubstr("not the next step of communication"));
}

TEST_P(Certificate, CatchesBytesThatVanishInTheFabricAndLinksThatAreOverfull) {
    Case wrong{GetParam()};
    std::ranges::find(wrong.timeline.links, "nic:down", &LinkUse::name)->bytes = 1_MB;
    EXPECT_THAT(wrong.refusal(), HasSubstr("come out"));
    Case overfull{GetParam()};
    for (LinkUse& use : overfull.timeline.links) use.most = use.most * 100.0;
    EXPECT_THAT(overfull.refusal(), HasSubstr("more than"));
}

INSTANTIATE_TEST_SUITE_P(Modes, Certificate, testing::ValuesIn(both_modes), testing::PrintToStringParamName());

TEST(CertificateOfExactMode, CatchesDataThatDidNotMove) {
    Case wrong{Mode::exact};
    wrong.each("bucket0", [](Event& e) { e.bytes = e.bytes * 0.9; });
    EXPECT_THAT(wrong.refusal(), HasSubstr("must move"));
}

// n parts that sum need 2 (n - 1) messages of everything: to one of them, and back.
TEST(Certificate, KnowsWhatMustCross) {
    EXPECT_EQ(least_crossing(CollectiveKind::all_reduce, 4, 10_MB), 60_MB);
    EXPECT_EQ(least_crossing(CollectiveKind::all_gather, 4, 10_MB), 30_MB);
    EXPECT_EQ(least_crossing(CollectiveKind::all_reduce, 1, 10_MB), 0_MB);
    for (const CollectiveKind kind : collective_kinds()) {
        for (const AlgorithmName& one : algorithms(kind)) {
            if (one.name.find('(') != std::string_view::npos) continue;
            for (const std::int64_t n : {2, 3, 4, 7, 8}) {
                const Collective rounds{kind, parse_algorithm(one.name, kind), {n, n}, 840};
                double moved = 0;
                for (std::int64_t r = 0; r < rounds.rounds(); ++r) {
                    for (const Message& message : rounds.messages(r)) moved += static_cast<double>(message.elements);
                }
                EXPECT_GE(moved, least_crossing(kind, n, Bytes{840}).value) << one.name << " " << n;
            }
        }
    }
}

TEST(Certificate, LetsConvolutionsUseFewerOperationsButNotNone) {
    DeviceClass device = plain_device();
    const Conv conv{.channels = 64, .height = 56, .width = 56, .filters = 64, .window = {.kernel_h = 3, .kernel_w = 3}};
    const Problem problem{.op = conv, .pass = Pass::forward, .batch = 8, .type = DataType::f32};
    const double direct = flops(problem.op, problem.pass, problem.batch).value / 1e12;
    EXPECT_DOUBLE_EQ(least_time(problem, device).value, direct / 9);
    device.memory_bandwidth.value = Bandwidth{1e3};  // not the memory: a cache may hold so little
    EXPECT_EQ(least_time(problem, device).value, direct / 9);
    device.measured[to_string(problem)] = {.median = Seconds{direct / 100}, .source = "a sample"};
    EXPECT_EQ(least_time(problem, device).value, direct / 9) << "a sample does not make a peak higher";
}

}  // namespace
}  // namespace rehearse::sim
