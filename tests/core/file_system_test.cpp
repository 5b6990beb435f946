// SPDX-License-Identifier: Apache-2.0
// Rates worked out by hand, and the busiest target against draws.
#include "core/file_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/error.hpp"

namespace rehearse {
namespace {

// Four targets of 1 GB/s; 1,000 names a second, two operations a file; a reader takes 1 ms a name, 2 ms a request and
// 100 MB/s.
FileSystem small() {
    FileSystem system;
    system.read = {Bandwidth{4e9}, "test"};
    system.metadata = {1000, "test"};
    system.operations = {2, "test"};
    system.operation = {Seconds{1e-3}, "test"};
    system.request = {Seconds{2e-3}, "test"};
    system.stream = {Bandwidth{1e8}, "test"};
    return system;
}

TEST(ReadRates, OfOneReaderAddUpWhatItWaitsFor) {
    // 1 MB: 2 ms of names, 2 ms of a request, 10 ms of bytes.
    const ReadPattern whole{.sample = Bytes{1e6}};
    EXPECT_DOUBLE_EQ(reading_time(small(), whole, 3).value, 3 * 14e-3);
    // In four requests, of a file that stays open: 8 ms and 10 ms; five readers read five samples.
    const ReadPattern pieces{.sample = Bytes{1e6}, .files = 0, .request = Bytes{250e3}, .readers = 5};
    EXPECT_DOUBLE_EQ(read_rates(small(), pieces, 1, 1).process.value, 5 * 1e6 / 18e-3);
}

TEST(ReadRates, OfManyProcessesAreThoseOfTheServers) {
    // Small files: 500 a second by their names, whatever their size; large ones: 4 GB/s.
    const ReadPattern files{.sample = Bytes{1e4}};
    ReadRates rates = read_rates(small(), files, 1000, 1000);
    EXPECT_DOUBLE_EQ(rates.together.value, 500 * 1e4);
    EXPECT_EQ(rates.bound, ReadBound::metadata);
    rates = read_rates(small(), {.sample = Bytes{1e8}}, 1000, 1000);
    EXPECT_DOUBLE_EQ(rates.together.value, 4e9);
    EXPECT_EQ(rates.bound, ReadBound::targets);
    EXPECT_EQ(read_rates(small(), files, 1, 1).bound, ReadBound::readers);
}

TEST(ReadRates, FallByRequestsAtTargetsAndTheBusiestOfThem) {
    FileSystem system = small();
    system.targets = {4, "test"};
    system.seek = {Seconds{1e-3}, "test"};
    // On all four targets, in 10 requests of 100 kB: 10 x (0.1 + 1) ms of one of four targets: 2.75 ms a sample.
    const ReadPattern spread{.sample = Bytes{1e6}, .files = 0, .request = Bytes{1e5}, .stripes = 4};
    EXPECT_NEAR(read_rates(system, spread, 100, 100).together.value, 1e6 / 2.75e-3, 1);
    ReadPattern single = spread;
    single.stripes = 1;
    const ReadRates rates = read_rates(system, single, 100, 100);
    EXPECT_GT(rates.busiest, 1.1);
    EXPECT_NEAR(rates.together.value * rates.busiest, 1e6 / 2.75e-3, 1);
    // What is asked for ten steps ahead is spread more evenly.
    single.ahead = 10;
    EXPECT_LT(read_rates(system, single, 100, 100).busiest, rates.busiest);
}

TEST(ExpectedMost, IsWhatDrawsGive) {
    std::mt19937_64 random{3};
    for (const auto& [balls, bins] : {std::pair{8, 4}, {100, 4}, {2000, 248}, {100, 248}}) {
        std::uniform_int_distribution<int> bin{0, bins - 1};
        double sum = 0;
        constexpr int draws = 2000;
        for (int i = 0; i < draws; ++i) {
            std::vector<int> loads(static_cast<std::size_t>(bins));
            for (int ball = 0; ball < balls; ++ball) ++loads[static_cast<std::size_t>(bin(random))];
            sum += *std::ranges::max_element(loads);
        }
        // Poisson's loads vary a little more than draws of a fixed number, most with few bins.
        EXPECT_NEAR(expected_most(balls, bins), sum / draws, 0.12 * sum / draws) << balls << ' ' << bins;
    }
    EXPECT_DOUBLE_EQ(expected_most(7, 1), 7);
    EXPECT_NEAR(expected_most(64 * 27648.0, 77), 64 * 27648.0 / 77, 600);  // 2.4 standard deviations of 152 beyond it
    EXPECT_NEAR(expected_most(1e7, 1000), 1e4 + 3.2 * 100, 40);  // normal: 3.24 standard deviations beyond the mean
}

TEST(ReadPatterns, AreReadFromWords) {
    const ReadPattern pattern = parse_read_pattern("files=0.5:request=1MB:readers=4:stripes=2:ahead=3", Bytes{5});
    EXPECT_EQ(pattern.files, 0.5);
    EXPECT_EQ(pattern.request, Bytes{1e6});
    EXPECT_EQ(pattern.readers, 4);
    EXPECT_EQ(pattern.stripes, 2);
    EXPECT_EQ(pattern.ahead, 3);
    EXPECT_EQ(pattern.sample, Bytes{5});
    for (const char* wrong : {"file=1", "files", "readers=0", "request=0B", "ahead=0", "files=-1", "stripes=x"})
        EXPECT_THROW(parse_read_pattern(wrong, Bytes{5}), InputError) << wrong;
}

}  // namespace
}  // namespace rehearse
