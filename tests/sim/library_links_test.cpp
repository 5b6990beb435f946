// SPDX-License-Identifier: Apache-2.0
// What the links of a node, a block's slots and the last message of an all-to-all add to a library's times.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/collective/libraries/library_times.hpp"
#include "tests/sim/times_of_library.hpp"

namespace rehearse::sim {
namespace {

constexpr double mebi = 1 << 20;

// Two V100 of a cube mesh have one link of 25 GB/s, of which packets leave 16 of 18 to data; four A100 have 12 links of
// 25 GB/s each on Perlmutter. Measured: 22.6 GB/s on two V100 (vTrain's table).
TEST(NcclLinks, OfLongRingsOverDirectLinksAreWhatPacketsLeave) {
    const auto bus = [](const char* machine, int devices) {
        const double n = devices, bytes = 8192 * mebi;
        const Seconds time =
            times(machine, 1, devices).price(CollectiveKind::all_reduce, Bytes{bytes}, "ring", "simple").time;
        return 2 * (n - 1) / n * bytes / time.value / 1e9;
    };
    EXPECT_NEAR(bus("dgx1-v100", 2), 25 * 16 / 18.0, 0.1);
    EXPECT_NEAR(bus("dgx1-v100", 2), 22.6, 0.03 * 22.6);
    EXPECT_NEAR(bus("perlmutter", 4), 12 * 25 * 16 / 18.0, 1);
    // LL128 stores 128 bytes at once, of which 8 flits of 10 are data, and counts 0.92 of the bus.
    const LibraryTimes eight = times("dgx1-v100", 1, 8);
    const auto stored = [&](double bytes) {
        return eight.price(CollectiveKind::all_reduce, Bytes{bytes}, "ring", "ll128").time.value;
    };
    EXPECT_NEAR(mebi * 8 * 14 / 8 / (stored(16 * mebi) - stored(8 * mebi)) / 1e9, 6 * 25 * 0.92 * 8 / 10.0, 0.1);
    EXPECT_NEAR(stored(4 * mebi) + eight.waiting().value, 151e-6, 0.15 * 151e-6) << "vTrain's table";
    // Through switches a chunk has one turn more than steps, of two thirds of a step's time: vTrain's two and eight
    // A100 reach 197 and 229 GB/s at 1 GiB.
    EXPECT_NEAR(bus("dgx-a100", 2) / bus("dgx-a100", 8), (2 / (2 + 2 / 3.0)) / (14 / (14 + 2 / 3.0)), 0.01);
    EXPECT_NEAR(bus("dgx-a100", 2), 197, 0.08 * 197);
    EXPECT_NEAR(bus("dgx-a100", 8), 229, 0.03 * 229);
}

// A block has 8 slots, each of which is free again after four steps of 14 us and 7.7 times LL's 5: 16 MiB are 2 for
// each of 8 blocks, in 32 pieces of 64 KiB.
TEST(NcclLinks, OfTreesAreNoShorterThanTheirSlotsTake) {
    const LibraryTimes two = times("aws-p4d", 2, 8);
    const auto time = [&](double bytes) {
        return two.price(CollectiveKind::all_reduce, Bytes{bytes}, "tree", "simple").time.value * 1e6;
    };
    const double step = 14 + 7.7 * 5;
    EXPECT_NEAR(time(16 * mebi) - time(8 * mebi), 16 * 4 * step / 8, 1);
    EXPECT_LT(time(32 * mebi) - time(16 * mebi), time(16 * mebi) - time(8 * mebi)) << "as many pieces, twice as large";
    EXPECT_NEAR(time(16 * mebi), 1192, 0.15 * 1192) << "awsome-distributed-training, micro-benchmarks/nccl-tests: p4de";
}

// Messages of 2 and of 16 KiB, posted one after the other; the last one's rendezvous takes 1.8 us times KiB^0.75.
TEST(NcclLinks, OfAllToAllsEndWithTheLastMessagesRendezvous) {
    const LibraryTimes two = times("polaris", 2, 4);
    const Seconds eager = two.price(CollectiveKind::all_to_all, Bytes{8 * 2048.0}).time;
    const Seconds met = two.price(CollectiveKind::all_to_all, Bytes{8 * 16384.0}).time;
    EXPECT_NEAR((met - eager).value * 1e6, 1.8 * (8 - std::pow(2, 0.75)), 0.1);
    EXPECT_NEAR(met.value, 47.5e-6, 0.1 * 47.5e-6) << "measured, 46.7 to 50.1 us";
}

}  // namespace
}  // namespace rehearse::sim
