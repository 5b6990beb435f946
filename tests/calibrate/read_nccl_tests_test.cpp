// SPDX-License-Identifier: Apache-2.0
// Which of nccl-tests a log is of: by its name, by the rates of its rows, or not told.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "calibrate/read_samples.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

// Which test it was is told by root, operation and busbw / algbw among 4 ranks: 3/4, 3/4, 1 with a root.
TEST(ReadNcclTests, KnowsTheTestsOfNcclTestsApart) {
    const std::string ranks =
        "# nThread 1\n#  Rank  0\n#  Rank  1\n#  Rank  2\n#  Rank  3\n"
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    const auto kind = [&](const std::string& row) {
        const FileSamples samples = read_samples(ranks + row, "n");
        EXPECT_THAT(samples.collectives, SizeIs(2)) << row;
        return samples.collectives.at(0).kind;
    };
    EXPECT_EQ(kind("4000000 1000000 float none -1 100 40.0 30.0 0 100 40.0 30.0 0\n"), "all_gather");
    EXPECT_EQ(kind("4000000 1000000 float sum -1 100 40.0 30.0 0 100 40.0 30.0 0\n"), "reduce_scatter");
    EXPECT_EQ(kind("4000000 1000000 float none 0 100 40.0 40.0 0 100 40.0 40.0 0\n"), "broadcast");
    EXPECT_EQ(kind("4000000 1000000 float sum 0 100 40.0 40.0 0 100 40.0 40.0 0\n"), "reduce");
    EXPECT_EQ(kind("4000000 1000000 float sum -1 100 40.0 60.0 0 100 40.0 60.0 0\n"), "all_reduce");
}

std::string nccl_ranks(int count) {
    std::string lines = "# nThread 1\n";
    for (int rank = 0; rank < count; ++rank) lines += fmt::format("#  Rank {:2}\n", rank);
    return lines;
}

constexpr const char* nccl_columns = "# size count type redop root time algbw busbw #wrong\n";

// Of 16 ranks 15/16 is within a tenth of 1, and rates of small messages are printed as 0.00: what a test is its largest
// row tells, of all its rows, and the next test of the log is another one.
TEST(ReadNcclTests, KnowsATestOfManyRanksByItsLargestRow) {
    const auto rows = [](std::string_view columns, std::string_view rates) {
        return fmt::format("8 2 float {0} 15 0.00 0.00 0\n16000000 4000000 float {0} 800 {1} 0\n", columns, rates);
    };
    const std::string reduce_scatter = nccl_ranks(16) + nccl_columns + rows("sum -1", "20.00 18.75");
    const std::string all_gather = nccl_ranks(16) + nccl_columns + rows("none -1", "20.00 18.75");
    const std::string sendrecv = nccl_ranks(16) + nccl_columns + rows("none -1", "20.00 20.00");
    const std::string gather = nccl_ranks(16) + nccl_columns + rows("none 0", "20.00 18.75");
    const FileSamples samples = read_samples(reduce_scatter + all_gather + sendrecv + gather, "n");
    std::vector<std::string> kinds;
    for (const CollectiveRow& row : samples.collectives) kinds.push_back(row.kind);
    EXPECT_THAT(kinds, testing::ElementsAre("reduce_scatter", "reduce_scatter", "all_gather", "all_gather", "send_recv",
                                            "send_recv", "gather", "gather"));
    EXPECT_DOUBLE_EQ(samples.messages.at(2).one_way.value, 1e-6);  // 15 rounds in 15 us
}

// A locale writes 12,5; N/A is no time in place.
TEST(ReadNcclTests, CountsTimesThatItCannotRead) {
    const std::string columns = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    const FileSamples samples = read_samples(nccl_ranks(4) + columns +
                                                 "1024 256 float sum -1 12,5 0,08 0,12 0 12,4 0,08 0,12 0\n"
                                                 "4000000 1000000 float sum -1 100 40.0 60.0 0 N/A N/A N/A N/A\n",
                                             "n");
    EXPECT_THAT(samples.collectives, SizeIs(1));
    EXPECT_THAT(samples.skipped,
                testing::ElementsAre(HasSubstr("n:7: a time of '12,5': right would be"), HasSubstr("'12,4'")));
}

TEST(ReadNcclTests, RefusesATestOfWhichNoRowTellsWhatItIs) {
    const auto text = [](std::string_view name) {
        return fmt::format("{}{}{}1024 256 float none -1 15 0.07 0.07 0\n", name, nccl_ranks(16), nccl_columns);
    };
    EXPECT_THAT([&] { read_samples(text(""), "n"); },
                ThrowsMessage<InputError>(HasSubstr("n:19: no row is long enough for busbw / algbw to tell "
                                                    "send_recv and all_gather apart")));
    const FileSamples named = read_samples(text("# Collective test starting: alltoall_perf\n"), "n");
    EXPECT_EQ(named.collectives.at(0).kind, "all_to_all");
    EXPECT_THAT([&] { read_samples(text("# Collective test starting: hypercube_perf\n"), "n"); },
                ThrowsMessage<InputError>(HasSubstr("n:20: hypercube_perf, which is no collective")));
}

// nccl-tests of 2019 print how far sums of floating-point numbers are off where later ones count wrong values.
TEST(ReadNcclTests, TakesSumsThatAreOffByRoundingInOldVersionsOfNcclTests) {
    const FileSamples samples =
        read_samples(nccl_ranks(2) +
                         "# size count type redop time algbw busbw error time algbw busbw error\n"
                         "4000000 1000000 float sum 100 40.00 40.00 4e-07 100 40.00 40.00 4e-07\n",
                     "n");
    EXPECT_THAT(samples.messages, SizeIs(2));
    EXPECT_THAT(samples.skipped, SizeIs(0));
}

