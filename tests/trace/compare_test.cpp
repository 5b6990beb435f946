// SPDX-License-Identifier: Apache-2.0
#include "trace/compare.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.hpp"

namespace rehearse::trace {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Times are whole seconds, so that sums, medians and means are exact.
Event event(std::int64_t rank, int iteration, const char* layer, const char* pass, double start, double length) {
    return {.rank = RankIndex{rank},
            .stream = Stream::compute,
            .step = std::string{layer} + ":" + pass,
            .layer = layer,
            .pass = pass,
            .micro_batch = 0,
            .iteration = iteration,
            .start = Seconds{start},
            .end = Seconds{start + length},
            .bytes = {},
            .flops = {}};
}

Timeline timeline(std::int64_t ranks, std::vector<Event> events) {
    return {.title = "t", .measured = false, .ranks = ranks, .events = std::move(events), .counters = {}};
}

std::string text(const std::vector<Row>& rows) {
    std::string lines;
    for (const Row& r : rows) {
        lines += r.name + " " + std::to_string(r.predicted.value) + " " + std::to_string(r.measured.value) + "\n";
    }
    return lines;
}

TEST(Compare, GivesRowsByStepLayerPassAndWhole) {
    const Timeline predicted = timeline(1, {event(0, 0, "a", "forward", 0, 4), event(0, 0, "b", "forward", 4, 6),
                                            event(0, 0, "b", "backward", 10, 12), event(0, 0, "a", "backward", 22, 8)});
    const Timeline measured = timeline(1, {event(0, 0, "a", "forward", 0, 5), event(0, 0, "b", "forward", 5, 5),
                                           event(0, 0, "b", "backward", 10, 16), event(0, 0, "a", "backward", 26, 10)});
    const Comparison c = compare(predicted, measured);
    EXPECT_EQ(text(c.steps),
              "a:forward 4.000000 5.000000\n"
              "b:forward 6.000000 5.000000\n"
              "b:backward 12.000000 16.000000\n"
              "a:backward 8.000000 10.000000\n");
    EXPECT_EQ(text(c.layers),
              "a 12.000000 15.000000\n"    // 4 + 8, 5 + 10
              "b 18.000000 21.000000\n");  // 6 + 12, 5 + 16
    EXPECT_EQ(text(c.passes),
              "forward 10.000000 10.000000\n"
              "backward 20.000000 26.000000\n");
    EXPECT_EQ(text({c.whole}), "step 30.000000 36.000000\n");
    EXPECT_EQ(c.steps[0].error, -0.2);   // (4 - 5) / 5
    EXPECT_EQ(c.steps[1].error, 0.2);    // (6 - 5) / 5
    EXPECT_EQ(c.steps[2].error, -0.25);  // (12 - 16) / 16
    EXPECT_EQ(c.passes[0].error, 0);
    EXPECT_THAT(c.only_predicted, IsEmpty());
    EXPECT_THAT(c.only_measured, IsEmpty());
}

TEST(Compare, TakesTheMedianAndLeavesOutTheFirstOfThreeIterations) {
    const Timeline predicted = timeline(1, {event(0, 0, "a", "forward", 0, 4)});
    // Without the first: 4, 8, 6 -> 6.
    EXPECT_EQ(
        compare(predicted, timeline(1, {event(0, 0, "a", "forward", 0, 100), event(0, 1, "a", "forward", 100, 4),
                                        event(0, 2, "a", "forward", 104, 8), event(0, 3, "a", "forward", 112, 6)}))
            .steps[0]
            .measured,
        Seconds{6});
    // Two iterations: both count, and of an even number the lower one in the middle is taken, as summarize does.
    EXPECT_EQ(
        compare(predicted, timeline(1, {event(0, 0, "a", "forward", 0, 100), event(0, 1, "a", "forward", 100, 4)}))
            .steps[0]
            .measured,
        Seconds{4});
    // Iterations need not count from 0.
    EXPECT_EQ(compare(predicted, timeline(1, {event(0, 7, "a", "forward", 0, 100), event(0, 8, "a", "forward", 100, 4),
                                              event(0, 9, "a", "forward", 104, 8)}))
                  .steps[0]
                  .measured,
              Seconds{4});
}

// Iterations of 100, 4, 8, 6 and 5 s: the first is left out, and of 4, 5, 6 and 8 the lower middle one is 5 s long,
// the last, from 118 to 123 s.
TEST(Compare, NamesItsIterationsAndTheOneInTheMiddle) {
    std::vector<Event> events;
    double now = 0;
    for (const double length : {100, 4, 8, 6, 5}) {
        events.push_back(event(0, static_cast<int>(events.size()), "a", "forward", now, length));
        now += length;
    }
    const Timeline measured = timeline(1, events);
    const Comparison c = compare(timeline(1, {event(0, 0, "a", "forward", 0, 4)}), measured);
    EXPECT_EQ(c.measured.start, Seconds{118});
    EXPECT_EQ(c.measured.end, Seconds{123});
    EXPECT_EQ(c.whole.measured, Seconds{5});
    EXPECT_EQ(c.steps[0].measured, c.whole.measured);  // one statistic
    EXPECT_EQ(text_of_iterations(c),
              "predicted: 1 iteration; measured: median of 4 iterations (the first, a warm-up, left out)");
}

TEST(Compare, AddsTheMicroBatchesOfAStep) {
    Timeline measured = timeline(1, {event(0, 0, "a", "forward", 0, 3), event(0, 0, "a", "forward", 3, 5)});
    measured.events[1].micro_batch = 1;
    EXPECT_EQ(compare(timeline(1, {event(0, 0, "a", "forward", 0, 4)}), measured).steps[0].measured, Seconds{8});
}

TEST(Compare, HoldsARepresentativeAgainstTheMeanOfAllRanks) {
    const Timeline measured = timeline(4, {event(0, 0, "a", "forward", 0, 4), event(1, 0, "a", "forward", 0, 6),
                                           event(2, 0, "a", "forward", 0, 8), event(3, 0, "a", "forward", 0, 10)});
    const Comparison c = compare(timeline(4, {event(0, 0, "a", "forward", 0, 14)}), measured);
    EXPECT_EQ(c.steps[0].measured, Seconds{7});  // (4 + 6 + 8 + 10) / 4
    EXPECT_EQ(c.steps[0].error, 1);              // (14 - 7) / 7
}

TEST(Compare, HoldsRepresentativesOfTwoStagesEachAgainstItsOwnRanks) {
    // Ranks 0 and 1 do layer a, ranks 2 and 3 layer b; the prediction has ranks 0 and 2.
    const Timeline measured = timeline(4, {event(0, 0, "a", "forward", 0, 4), event(1, 0, "a", "forward", 0, 6),
                                           event(2, 0, "b", "forward", 9, 8), event(3, 0, "b", "forward", 9, 10)});
    const Comparison c =
        compare(timeline(4, {event(0, 0, "a", "forward", 0, 1), event(2, 0, "b", "forward", 1, 2)}), measured);
    EXPECT_EQ(text(c.steps), "a:forward 1.000000 5.000000\nb:forward 2.000000 9.000000\n");
}

TEST(Compare, MatchesRankByRankWhenThePredictionHasThemAll) {
    const Timeline predicted = timeline(2, {event(0, 0, "a", "forward", 0, 2), event(1, 0, "a", "forward", 0, 4)});
    // Only rank 1 was recorded: rank 0's prediction has no part in the row.
    const Comparison c = compare(predicted, timeline(2, {event(1, 0, "a", "forward", 0, 8)}));
    EXPECT_EQ(text(c.steps), "a:forward 4.000000 8.000000\n");
}

TEST(Compare, NamesStepsWithoutAPartner) {
    const Timeline predicted = timeline(1, {event(0, 0, "a", "forward", 0, 2), event(0, 0, "p", "x", 2, 4)});
    const Timeline measured = timeline(1, {event(0, 0, "m", "x", 0, 2), event(0, 0, "a", "forward", 2, 2)});
    const Comparison c = compare(predicted, measured);
    EXPECT_THAT(c.only_predicted, ElementsAre("p:x"));
    EXPECT_THAT(c.only_measured, ElementsAre("m:x"));
    EXPECT_EQ(text(c.layers), "a 2.000000 2.000000\n");
}

// The same network in two stages: cut after a in one, after b in the other; then after a in both.
TEST(Compare, SaysWhereStagesEndInEither) {
    const auto cut = [](const char* layer, double at) {
        return timeline(2, {event(0, 0, "a", "forward", 0, 1), event(0, 0, "b", "forward", 1, 1),
                            event(0, 0, layer, "send", at, 1), event(0, 0, layer, "receive_gradient", 4, 1)});
    };
    EXPECT_EQ(text_of_cuts(compare(cut("a.send", 1), cut("b.send", 2))),
              "stages end after a in the prediction, after b in the measured timeline");
    EXPECT_EQ(text_of_cuts(compare(cut("a.send", 1), cut("a.send", 1))), "");
}

TEST(Compare, GivesNameslessLayersARowSoThatSumsAddUp) {
    Timeline both = timeline(1, {event(0, 0, "a", "load", 0, 2), event(0, 0, "b", "load", 2, 2)});
    both.events[0].layer = "";
    EXPECT_EQ(text(compare(both, both).layers), "(no layer) 2.000000 2.000000\nb 2.000000 2.000000\n");
}

TEST(Compare, NeverDividesByZero) {
    const Timeline zero = timeline(1, {event(0, 0, "a", "forward", 0, 0)});
    EXPECT_EQ(compare(zero, zero).steps[0].error, 0);
    EXPECT_TRUE(std::isinf(compare(timeline(1, {event(0, 0, "a", "forward", 0, 1)}), zero).steps[0].error));
}

std::string refusal(const Timeline& predicted, const Timeline& measured) {
    try {
        compare(predicted, measured);
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Compare, RefusesTimelinesWithNothingInCommon) {
    const Timeline a = timeline(1, {event(0, 0, "a", "forward", 0, 2)}),
                   b = timeline(1, {event(0, 0, "b", "forward", 0, 2)});
    EXPECT_EQ(refusal(a, b),
              "not one step of 't' ('a:forward', ...) is a step of 't' ('b:forward', ...): "
              "right would be two timelines of the same model and plan");
    EXPECT_THAT(refusal(timeline(1, {}), b), testing::HasSubstr("(no events, ...)"));
}

// Networks of one family have steps of one name.
TEST(Compare, RefusesDifferentNetworks) {
    Timeline predicted = timeline(1, {event(0, 0, "a", "forward", 0, 2)}), measured = predicted;
    measured.measured = true;
    predicted.title = "resnet50 on summit, data=384, predicted";
    measured.title = "resnet101, data=2, batch 32 a rank, measured";
    EXPECT_THAT(refusal(predicted, measured), testing::HasSubstr("of resnet50, 'resnet101, data=2, batch 32 a rank"));
    measured.title = "resnet50, data=2, batch 32 a rank, measured";
    EXPECT_EQ(refusal(predicted, measured), "no error");
    measured.title = "a title of another program";
    EXPECT_EQ(refusal(predicted, measured), "no error");
    measured.title = "resnet101, data=2, batch 32 a rank, measured";
    predicted.title = "replay of job.0.et on summit, predicted";
    EXPECT_EQ(refusal(predicted, measured), "no error") << "execution traces name no network";
}

TEST(Compare, TitlesNameANetworkOrNone) {
    const auto named = [](std::string title, bool measured) {
        Timeline t = timeline(1, {});
        t.title = std::move(title);
        t.measured = measured;
        return std::string{network_of(t)};
    };
    EXPECT_EQ(named("resnet50 on summit, data=384, predicted", false), "resnet50");
    EXPECT_EQ(named("my net.onnx on summit, data:bucket=1MB, predicted", false), "my net.onnx");
    EXPECT_EQ(named("lenet5, data=2, batch 32 a rank, measured", true), "lenet5");
    EXPECT_EQ(named("replay of a, b.et on summit, predicted", false), "") << "no plan";
    EXPECT_EQ(named("job.0.et on summit, predicted", false), "") << "as files of earlier versions have it";
    EXPECT_EQ(named("trace.json", true), "");
    EXPECT_EQ(named("", false), "");
}

// 2 and 4 GFLOP against 1 and 2: twice the batch. 2 and 4 against 1 and 4: another way to count, which is compared.
TEST(Compare, RefusesDifferentBatches) {
    const auto of = [](double a, double b) {
        Timeline t = timeline(1, {event(0, 0, "a", "forward", 0, 2), event(0, 0, "b", "forward", 2, 2)});
        t.events[0].flops = Flops{a}, t.events[1].flops = Flops{b};
        return t;
    };
    const auto run = [&](double a, double b) {
        Timeline t = of(a, b);
        t.measured = true;
        return t;
    };
    EXPECT_THAT(refusal(of(2e9, 4e9), run(1e9, 2e9)), testing::HasSubstr("2 times the operations"));
    EXPECT_EQ(refusal(of(2e9, 4e9), run(1e9, 4e9)), "no error");
    EXPECT_EQ(refusal(of(2e9, 4e9), run(2e9, 4e9)), "no error");
    EXPECT_EQ(refusal(of(2e9, 4e9), run(0, 0)), "no error");     // one that does not count them
    EXPECT_EQ(refusal(of(2e9, 4e9), of(1e9, 2e9)), "no error");  // two predictions, on purpose
}

}  // namespace

}  // namespace rehearse::trace
