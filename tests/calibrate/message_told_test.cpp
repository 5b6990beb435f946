// SPDX-License-Identifier: Apache-2.0
// What a table does not tell stays as the machine has it.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/calibrate/message_tables.hpp"

namespace rehearse::calibrate {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

FileSamples between_sizes(const FileSamples& all, Bytes least, Bytes most) {
    FileSamples some;
    some.where = all.where;
    for (std::size_t i = 0; i < all.collectives.size(); ++i) {
        if (all.collectives[i].bytes < least || all.collectives[i].bytes > most) continue;
        some.collectives.push_back(all.collectives[i]);
        some.messages.push_back(all.messages[i]);
    }
    return some;
}

// Of 200 MB and more 15 us are less than their scatter, here 2 % up and down.
TEST(MessagesTold, KeepsTheOverheadThatLargeMessagesDoNotTell) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    FileSamples large = between_sizes(table(4, 1, 15e-6, 1.5, 226e9, 2e10), 200_MB, 20_GB);
    for (std::size_t i = 0; i < large.collectives.size(); ++i)
        large.collectives[i].time = large.collectives[i].time * (i % 2 == 0 ? 0.98 : 1.02);
    const Machine fitted = with_messages(machine, large, Between::devices, simulated);
    EXPECT_EQ(fitted.inside.overhead.value, machine.inside.overhead.value);
    EXPECT_EQ(fitted.inside.overhead.source, machine.inside.overhead.source);
    EXPECT_EQ(fitted.inside.pieces.front().overhead, machine.inside.overhead.value);
    for (const CollectiveRow& row : large.collectives)
        EXPECT_NEAR(simulated(fitted, row) / row.time, 1, 2 * few_percent);
    EXPECT_THAT(kept(machine, fitted, Between::devices),
                HasSubstr("the overhead of messages between devices stays 2 us"));
    const FileSamples all = table(4, 1, 15e-6, 1.5, 226e9);
    EXPECT_EQ(kept(machine, with_messages(machine, all, Between::devices, simulated), Between::devices), "");
}

TEST(MessagesTold, KeepsTheRateThatSmallMessagesDoNotTell) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    const FileSamples small = between_sizes(table(4, 1, 33e-6, 1.5, 226e9), 1_B, Bytes{5000});
    const Machine fitted = with_messages(machine, small, Between::devices, simulated);
    EXPECT_EQ(fitted.inside.fraction.value, machine.inside.fraction.value);
    EXPECT_EQ(fitted.inside.fraction.source, machine.inside.fraction.source);
    expect_times(fitted, small, Between::devices);
    EXPECT_EQ(fitted.inside.error, machine.inside.error) << "of the rate, which was not measured";
    EXPECT_EQ(fitted.inside.reduce.value, machine.inside.reduce.value) << "nor were sums";
    EXPECT_THAT(kept(machine, fitted, Between::devices),
                HasSubstr("the rate of messages between devices stays the links'"));
}

// A rate that a table of all sizes told stays, where another one of small messages follows, and so do pieces of larger
// messages.
TEST(MessagesTold, KeepsThePiecesThatSmallMessagesDoNotTell) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    const Machine first = with_messages(machine, table(4, 1, 15e-6, 1.5, 40e9), Between::devices, simulated);
    ASSERT_EQ(first.inside.pieces.size(), 1U);
    const FileSamples small = between_sizes(table(4, 1, 33e-6, 1.5, 40e9), 1_B, Bytes{5000});
    const Machine again = with_messages(first, small, Between::devices, simulated);
    expect_times(again, small, Between::devices);
    ASSERT_EQ(again.inside.pieces.size(), 1U);
    EXPECT_EQ(again.inside.pieces.front().rate, first.inside.pieces.front().rate);
    EXPECT_EQ(again.inside.pieces.front().source, first.inside.pieces.front().source);
    EXPECT_EQ(again.inside.pieces.front().overhead, again.inside.overhead.value);
    EXPECT_THAT(kept(first, again, Between::devices),
                HasSubstr("stays " + to_string(first.inside.pieces.front().rate)));

    Machine protocols = machine;
    protocols.inside.pieces = {{64_kB, 2_us, 10_GBps, "eager"}, {{}, 9_us, 90_GBps, "rendezvous"}};
    const Machine kept_large = with_messages(protocols, small, Between::devices, simulated);
    expect_times(kept_large, small, Between::devices);
    ASSERT_EQ(kept_large.inside.pieces.size(), 2U);
    EXPECT_EQ(kept_large.inside.pieces.back().overhead, 9_us);
    EXPECT_EQ(kept_large.inside.pieces.back().rate, 90_GBps);
}

// And pieces of smaller ones, where large ones do not tell how messages start.
TEST(MessagesTold, KeepsThePiecesThatLargeMessagesDoNotTell) {
    Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    machine.inside.pieces = {{64_kB, 2_us, 10_GBps, "eager"}, {{}, 9_us, 90_GBps, "rendezvous"}};
    const FileSamples large = between_sizes(table(4, 1, 0, 1.5, 226e9, 2e10), 200_MB, 20_GB);
    const Machine fitted = with_messages(machine, large, Between::devices, simulated);
    expect_times(fitted, large, Between::devices);
    ASSERT_EQ(fitted.inside.pieces.size(), 2U);
    EXPECT_EQ(fitted.inside.pieces.front().source, "eager");
    EXPECT_EQ(fitted.inside.pieces.back().overhead, 9_us);
    EXPECT_EQ(fitted.inside.error, machine.inside.error);
}

