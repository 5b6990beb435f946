// SPDX-License-Identifier: Apache-2.0
#include "calibrate/quick.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "models/models.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::StartsWith;

Machine two_cores() {
    Machine host;
    host.name = "this-host";
    host.classes.resize(1);
    host.classes[0].name = "core";
    NodeKind node{.name = "node", .count = 1, .vertices = {}, .links = {}};
    node.vertices = {{"core0", VertexKind::device, 0}, {"core1", VertexKind::device, 0}, {"memory"}};
    node.links = {{0, 2, {}, {}}, {1, 2, {}, {}}};
    host.nodes = {node};
    return host;
}

Problem relu(std::int64_t batch) { return {Activation{Nonlinearity::relu, {1000}}, Pass::forward, batch}; }

Samples planted() {
    Samples samples{.host = "node7", .date = "2024-05-01", .ranks = 2, .compute = {}, .figures = {}, .messages = {}};
    samples.figures = {{100_GFLOPS, 0.01, 7}, {10_GBps, 0.02, 7}, {1_us, 0.1, 7}};
    // 8 kB a sample at 10 GB/s: 0.8 us a sample; measured at half of that rate.
    samples.compute = {{relu(10), "onednn", "", 17_us, 0.031, 7}, {relu(20), "onednn", "", 33_us, 0.02, 7}};
    Messages messages;
    for (const double size : {8.0, 1e3, 1e5, 1e7})
        messages.samples.push_back({Bytes{size}, 3_us + Bytes{size} / 4_GBps});
    messages.reduce = {6_GBps, 0.05, 7};
    samples.messages = messages;
    return samples;
}

TEST(Apply, PricesWhatWasMeasuredByItsMedianAndError) {
    const Machine host = apply(two_cores(), planted());
    const Price exact = price(relu(10), host.classes[0]);
    EXPECT_EQ(exact.time, 17_us);
    EXPECT_EQ(exact.error, 0.031);
    EXPECT_EQ(exact.source, "measured, node7, 2024-05-01, 7 samples, residual 3.1 % (onednn)");
    EXPECT_EQ(host.classes[0].measured.at(to_string(relu(20))).samples, 7);
}

TEST(Apply, PricesWhatWasNotMeasuredByTheShareOfTheRoofline) {
    const Machine host = apply(two_cores(), planted());
    const Problem other{Activation{Nonlinearity::relu, {500}}, Pass::forward, 100};
    const Price rest = price(other, host.classes[0]);
    EXPECT_NEAR(rest.time.value, 81e-6, 1e-12);  // 400 kB at 10 GB/s, at half the rate, and 1 us launch
    EXPECT_THAT(rest.source, HasSubstr("measured, node7, 2024-05-01, 2 samples"));
    EXPECT_GT(rest.error, 0);
}

TEST(Apply, GivesEveryFigureItsSource) {
    const Machine host = apply(two_cores(), planted());
    const DeviceClass& core = host.classes[0];
    EXPECT_EQ(core.peak.at(DataType::f32).value, 100_GFLOPS);
    EXPECT_EQ(core.memory_bandwidth.value, 10_GBps);
    EXPECT_EQ(core.launch.value, 1_us);
    for (const std::string& source :
         {core.peak.at(DataType::f32).source, core.memory_bandwidth.source, core.launch.source,
          core.efficiencies.front().source, host.inside.overhead.source, host.inside.fraction.source,
          host.inside.reduce.source, host.nodes[0].links[0].bandwidth.source}) {
        EXPECT_THAT(source, StartsWith("measured, node7, 2024-05-01, "));
        EXPECT_THAT(source, HasSubstr("residual"));
    }
    EXPECT_FALSE(host.nodes[0].links[0].latency.source.empty());
}

TEST(Apply, FitsMessagesToTheLinksBetweenCores) {
    const Machine host = apply(two_cores(), planted());
    EXPECT_NEAR(host.inside.overhead.value.value, 3e-6, 1e-14);
    EXPECT_NEAR(host.inside.fraction.value, 0.4, 1e-9);  // 4 of the 10 GB/s that a core copies
    EXPECT_EQ(host.inside.reduce.value, 6_GBps);
    EXPECT_NEAR(host.inside.error, 0, 1e-9);
}

// A busy host delays small messages for seconds, and the large ones come as ever: what is written must still be a
// machine file.
TEST(Apply, WritesAMachineThatCanBeReadHoweverDisturbedItsMessagesWere) {
    Samples samples = planted();
    for (double size = 8; size < 1e6; size *= 4)
        for (const double taken : {0.5, 1.0, 2.0}) samples.messages->samples.push_back({Bytes{size}, Seconds{taken}});
    Machine host = apply(two_cores(), samples);
    host.classes[0].memory = {Bytes{64e9}, "data sheet"};
    EXPECT_EQ(host.inside.error, widest_error);
    EXPECT_EQ(models::parse_machine(models::to_toml(host), "written.toml").inside.error, widest_error);
}

// So does one who takes the memory while its bandwidth is measured, and is gone when the kernels are.
TEST(Apply, WritesAMachineThatCanBeReadHoweverSlowItsMemoryWas) {
    Samples samples = planted();
    samples.figures.peak.median = Flops{1e3} / Seconds{1};
    samples.figures.memory_bandwidth.median = Bandwidth{1e3};
    Machine host = apply(two_cores(), samples);
    host.classes[0].memory = {Bytes{64e9}, "data sheet"};
    const Machine read = models::parse_machine(models::to_toml(host), "written.toml");
    ASSERT_FALSE(read.classes[0].efficiencies.empty());
    EXPECT_DOUBLE_EQ(read.classes[0].efficiencies[0].fraction, 9.9);
}

