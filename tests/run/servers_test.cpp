// SPDX-License-Identifier: Apache-2.0
// Parameter servers, alone, of groups and of averages: held to what they mean, written out for one rank. Run under
// mpirun with 2, 3, 4 and 8 ranks.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "run/methods/averaging.hpp"
#include "run/methods/server_shard.hpp"
#include "tests/run/written_out.hpp"

namespace rehearse::run {
namespace {

TEST(Servers, UpdateInTheOrderInWhichGradientsCome) {
    if (ranks() == 2) GTEST_SKIP() << "its plans are for 3, 4 and 8 ranks";
    if (ranks() == 3) expect_as_written_out({"server=1,data=2", "server=2,data=1", "server=1,data:bucket=1kB"});
    if (ranks() == 4) expect_as_written_out({"server=2,data=2:bucket=1kB", "server=1,data=3:microbatches=2"});
    if (ranks() == 4) expect_as_written_out({"server=1,data=3"}, Optimizer::adam);
    if (ranks() == 8) expect_as_written_out({"server=2,data=6:bucket=1kB"});
}

// Chilimbi et al. 2014: the machines of a worker share one network, each has some of its layers, pushes their gradients
// and pulls their weights; a sample goes from one to the next.
TEST(Servers, KeepTheStagesOfWorkersThatAreSeveralRanks) {
    if (ranks() == 2) GTEST_SKIP() << "its plans are for 3, 4 and 8 ranks";
    if (ranks() == 3) expect_as_written_out({"server=1,data=1,pipe=2:microbatches=2"});
    if (ranks() == 4) {
        expect_as_written_out({"server=2,data=1,pipe=2:microbatches=3",
                               "server=2:dense=vectors,data=1:bucket=1kB,pipe=2:microbatches=1"});
        expect_as_written_out({"server=2,data=1,pipe=2:microbatches=2:schedule=gpipe"}, Optimizer::adam);
        // Copies of a stage sum their gradients, of which one pushes the sum.
        expect_as_written_out({"server=1,pipe=3:copies=2+1:microbatches=2,data=1",
                               "server=1,pipe=3:copies=1+2:microbatches=2,data=1:bucket=1kB"});
    }
    if (ranks() == 8) {
        expect_as_written_out({"server=2,data=3,pipe=2:microbatches=2", "server=2,data=3:compress=1bit,pipe=2",
                               "server=2,data=2:bucket=1kB,pipe=3", "server=2,pipe=3:copies=2+1:microbatches=2,data=2",
                               "server=2,groups=2,pipe=3:copies=1+2:microbatches=2,data=1"});
    }
}

// Ranks of a worker have pieces of layers, or of images and tokens whose gradients they sum: it is one worker none the
// less, whose weights are those of one model, also where several of its ranks have the same.
TEST(Servers, KeepThePiecesOfWorkersThatShareLayers) {
    if (ranks() == 2) GTEST_SKIP() << "its plans are for 3, 4 and 8 ranks";
    const std::vector<Network> dense{test::dropping(), test::branches()}, images{test::images()},
        tokens{test::tiny_decoder()}, experts{test::tiny_mixture()};
    if (ranks() == 3) {
        expect_as_written_out({"server=1,tensor=2", "server=1,data=1:bucket=1kB,tensor=2:split=filters"},
                              Optimizer::sgd, dense);
        expect_as_written_out({"server=1,data=1,spatial=2", "server=1,spatial=1x2:edges=apart"}, Optimizer::sgd,
                              images);
        expect_as_written_out({"server=1,data=1,tensor=2:sequence=on", "server=1,data=1,context=2:ring=on"},
                              Optimizer::sgd, tokens);
        expect_as_written_out({"server=1,data=1,expert=2"}, Optimizer::sgd, experts);
        expect_as_written_out({"server=1:dense=vectors,data=1:bucket=1kB,tensor=2"}, Optimizer::sgd,
                              {test::dropping()});
    }
    if (ranks() == 4) expect_as_written_out({"server=2,data=1,tensor=2:async=on"}, Optimizer::adam, dense);
    if (ranks() == 8) {
        expect_as_written_out({"server=2,data=3:bucket=1kB,tensor=2", "server=2,tensor=2,data=3:bucket=1kB",
                               "server=4,groups=2,data=1:bucket=1kB,tensor=2"},
                              Optimizer::sgd, dense);
        expect_as_written_out({"server=2,groups=3,data=2:dense=shared"}, Optimizer::sgd, {test::dropping()});
        expect_as_written_out({"server=2,data=3:bucket=1kB,spatial=2", "server=4,data=2:microbatches=2,spatial=1x2",
                               "server=4,data=1,pipe=2:microbatches=2,tensor=2"},
                              Optimizer::sgd, images);
        expect_as_written_out({"server=4,data=2,context=2", "server=4,data=1,pipe=2:microbatches=2,tensor=2"},
                              Optimizer::sgd, {test::untied(test::tiny_decoder())});
        expect_as_written_out({"server=2,data=3:bucket=1kB,expert=2", "server=2,expert=2,data=3:bucket=1kB"},
                              Optimizer::sgd, experts);
    }
}

// Chilimbi et al. 2014: the server multiplies the inputs and errors of 6 samples, which are fewer than the weights.
TEST(Servers, MakeGradientsOfDenseLayersThemselves) {
    if (ranks() == 3) expect_as_written_out({"server=1:dense=vectors,data=2"});
    if (ranks() == 4) expect_as_written_out({"server=2:dense=vectors,data=2:bucket=1kB"}, Optimizer::adam);
    if (ranks() == 2 || ranks() == 8) GTEST_SKIP() << "its plans are for 3 and 4 ranks";
}

// Zhang et al. 2015, asynchronous: no model waits for another, the average is whatever the servers have by then.
TEST(Servers, ModelsPullAtAnAverageThatServersKeep) {
    if (ranks() == 2) GTEST_SKIP() << "its plans are for 3, 4 and 8 ranks";
    if (ranks() == 3)
        expect_as_written_out({"server=1,data=2:local=2:elastic=0.3", "server=2,data=1:local=1:elastic=0.5",
                               "server=1,data=2:shares=1+2:local=2:elastic=0.3",
                               "server=1,data=2:local=2:elastic=0.3:average_momentum=0.5"});
    if (ranks() == 4) expect_as_written_out({"server=2,data=2:local=1:elastic=0.25:bucket=1kB"}, Optimizer::adam);
    if (ranks() == 8) expect_as_written_out({"server=2,data=6:local=3:elastic=0.1:bucket=1kB"});
}

// A model of several ranks: each pulls at its part of the average.
TEST(Servers, KeepAveragesOfModelsOfSeveralRanks) {
    if (ranks() == 2) GTEST_SKIP() << "its plans are for 3, 4 and 8 ranks";
    if (ranks() == 3)
        expect_as_written_out({"server=1,data=1:local=2:elastic=0.3,tensor=2",
                               "server=1,data=1:local=2:elastic=0.3,pipe=2",
                               "server=1,data=1:local=3:elastic=0.3:bucket=1kB,pipe=2:schedule=pipedream"});
    if (ranks() == 4)
        expect_as_written_out({"server=2,data=1:local=2:elastic=0.25:average_momentum=0.5:bucket=1kB,tensor=2"},
                              Optimizer::adam);
    if (ranks() == 8)
        expect_as_written_out({"server=2,data=3:local=2:elastic=0.1:bucket=1kB,tensor=2",
                               "server=2,data=3:local=3:elastic=0.1:bucket=1kB,pipe=2:schedule=pipedream",
                               "server=4,data=1:local=2:elastic=0.1,pipe=2,tensor=2"});
}

// Each model has the factors of its own samples.
TEST(Servers, KeepAveragesOfModelsWithDirections) {
    if (ranks() != 3 && ranks() != 4) GTEST_SKIP() << "its plans are for 3 and 4 ranks";
    const std::vector<Network> networks{test::dropping(), test::images()};
    if (ranks() == 3)
        expect_as_written_out({"server=1,data=2:local=2:elastic=0.3:kfac=2:damping=1"}, Optimizer::sgd, networks);
    if (ranks() == 4)
        expect_as_written_out({"server=2,data=2:local=1:elastic=0.3:kfac=1:damping=1:bucket=1kB"}, Optimizer::sgd,
                              networks);
}

// Groups of two: sums of two gradients have the same bits in any order, and the servers' order differs from run to run.
TEST(Servers, GroupsSumAndTheirFirstRankPushes) {
    if (ranks() != 3 && ranks() != 8) GTEST_SKIP() << "its plans are for 3 and 8 ranks";
    if (ranks() == 3) expect_as_written_out({"server=1,groups=1,data=2"});
    if (ranks() == 8) {
        expect_as_written_out({"server=2,groups=3,data=2:bucket=1kB", "server=4,groups=2,data=2:bucket=1B",
                               "server=2,groups=3,data=2:allreduce=adasum"});
    }
}

// Each of three steps of each worker updates each bucket once; one rank alone never finds others' updates.
TEST(Servers, EveryUpdateIsWrittenDown) {
    if (ranks() != 3 && ranks() != 4) GTEST_SKIP() << "of three and four ranks";
    const Network network = test::dropping();
    const std::int64_t workers = ranks() - 1;
    const Result result = train_checked(network, "server=1,data", 6, 3);
    const Schedule schedule = test::schedule_of(network, "server=1,data", ranks(), 6);
    const auto buckets = static_cast<std::int64_t>(schedule.classes[0].part.buckets.size());
    EXPECT_EQ(std::accumulate(result.staleness.begin(), result.staleness.end(), std::int64_t{0}),
              3 * workers * buckets);
    if (ranks() != 3) return;
    EXPECT_EQ(train_checked(network, "server=2,data=1", 6, 3).staleness.size(), 1U);
}

// A server does one thing after the other, and each update lies between the push and the pull of some worker.
TEST(Servers, WriteTheirEventsIntoTheTimeline) {
    if (ranks() != 3 && ranks() != 4) GTEST_SKIP() << "of three and four ranks";
    const Network network = test::dropping();
    const std::int64_t all_ranks = ranks(), servers = all_ranks - 2;  // collective
    const std::string plan = fmt::format("server={},data=2:bucket=1kB", servers);
    Options options;
    options.record = true;
    const Result result = train_checked(network, plan.c_str(), 6, 3, Optimizer::sgd, options);
    if (result.timeline.events.empty() || result.timeline.events.front().rank != 0) return;  // rank 0 has all
    const Schedule schedule = test::schedule_of(network, plan, all_ranks, 6);
    std::map<std::int64_t, std::vector<Event>> updates, answers;
    std::size_t trades = 0;
    for (const Event& event : result.timeline.events) {
        trades += event.pass == "trade" ? 1 : 0;
        if (event.rank < 2) continue;
        (event.pass == "update" ? updates : answers)[event.rank].push_back(event);
    }
    EXPECT_EQ(trades, 2 * 3 * schedule.classes[0].part.buckets.size());
    std::size_t served = 0;
    for (auto& [server, all] : updates) {
        EXPECT_LT(server, all_ranks);
        ASSERT_EQ(answers[server].size(), all.size());
        served += all.size();
        std::ranges::sort(all, {}, [](const Event& event) { return event.start; });
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_LT(all[i].start, all[i].end);
            EXPECT_TRUE(i == 0 || all[i - 1].end <= all[i].start);
            EXPECT_TRUE(std::ranges::any_of(answers[server], [&update = all[i]](const Event& answer) {
                return answer.layer == update.layer && answer.start == update.end && answer.end > answer.start;
            }));
        }
    }
    EXPECT_EQ(updates.size(), static_cast<std::size_t>(servers));
    EXPECT_EQ(served, trades);
}

TEST(ElasticServers, MoveTowardsAModelByWhatItGivesUp) {
    std::vector<float> model{4, -2}, average{0, 2};
    pull_average(0.25, model, average);
    EXPECT_EQ(model, (std::vector<float>{1, -1}));
    EXPECT_EQ(average, (std::vector<float>{1, 1}));
}

// By a quarter of the difference, and by half of the last step, which went from -4 to 0 and from 2 to 2.
TEST(ElasticServers, GoOnByTheirLastStep) {
    std::vector<float> model{4, -2}, average{0, 2}, last{-4, 2};
    pull_average(Averaging{.period = 1, .elastic = 0.25, .momentum = 0.5}, model, average, last);
    EXPECT_EQ(model, (std::vector<float>{1, -1}));
    EXPECT_EQ(average, (std::vector<float>{3, 1}));
    EXPECT_EQ(last, (std::vector<float>{0, 2}));
}

TEST(Staleness, CountsUpdatesInBetween) {
    // Bucket 0: rank 0, 1, 1, 0: rank 1's first comes after one update, its second after none, rank 0's second after
    // two.
    const RankIndex one{0}, other{1};
    const ServerLogs logs{{{one, 0, 0}, {other, 0, 0}, {other, 1, 0}, {one, 1, 0}}};
    EXPECT_EQ(staleness(logs), (std::vector<std::int64_t>{2, 1, 1}));
}

}  // namespace
}  // namespace rehearse::run
