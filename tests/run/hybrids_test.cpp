// SPDX-License-Identifier: Apache-2.0
// Ranks that share images, and every way to combine two or three axes, with real tensors: gradients and weights are
// those of one rank. Run under mpirun with 2, 4 and 8 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;

void expect_gradients(const Network& network, const std::string& plan, const Schedule& schedule,
                      double most_allowed = 1e-3) {
    SCOPED_TRACE(network.name + ", " + plan);
    Options options{.steps = 2, .check_gradients = true};
    options.single_rank =
        std::make_shared<const Schedule>(test::schedule_of(network, "data", 1, micro_batch_size(schedule)));
    const Result result = train_on(Communicator::world(), schedule, options, {}, {});
    EXPECT_LE(result.gradient_error, result.gradient_tolerance);
    EXPECT_LT(result.gradient_tolerance, most_allowed);
}

void expect_gradients(const std::vector<Network>& networks, const std::vector<std::string>& plans,
                      double most_allowed = 1e-3) {
    for (const Network& network : networks) {
        for (const std::string& plan : plans) {
            expect_gradients(network, plan, test::schedule_of(network, plan, Communicator::world().size(), 4),
                             most_allowed);
        }
    }
}

TEST(SharedImages, GiveTheGradientsOfOneRank) {
    const std::int64_t ranks = Communicator::world().size();
    if (ranks == 2) {
        expect_gradients({test::images(), test::encoder_decoder(), test::branches()}, {"spatial=2", "spatial=1x2"});
        expect_gradients({test::small_unet(), test::shrinking(), test::volumes()}, {"spatial=2", "spatial=1x1x2"});
        expect_gradients({test::images(), test::branches(), test::volumes()},
                         {"spatial=2:edges=apart", "data:microbatches=2,spatial=2:edges=apart"});
    } else if (ranks == 4) {
        expect_gradients({test::images(), test::encoder_decoder()},
                         {"spatial=2x2", "spatial=4", "data=2,spatial=2", "spatial=2,data=2:zero=2",
                          "pipe=2:microbatches=2,spatial=1x2",
                          // Buckets of one chunk each: the chunks' micro-batches take turns.
                          "pipe=2:schedule=interleaved:microbatches=4,data=2:zero=3:bucket=1kB"});
        expect_gradients({test::small_unet(), test::shrinking()}, {"spatial=2x2", "data=2:zero=3,spatial=1x2"});
        // A tensor whose gradient comes from the next stage and from two halos; a product and its bias at a stage's
        // end; a sum at a stage's end that is made again for nobody.
        expect_gradients({test::branches()},
                         {"pipe=2:microbatches=2,spatial=2", "pipe=2:schedule=pipedream:microbatches=4,tensor=2",
                          "pipe=2:recompute=on:microbatches=4,tensor=2"});
        // Tensor ranks hand on pieces, gradients too; a second product is made again from what was gathered.
        expect_gradients({test::images(), test::branches()},
                         {"pipe=2:scatter=on:microbatches=4,tensor=2", "pipe=2:scatter=on:recompute=on,tensor=2",
                          "pipe=2:scatter=on:schedule=pipedream:microbatches=4,tensor=2"});
        // Convolutions in three parts; pieces of the layers that images in blocks go through.
        expect_gradients({test::images(), test::branches()},
                         {"spatial=2x2:edges=apart", "pipe=2:schedule=pipedream:microbatches=4,spatial=2:edges=apart",
                          "data=1,spatial=2,tensor=2", "tensor=2:split=filters,spatial=2"});
    } else if (ranks == 8) {
        expect_gradients({test::small_unet(), test::shrinking()}, {"spatial=2x2x2", "data=2,spatial=2x2"});
        expect_gradients({test::images()}, {"pipe=2:microbatches=2,data=2,spatial=2", "data=2,spatial=2,tensor=2",
                                            "pipe=2:microbatches=2,data=2,spatial=2:edges=apart"});
        expect_gradients({test::images()},
                         {"pipe=2:scatter=on:microbatches=2,data=2:zero=3,tensor=2",
                          "pipe=2:scatter=on:schedule=pipedream:microbatches=4,data=2,tensor=2",
                          "pipe=2:scatter=on:schedule=interleaved:microbatches=4,data=2:zero=3,tensor=2"});
    }
}