// 64 messages in flight hide where each starts: with a test of single ones both are met, alone the overhead stays.
TEST(MessagesTold, TakesNoOverheadFromMessagesInFlight) {
    const Machine machine = machine_of(one_card, 4, "1000GBps", "1us");
    FileSamples alone, streamed;
    alone.where = streamed.where = "osu.txt";
    const auto add = [](FileSamples& to, double bytes, double time, bool many) {
        to.messages.push_back({Bytes{bytes}, Seconds{time}});
        to.collectives.push_back({"message", 2, Bytes{bytes}, Seconds{time}, false, 0, many});
    };
    for (double bytes = 8; bytes < 5e6; bytes *= 4) add(alone, bytes, 3e-6 + bytes / 20e9, false);
    for (double bytes = 131072; bytes < 5e6; bytes *= 2) add(streamed, bytes, bytes / 20e9, true);
    const Machine rate_only = with_messages(machine, streamed, Between::nodes, simulated);
    EXPECT_EQ(rate_only.across.overhead.value, machine.across.overhead.value);
    EXPECT_EQ(rate_only.across.overhead.source, machine.across.overhead.source);
    EXPECT_NEAR(rate_only.across.pieces.back().rate.value, 20e9, 0.3e9);
    FileSamples both = alone;
    both.messages.insert(both.messages.end(), streamed.messages.begin(), streamed.messages.end());
    both.collectives.insert(both.collectives.end(), streamed.collectives.begin(), streamed.collectives.end());
    for (const FileSamples& samples : {streamed, both}) {
        const Machine fitted = with_messages(machine, samples, Between::nodes, simulated);
        for (const CollectiveRow& each : samples.collectives) {
            const CollectiveRow row = placed(each, Between::nodes, machine, "osu.txt");
            EXPECT_NEAR(shown_by(fitted, row, simulated) / row.time, 1, few_percent) << to_string(row.bytes);
        }
    }
}

// 1 GB tells its rate by the overhead that the machine says, 1 kB the overhead by its rate.
TEST(MessagesTold, OneSizeTellsOneFigure) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    const FileSamples all = table(4, 1, 33e-6, 1.5, 80e9);
    const FileSamples large = between_sizes(all, 200_MB, 1_GB), small = between_sizes(all, 500_B, 2_kB);
    ASSERT_EQ(large.collectives.size(), 1U);
    ASSERT_EQ(small.collectives.size(), 1U);
    const Machine rate = with_messages(machine, large, Between::devices, simulated);
    expect_times(rate, large, Between::devices);
    EXPECT_EQ(rate.inside.overhead.value, machine.inside.overhead.value);
    EXPECT_THAT(kept(machine, rate, Between::devices), HasSubstr("the overhead of messages between devices stays"));
    const Machine overhead = with_messages(machine, small, Between::devices, simulated);
    expect_times(overhead, small, Between::devices);
    EXPECT_EQ(overhead.inside.fraction.value, machine.inside.fraction.value);
    const FileSamples hasty = between_sizes(table(4, 1, 1e-6, 1.5, 200e9), 60_kB, 70_kB);
    ASSERT_EQ(hasty.collectives.size(), 1U);
    EXPECT_THAT([&] { with_messages(machine, hasty, Between::devices, simulated); },
                ThrowsMessage<InputError>(HasSubstr("table.txt: all_reduce of 65.54 kB among 4 ranks on 1 node: of "
                                                    "messages between devices one size was measured")));
    const Machine summing = machine_of(summing_switch, 4, "1000GBps", "1us");
    const Machine sums = with_messages(summing, between_sizes(table(4, 1, 33e-6, 1.25, 240e9), 200_MB, 1_GB),
                                       Between::devices, simulated);
    EXPECT_EQ(sums.nodes.front().sums.latency.value, 25_us);
    EXPECT_NEAR(sums.nodes.front().sums.rate.value.value, 240e9, 5e9);
}

TEST(MessagesTold, KeepsWhatSumsOfSwitchesDoNotTell) {
    const Machine machine = machine_of(summing_switch, 4, "1000GBps", "1us");
    const FileSamples all = table(4, 1, 33e-6, 1.25, 240e9);
    const FileSamples most = between_sizes(table(4, 1, 33e-6, 1.25, 240e9, 2e10), 200_MB, 20_GB);
    const Machine large = with_messages(machine, most, Between::devices, simulated);
    EXPECT_EQ(large.nodes.front().sums.latency.value, 25_us);
    EXPECT_NEAR(large.nodes.front().sums.rate.value.value, 240e9, 10e9);
    EXPECT_THAT(kept(machine, large, Between::devices), HasSubstr("the latency of switches' sums"));
    const Machine small = with_messages(machine, between_sizes(all, 1_B, Bytes{70000}), Between::devices, simulated);
    EXPECT_EQ(small.nodes.front().sums.rate.value, 315_GBps);
    EXPECT_NEAR(small.nodes.front().sums.latency.value.value, 33e-6, 2e-6);
    EXPECT_THAT(kept(machine, small, Between::devices), HasSubstr("the rate of switches' sums"));
}

}  // namespace
}  // namespace rehearse::calibrate