// An all-gather of 2019 prints no operation; busbw is 15/16 of algbw.
TEST(ReadNcclTests, TakesNoOperationForNone) {
    const FileSamples samples = read_samples(nccl_ranks(16) +
                                                 "# size count type time algbw busbw error\n"
                                                 "4096000 64000 float 100 40.96 38.40 0e+00\n",
                                             "n");
    EXPECT_EQ(samples.collectives.at(0).kind, "all_gather");
}

// NCCL_TESTS_SPLIT: groups of ranks, each a communicator of its own; 1.5 is 2 x 3/4, of four ranks.
TEST(ReadNcclTests, TakesTheRanksOfAGroupWhereTheyAreSplit) {
    const auto text = [](int groups, std::string_view name) {
        std::string lines = fmt::format("{}# nThread 1\n", name);
        for (int rank = 0; rank < 16; ++rank)
            lines += fmt::format("#  Rank {:2} Group {:2} Pid 10 on nid{} device 0 [0000:03:00] A100\n", rank,
                                 rank * groups / 16, rank / 4);
        return lines + nccl_columns + "4000000 1000000 float sum -1 100 40.00 60.00 0\n";
    };
    for (const char* name : {"", "# Collective test starting: all_reduce_perf\n"}) {
        const CollectiveRow row = read_samples(text(4, name), "n").collectives.at(0);
        EXPECT_EQ(row.kind, "all_reduce");
        EXPECT_EQ(row.ranks, 4);
        EXPECT_EQ(row.hosts, 1);
        EXPECT_THAT([&] { read_samples(text(1, name), "n"); },
                    ThrowsMessage<InputError>(HasSubstr("busbw / algbw is 1.50, which no ")));
    }
}

TEST(ReadNcclTests, KnowsOnHowManyHostsTheRanksAre) {
    const auto hosts = [](std::string_view second) {
        return read_samples(fmt::format("# Rank  0 Group  0 Pid 1 on a device 0\n# Rank  1 {}\n{}"
                                        "4000000 1000000 float sum -1 100 40.00 40.00 0\n",
                                        second, nccl_columns),
                            "n")
            .collectives.at(0)
            .hosts;
    };
    EXPECT_EQ(hosts("Group  0 Pid 2 on a device 1"), 1);
    EXPECT_EQ(hosts("Group  0 Pid 2 on b device 0"), 2);
    EXPECT_EQ(hosts(""), 0) << "not told";
}

TEST(ReadNcclTests, TakesTheNumberOfRanksWhereTheLogLostTheLines) {
    const std::string text = std::string{nccl_columns} + "4000000 1000000 float sum -1 100 40.00 60.00 0\n";
    EXPECT_EQ(read_samples(text, "n", 4).collectives.at(0).ranks, 4);
    EXPECT_THAT([&] { read_samples(text, "n", 8); },
                ThrowsMessage<InputError>(HasSubstr("busbw / algbw is 1.50, which no test")));
}

// A text that ends within a row may end within a number.
TEST(ReadNcclTests, LeavesOutALastRowThatIsCutOff) {
    const std::string begin = nccl_ranks(2) +
                              "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
                              "4000000 1000000 float sum -1 100 40.00 40.00 0 100 40.00 40.00 0\n";
    const std::string row = "8000000 2000000 float sum -1 200 40.00 40.00 0 200 40.00 40.00 0";
    for (const std::size_t kept : {20U, 30U, 38U, 50U, 60U}) {
        const FileSamples samples = read_samples(begin + row.substr(0, kept), "n");
        EXPECT_THAT(samples.messages, SizeIs(2)) << row.substr(0, kept);
        EXPECT_THAT(samples.skipped, testing::ElementsAre(HasSubstr("n:6: "))) << row.substr(0, kept);
    }
    EXPECT_THAT(read_samples(begin + row, "n").messages, SizeIs(4)) << "the newline alone is missing";
    EXPECT_THAT(read_samples(begin + row.substr(0, 48) + "\n", "n").skipped,
                testing::ElementsAre(HasSubstr("no time in place")));
}

TEST(ReadNcclTests, RefusesTimesOfTheHostsProcessor) {
    EXPECT_THAT(
        [] {
            read_samples(nccl_ranks(2) +
                             "# size count type redop root cputime algbw busbw #wrong\n"
                             "4000000 1000000 float sum -1 100 40.00 40.00 0\n",
                         "n");
        },
        ThrowsMessage<InputError>(HasSubstr("n:4: times of the host's processor (-C 1)")));
}

TEST(ReadNcclTests, LeavesOutATestOnOneRank) {
    const std::string alone = nccl_ranks(1) + nccl_columns + "16777216 4194304 float sum -1 40.34 415.90 0.00 0\n";
    EXPECT_THAT([&] { read_samples(alone, "n"); },
                ThrowsMessage<InputError>(HasSubstr("a test on one rank, which has nobody to send to")));
    const std::string two = nccl_ranks(2) + nccl_columns + "4000000 1000000 float sum -1 100 40.0 40.0 0\n";
    const FileSamples samples = read_samples(alone + two, "n");
    EXPECT_THAT(samples.messages, SizeIs(1));
    EXPECT_THAT(samples.skipped, SizeIs(1));
    EXPECT_FALSE(samples.asked_ranks);
}

}  // namespace
}  // namespace rehearse::calibrate