/// Tokens of sequences: their words and positions by rows (the other network's positions are not as many as its tokens,
/// so that all ranks look them up), attention by heads, the loss of each rank's tokens.
TEST(SharedSequences, GiveTheGradientsOfOneRank) {
    const std::int64_t ranks = Communicator::world().size();
    const std::vector<Network> both{test::tiny_decoder(),
                                    test::tiny_transformer(models::TransformerKind::encoder, 0.9)};
    if (ranks == 2 || ranks == 4) expect_gradients({test::grouped_heads()}, {fmt::format("context={}", ranks)});
    if (ranks == 2) {
        expect_gradients(both, {"context=2", "context=2:microbatches=2", "context=2:recompute=blocks"});
    } else if (ranks == 4) {
        expect_gradients({both[0]}, {"context=4", "context=2,tensor=2", "pipe=2:microbatches=2,context=2"});
        expect_gradients(both, {"data=2,context=2", "context=2,data=2:zero=3"});
    } else if (ranks == 8) {
        expect_gradients({both[0]}, {"data=2,context=2,tensor=2", "data=2,context=4"});
    }
}

/// Of each rank's block its tensor ranks have pieces between the layers that are cut; of tables that all look up whole,
/// too.
TEST(SharedSequences, InPiecesOfTensorRanksGiveTheGradientsOfOneRank) {
    const Network sentences = models::transformer({.name = "sentences",
                                                   .kind = models::TransformerKind::encoder,
                                                   .layers = 2,
                                                   .hidden = 16,
                                                   .heads = 4,
                                                   .vocabulary = 24,
                                                   .positions = 9,
                                                   .segments = 2,
                                                   .keep = 0.9},
                                                  8);
    const std::vector<Network> all{test::tiny_decoder(), test::grouped_heads(), sentences};
    const std::int64_t ranks = Communicator::world().size();
    if (ranks == 4) expect_gradients(all, {"context=2,tensor=2:sequence=on"});
    if (ranks != 8) return;
    expect_gradients(all, {"data=2:zero=1,context=2,tensor=2:sequence=on:recompute=on"});
    expect_gradients({all[0]}, {"pipe=2:microbatches=2,context=2,tensor=2:sequence=on",
                                "pipe=2:scatter=on:microbatches=2,context=2,tensor=2:sequence=on"});
}

/// Keys and values go around, of heads that share them, too; a causal rank sees nothing of its neighbour's first row.
TEST(SharedSequences, ByARingGiveTheGradientsOfOneRank) {
    const std::int64_t ranks = Communicator::world().size();
    const std::vector<Network> both{test::tiny_decoder(),
                                    test::tiny_transformer(models::TransformerKind::encoder, 0.9)};
    if (ranks <= 4) expect_gradients({test::grouped_heads()}, {fmt::format("context={}:ring=on", ranks)});
    if (ranks == 2) {
        expect_gradients(both, {"context=2:ring=on", "context=2:ring=on:microbatches=2",
                                "context=2:ring=on:recompute=blocks", "context=2:ring=on:recompute=on"});
    } else if (ranks == 4) {
        expect_gradients(
            {both[0]}, {"context=4:ring=on", "context=2:ring=on,tensor=2", "pipe=2:microbatches=2,context=2:ring=on"});
        expect_gradients(both, {"data=2,context=2:ring=on", "context=2:ring=on,data=2:zero=3"});
        expect_gradients({test::tiny_mixture()}, {"context=4", "expert=2,context=2", "expert=2,context=2:ring=on"});
    } else if (ranks == 8) {
        expect_gradients({both[0]}, {"data=2,context=2:ring=on,tensor=2", "data=2,context=4:ring=on"});
    }
}

/// Copies of a stage sum their gradients with all ranks that have parts of these: of images in blocks, of tokens, of
/// rows between the layers that tensor ranks share, of samples of their own whose experts they share.
TEST(CopiesOfStages, SumWithRanksThatShareSamples) {
    if (Communicator::world().size() != 8) GTEST_SKIP() << "on eight ranks";
    const std::string copies = "pipe=4:copies=2+1+1:microbatches=4,", middle = "pipe=4:copies=1+2+1:microbatches=4,";
    expect_gradients({test::images()}, {copies + "spatial=2", middle + "spatial=1x2:edges=apart"});
    expect_gradients({test::untied(test::tiny_decoder())},
                     {copies + "context=2", middle + "context=2:ring=on", copies + "tensor=2:sequence=on",
                      middle + "data=1:zero=3,context=2"});
    expect_gradients({test::untied(test::tiny_mixture())}, {copies + "expert=2", middle + "data=1,expert=2"});
    expect_gradients({test::untied(test::tiny_decoder())}, {copies + "data=1:compress=1bit,context=2"}, 1e-2);
    expect_gradients({test::images()}, {middle + "data=1:allreduce=adasum,spatial=2"}, 1e-2);
}