TEST(Apply, LeavesALinkOfADataSheetAsItIs) {
    Machine host = two_cores();
    host.nodes[0].links[1].bandwidth = {8_GBps, "data sheet"};
    host = apply(host, planted());
    EXPECT_EQ(host.nodes[0].links[1].bandwidth.value, 8_GBps);
    EXPECT_NEAR(host.inside.fraction.value, 0.5, 1e-9);  // of the narrowest link
}

TEST(Apply, LeavesMessagingAbsentWhenOneRankMeasured) {
    Samples samples = planted();
    samples.messages.reset();
    const Machine host = apply(two_cores(), samples);
    EXPECT_TRUE(host.inside.overhead.source.empty());
    EXPECT_TRUE(host.nodes[0].links[0].bandwidth.source.empty());
}

TEST(Apply, ASecondTimeReplacesWhatIsMeasuredAgainAndKeepsTheRest) {
    Samples again = planted();
    again.date = "2024-05-02";
    again.figures.memory_bandwidth.median = 20_GBps;
    again.compute.resize(1);
    const Machine host = apply(apply(two_cores(), planted()), again);
    EXPECT_THAT(host.classes[0].measured.at(to_string(relu(10))).source, HasSubstr("2024-05-02"));
    EXPECT_THAT(host.classes[0].measured.at(to_string(relu(20))).source, HasSubstr("2024-05-01"));
    EXPECT_EQ(host.nodes[0].links[0].bandwidth.value, 20_GBps);
    EXPECT_EQ(host.classes[0].efficiencies.size(), 3U);
}

TEST(Doubt, IsNoneWhereMessagesLieOnLines) { EXPECT_EQ(doubt_of_messages(planted()), ""); }

TEST(Doubt, IsNoneWithoutMessages) {
    Samples samples = planted();
    samples.messages.reset();
    EXPECT_EQ(doubt_of_messages(samples), "");
}

TEST(Doubt, IsOfMessagesThatTakeNoLongerWhenTheyAreLarge) {
    Samples samples = planted();
    for (MessageSample& each : samples.messages->samples) each.one_way = 4000_us;  // a slice of a scheduler
    EXPECT_THAT(doubt_of_messages(samples),
                testing::AllOf(StartsWith("large messages took no longer than small ones on node7 on 2024-05-01"),
                               HasSubstr("calibrate again")));
    EXPECT_GT(apply(two_cores(), samples).inside.overhead.value, 3000_us);  // it is kept all the same
}

// Half of each size's messages take 100 times as long: the median is 50.5 times, the others 98 % off, 1.48 times that.
TEST(Doubt, IsOfMessagesWhoseTimesScatter) {
    Samples samples = planted();
    samples.messages->samples.clear();
    for (const double size : {8.0, 1e3, 1e5, 1e7}) {
        for (const double times : {1, 1, 100, 100})
            samples.messages->samples.push_back({Bytes{size}, times * (3_us + Bytes{size} / 4_GBps)});
    }
    EXPECT_THAT(doubt_of_messages(samples), StartsWith("messages of one size took times that differ by 145 %"));
}

TEST(Doubt, IsOfNetworksWhoseKernelsTakeMuchLongerInSteps) {
    EXPECT_EQ(doubt_of_steps(planted(), {{"resnet32", 1.2}}), "");
    EXPECT_THAT(doubt_of_steps(planted(), {{"resnet32", 4.6}}),
                testing::AllOf(StartsWith("kernels of resnet32 took 4.6 times as long"),
                               HasSubstr("on node7 on 2024-05-01"), HasSubstr("calibrate again")));
}

// A price that was scaled is no measurement in a step.
TEST(Apply, SaysOfWhatNoStepHadByHowMuchItWasScaled) {
    Samples samples = planted();
    samples.compute[0].scaled = 1.25;
    const Machine host = apply(two_cores(), samples);
    EXPECT_THAT(price(relu(10), host.classes[0]).source, HasSubstr("(onednn), scaled from its time alone by 1.25"));
    EXPECT_THAT(price(relu(20), host.classes[0]).source, testing::EndsWith("(onednn)"));
}

// Whatever is measured is a file that can be read again.
TEST(Apply, BoundsErrorsToWhatAMachineFileMayHold) {
    Samples samples = planted();
    samples.compute[0].error = 300;
    samples.messages->samples.clear();
    for (int i = 0; i < 40; ++i)
        samples.messages->samples.push_back({Bytes{8.0 * (1 << (i / 2))}, i % 4 < 2 ? 1_us : 50000_us});
    const Machine host = apply(two_cores(), samples);
    EXPECT_EQ(host.classes[0].measured.at(to_string(relu(10))).error, 10);
    EXPECT_EQ(host.inside.error, 10);
    EXPECT_NE(doubt_of_messages(samples), "");
}

TEST(Apply, RefusesAHostOfSeveralDeviceClasses) {
    Machine host = two_cores();
    host.classes.resize(2);
    EXPECT_THROW(apply(host, planted()), InputError);
    host.classes.clear();
    EXPECT_THROW(apply(host, planted()), InputError);
}

}  // namespace
}  // namespace rehearse::calibrate