/// Gradients that are combined as vectors: of ranks that share samples, the sum. What was sent in bits is exactly what
/// one rank sends but where rounding decides, as of the biases before a batch normalization, whose gradients are 0.
TEST(SharedSamples, AreSummedBeforeGradientsAreCombined) {
    if (Communicator::world().size() != 4) return;
    expect_gradients({test::tiny_decoder()},
                     {"data=2:allreduce=adasum,context=2", "data=2:compress=1bit,context=2:ring=on"}, 1e-2);
    expect_gradients({test::images()}, {"data=2:compress=top(0.25),spatial=2", "data=2:allreduce=adasum,spatial=2"},
                     1e-2);
    expect_gradients({test::images()}, {"data=2:signs=vote,spatial=2", "data=2:signs=vote,tensor=2"}, 0x1p-17);
    expect_gradients({test::images()}, {"data=2:compress=1bit,spatial=2"}, 1e-2);
    expect_gradients({test::tiny_decoder()}, {"data=2:signs=vote,context=2:ring=on"}, 0x1p-17);
}

// Of experts a vector is the mean over the samples of all who have made it.
TEST(CombinedExperts, AreMeans) {
    const std::int64_t ranks = Communicator::world().size();
    if (ranks == 2) expect_gradients({test::tiny_mixture()}, {"expert=2,data=1:allreduce=adasum"}, 1e-2);
    if (ranks == 4) expect_gradients({test::tiny_mixture()}, {"data=2:allreduce=adasum,expert=2"}, 1e-2);
}

// Whoever has made a gradient together updates by it, each its own pieces; what others have, too, is combined then.
TEST(CombinedUpdates, AreOfGradientsThatSeveralRanksHaveMade) {
    const std::int64_t ranks = Communicator::world().size();
    const std::string updates = ":allreduce=adasum:combine=updates";
    if (ranks == 2) {
        expect_gradients({test::tiny_mixture()}, {"expert=2,data=1" + updates}, 1e-2);
        expect_gradients({test::dropping()}, {"data=2:dense=shared" + updates}, 1e-2);
    } else if (ranks == 4) {
        expect_gradients({test::tiny_mixture()}, {"data=2" + updates + ",expert=2", "expert=2,data=2" + updates}, 1e-2);
        expect_gradients({test::dropping()}, {"data=4:dense=shared" + updates}, 1e-2);
    } else if (ranks == 8) {
        expect_gradients({test::untied(test::tiny_mixture())},
                         {"pipe=4:copies=2+1+1:microbatches=4,data=1" + updates + ",expert=2"}, 1e-2);
    }
}

using Words = std::vector<std::string>;

/// Each way to write an axis of so many ranks; of one rank, none at all.
Words written(std::int64_t size, const Words& ways) {
    if (size == 1) return {""};
    Words words;
    for (const std::string& way : ways) words.push_back(fmt::format(fmt::runtime(way), size));
    return words;
}

Words all_plans(std::int64_t ranks) {
    Words plans;
    for (std::int64_t pipe = 1; pipe <= ranks; pipe *= 2) {
        for (std::int64_t data = 1; pipe * data <= ranks; data *= 2) {
            const std::int64_t inner = ranks / pipe / data;
            Words last = written(inner, {"tensor={}", "spatial={}", "spatial=1x{}"});
            if (inner == 4) last.push_back("spatial=2x2");
            for (const std::string& p :
                 written(pipe, {"pipe={}:microbatches=8", "pipe={}:schedule=gpipe:microbatches=8",
                                "pipe={}:schedule=interleaved:microbatches=8",
                                "pipe={}:schedule=pipedream:microbatches=8", "pipe={}:recompute=on:microbatches=8"})) {
                for (const std::string& d : written(data, {"data={}", "data={}:zero=1", "data={}:zero=2",
                                                           "data={}:zero=3:bucket=1kB", "data={}:lag=1"})) {
                    for (const std::string& l : last) {
                        std::string plan = p;
                        for (const std::string& axis : {d, l}) plan += (plan.empty() || axis.empty() ? "" : ",") + axis;
                        plans.push_back(plan);
                    }
                }
            }
        }
    }
    return plans;
}

// Every plan of these words that a network can have. The others are refused by the plan, before anything runs.
TEST(Hybrids, DISABLED_OfUpToThreeAxesGiveTheGradientsOfOneRank) {
    const std::int64_t ranks = Communicator::world().size();
    for (const Network& network : {test::images(), test::branches(), test::encoder_decoder()}) {
        int run = 0, refused = 0;
        for (const std::string& plan : all_plans(ranks)) {
            try {
                const Schedule schedule = test::schedule_of(network, plan, ranks, 8);
                expect_gradients(network, plan, schedule);
                ++run;
            } catch (const InputError& error) {
                ++refused;
                if (Communicator::world().rank() == 0) fmt::print("refused: {}\n", error.what());
            }
        }
        if (Communicator::world().rank() == 0) fmt::print("{}: {} plans, {} refused\n", network.name, run, refused);
        EXPECT_GT(run, refused / 2) << network.name;
    }
}

}  // namespace
}  // namespace rehearse::run
