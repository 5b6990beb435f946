// SPDX-License-Identifier: Apache-2.0
#include "schedule/methods/buckets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/methods/synchronous.hpp"
#include "schedule/axes/tensor.hpp"
#include "schedule/draw.hpp"
#include "schedule/methods/servers.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::ElementsAre;

TEST(DataParallel, OnTwoRanksDrawnByHand) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:first=1B:bucket=1B", 2)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update<bucket0:allreduce bucket1:update<bucket1:allreduce\n"
              "communication(data): bucket0:allreduce<b:backward_weights bucket1:allreduce<a:backward_weights\n");
}

TEST(DataParallel, WithoutOverlapSendsNothingBeforeTheBackwardPassEnds) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:first=1B:bucket=1B:overlap=off", 2)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update<bucket0:allreduce bucket1:update<bucket1:allreduce\n"
              "communication(data): bucket0:allreduce<a:backward_weights bucket1:allreduce<a:backward_weights\n");
}

// What is done again is known by a field; its name is for people, who find it in a timeline.
TEST(Recomputation, IsSaidOfEachStepThatIsDoneAgain) {
    const Schedule schedule = schedule_of(two_dense(), "tensor=2:recompute=on,data=1", 2);
    std::map<std::string, int> times;  // of a layer's forward pass or collective
    for (const Step& step : schedule.classes.at(0).steps) {
        EXPECT_EQ(step.recomputed, step.name.ends_with(":again")) << step.name;
        if (step.recomputed) ++times[step.name];
    }
    EXPECT_GT(times.count("a:forward:again"), 0U);
    EXPECT_EQ(times.count("loss:forward:again"), 0U);
    const Schedule kept = schedule_of(two_dense(), "tensor=2,data=1", 2);
    for (const Step& step : kept.classes.at(0).steps) EXPECT_FALSE(step.recomputed) << step.name;
}

// A server has whole variables: of 12, 3, 6 and 2 numbers on eight servers, the busiest has 12, so that all is as slow
// as with 8 x 12 numbers in equal shares. On one server for each number of two, nothing is larger than a share.
TEST(DataParallel, WholeVariablesMakeTheLargestDecide) {
    const auto sent = [](const char* plan, std::int64_t ranks) {
        std::int64_t sum = 0;
        const Schedule schedule = schedule_of(two_dense(), plan, ranks);
        for (const Step& step : schedule.classes[0].steps) {
            const auto* bucket = std::get_if<Communicate>(&step.action);
            if (bucket != nullptr && bucket->kind == CollectiveKind::reduce_scatter) sum += bucket->elements;
        }
        return sum;
    };
    EXPECT_EQ(sent("data:first=1B:bucket=1B:zero=2:variables=whole", 8), 96);
    EXPECT_EQ(sent("data:first=1B:bucket=1B:zero=2", 8), 23);
    EXPECT_EQ(sent("data:first=1B:bucket=1B:zero=2:variables=cut", 8), 23);
    EXPECT_EQ(schedule_of(two_dense(), "data:control=star", 2).methods.get<Synchronous>().control, 1);
    EXPECT_EQ(schedule_of(two_dense(), "data:control=tree(4)", 2).methods.get<Synchronous>().control, 4);
}

// Kurth et al. 2018: what the step before has left is summed beside the whole of this one.
TEST(DataParallel, WithLagSumsTheLastStepsGradients) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:first=1B:bucket=1B:lag=1", 2)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update<bucket0:allreduce bucket1:update<bucket1:allreduce\n"
              "communication(data): bucket0:allreduce bucket1:allreduce\n");
}

TEST(DataParallel, RoundsGradientsForTheWireWhereAsked) {
    const auto types = [](std::string_view plan, Precision precision) {
        std::string all;
        const Schedule schedule = schedule_of(two_dense(), plan, 2, 10, precision);
        for (const Step& step : schedule.classes[0].steps) {
            if (const auto* sum = std::get_if<Communicate>(&step.action)) all += to_string(sum->type);
        }
        return all;
    };
    EXPECT_EQ(types("data:zero=1", Precision::fp32), "f32f32");
    EXPECT_EQ(types("data:compress=fp16:zero=1", Precision::fp32), "f16f32") << "weights are gathered as they are";
    EXPECT_EQ(types("data:compress=bf16", Precision::mixed), "bf16");
}

// Whether anything overflowed, in any bucket, decides about each update.
TEST(DataParallel, InF16NoUpdateGoesAheadOfASum) {
    EXPECT_THAT(
        draw(schedule_of(two_dense(), "data:first=1B:bucket=1B", 2, 10, Precision::mixed)),
        testing::HasSubstr("bucket0:update<bucket0:allreduce<bucket1:allreduce bucket1:update<bucket1:allreduce"));
}

TEST(DataParallel, OnOneRankSendsNothing) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data", 1)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update\n");
}

// Three buckets of one layer each, 0 is the last layer's. Two are held at a time: 1 is gathered again where the
// backward pass comes to it only if something else has taken its place.
TEST(DataParallel, ZeroThreeGathersWeightsOneBucketAhead) {
    EXPECT_EQ(draw(schedule_of(tower(4), "data:first=1B:bucket=1B:zero=3", 2)),
              "compute: dense0:forward<bucket3:allgather:forward#0 dense1:forward<bucket2:allgather:forward#0"
              " dense2:forward<bucket1:allgather:forward#0 dense3:forward<bucket0:allgather:forward#0 loss:forward"
              " loss:backward_data dense3:backward_weights dense3:backward_data"
              " dense2:backward_weights dense2:backward_data"
              " dense1:backward_weights<bucket2:allgather:backward#0 dense1:backward_data"
              " dense0:backward_weights<bucket3:allgather:backward#0"
              " bucket0:update<bucket0:reducescatter bucket1:update<bucket1:reducescatter"
              " bucket2:update<bucket2:reducescatter bucket3:update<bucket3:reducescatter\n"
              "communication(data): bucket3:allgather:forward#0 bucket2:allgather:forward#0"
              " bucket1:allgather:forward#0<dense0:forward bucket0:allgather:forward#0<dense1:forward"
              " bucket0:reducescatter<dense3:backward_weights"
              " bucket2:allgather:backward#0<dense3:backward_data"
              " bucket1:reducescatter<dense2:backward_weights"
              " bucket3:allgather:backward#0<dense2:backward_data"
              " bucket2:reducescatter<dense1:backward_weights bucket3:reducescatter<dense0:backward_weights\n");
}

TEST(DataParallel, ZeroThreeSumsGradientsAfterEveryMicroBatch) {
    const Schedule schedule = schedule_of(two_dense(), "data:zero=3:microbatches=2:bucket=1GB:first=1GB", 2);
    EXPECT_EQ(
        draw(schedule),
        "compute: a:forward#0<bucket0:allgather:forward#0 relu:forward#0 b:forward#0 loss:forward#0"
        " loss:backward_data#0 b:backward_weights#0 b:backward_data#0 relu:backward_data#0 a:backward_weights#0"
        " a:forward#1 relu:forward#1 b:forward#1 loss:forward#1"
        " loss:backward_data#1 b:backward_weights#1<bucket0:reducescatter#0 b:backward_data#1"
        " relu:backward_data#1 a:backward_weights#1<bucket0:reducescatter#0 bucket0:update<bucket0:reducescatter#1\n"
        "communication(data): bucket0:allgather:forward#0 bucket0:reducescatter#0<a:backward_weights#0"
        " bucket0:reducescatter#1<a:backward_weights#1\n");
}

// The head's gradient is added to the table's: neither may be written while the sum of the last micro-batch still reads
// it.
TEST(DataParallel, ZeroThreeSumsATiedHeadWithItsTable) {
    Network n{.name = "tied", .layers = {}};
    int at = add(n, "input", Input{{4}}, {});
    const int table = at = add(n, "table", MatMul{.m = 1, .n = 4, .k = 4, .bias = false}, {at});
    at = add(n, "head", MatMul{.m = 1, .n = 4, .k = 4, .bias = false, .tied = true}, {at});
    n.layers.back().weights_of = table;
    add(n, "loss", SoftmaxLoss{4}, {at});
    EXPECT_EQ(draw(schedule_of(n, "data:zero=3:microbatches=2:bucket=1GB:first=1GB", 2)),
              "compute: table:forward#0<bucket0:allgather:forward#0 head:forward#0 loss:forward#0"
              " loss:backward_data#0 head:backward_weights#0 head:backward_data#0 table:backward_weights#0"
              " table:forward#1 head:forward#1 loss:forward#1"
              " loss:backward_data#1 head:backward_weights#1<bucket0:reducescatter#0 head:backward_data#1"
              " table:backward_weights#1<bucket0:reducescatter#0 bucket0:update<bucket0:reducescatter#1\n"
              "communication(data): bucket0:allgather:forward#0 bucket0:reducescatter#0<table:backward_weights#0"
              " bucket0:reducescatter#1<table:backward_weights#1\n");
}

// Batch normalization's weights get their gradient from backward_data, needed here though its input's gradient is not.
// Flatten does nothing.
TEST(DataParallel, TakesTheGradientOfBatchNormFromItsDataPass) {
    EXPECT_EQ(draw(schedule_of(residual(), "data:first=1B:bucket=1B", 2)),
              "compute: bn:forward c:forward sum:forward drop:forward f:forward loss:forward"
              " loss:backward_data f:backward_weights f:backward_data drop:backward_data sum:backward_data"
              " c:backward_weights c:backward_data bn:backward_data"
              " bucket0:update<bucket0:allreduce bucket1:update<bucket1:allreduce bucket2:update<bucket2:allreduce\n"
              "communication(data): bucket0:allreduce<f:backward_weights bucket1:allreduce<c:backward_weights"
              " bucket2:allreduce<bn:backward_data\n");
}

TEST(DataParallel, ZeroUpdatesAShareAndGathersTheWeights) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:first=1B:bucket=1B:zero=2", 2)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update<bucket0:reducescatter bucket1:update<bucket1:reducescatter\n"
              "communication(data): bucket0:reducescatter<b:backward_weights bucket1:reducescatter<a:backward_weights"
              " bucket0:allgather<bucket0:update bucket1:allgather<bucket1:update\n");
}

TEST(DataParallel, AccumulatesOverMicroBatchesAndSumsOnce) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:microbatches=2", 2)),
              "compute: a:forward#0 relu:forward#0 b:forward#0 loss:forward#0"
              " loss:backward_data#0 b:backward_weights#0 b:backward_data#0 relu:backward_data#0 a:backward_weights#0"
              " a:forward#1 relu:forward#1 b:forward#1 loss:forward#1"
              " loss:backward_data#1 b:backward_weights#1 b:backward_data#1 relu:backward_data#1 a:backward_weights#1"
              " bucket0:update<bucket0:allreduce\n"
              "communication(data): bucket0:allreduce<a:backward_weights#1\n");
}

TEST(TensorParallel, OnTwoRanksDrawnByHand) {
    EXPECT_EQ(draw(schedule_of(tower(3), "tensor=2", 2)),
              "compute: dense0:forward dense1:forward dense1.bias:forward<dense1.sum:allreduce"
              " dense2:forward loss.terms:forward loss:forward<loss.gather:allgather"
              " loss:backward_data loss.gather:backward_data loss.terms:backward_data"
              " dense2:backward_weights dense2:backward_data"
              " dense1.bias:backward_weights<dense2.copy:gradient_allreduce"
              " dense1.bias:backward_data<dense2.copy:gradient_allreduce"
              " dense1:backward_weights dense1:backward_data dense0:backward_weights"
              " bucket0:update\n"
              "communication(tensor): dense1.sum:allreduce<dense1:forward loss.gather:allgather<loss.terms:forward"
              " dense2.copy:gradient_allreduce<dense2:backward_data\n");
}

TEST(TensorParallel, SumsTheGradientOfAnInputBesideThatOfTheWeights) {
    const std::string drawn = draw(schedule_of(tower(3), "tensor=2:async=on", 2));
    EXPECT_THAT(drawn, testing::HasSubstr(" dense2:backward_data dense2:backward_weights"
                                          " dense1.bias:backward_weights<dense2.copy:gradient_allreduce"
                                          " dense1.bias:backward_data<dense2.copy:gradient_allreduce"
                                          " dense1:backward_weights dense1:backward_data dense0:backward_weights"));
    EXPECT_THAT(drawn, testing::HasSubstr(" dense2.copy:gradient_allreduce<dense2:backward_data\n"));
}

// Two stages: dense0 | dense1, loss.
TEST(Pipeline, OneFOneBOnTwoStagesDrawnByHand) {
    EXPECT_EQ(draw(schedule_of(tower(2), "pipe=2:microbatches=2:cut=dense0", 2)),
              "stage0\n"
              "compute: dense0:forward#0 dense0:forward#1"
              " dense0:backward_weights#0<dense0.send:receive_gradient#0"
              " dense0:backward_weights#1<dense0.send:receive_gradient#1 bucket0:update\n"
              "send_activations: dense0.send:send#0<dense0:forward#0 dense0.send:send#1<dense0:forward#1\n"
              "receive_gradients: dense0.send:receive_gradient#0<dense0:forward#0"
              " dense0.send:receive_gradient#1<dense0:forward#1\n"
              "stage1\n"
              "compute: dense1:forward#0<dense0.receive:receive#0 loss:forward#0"
              " loss:backward_data#0 dense1:backward_weights#0 dense1:backward_data#0"
              " dense1:forward#1<dense0.receive:receive#1 loss:forward#1"
              " loss:backward_data#1 dense1:backward_weights#1 dense1:backward_data#1 bucket0:update\n"
              "receive_activations: dense0.receive:receive#0 dense0.receive:receive#1<loss:forward#0\n"
              "send_gradients: dense0.receive:send_gradient#0<dense1:backward_data#0"
              " dense0.receive:send_gradient#1<dense1:backward_data#1\n");
}

// 72 parameters a layer are 288 bytes in f32; the loss is layer 6.
TEST(Buckets, CloseWhenTheyReachTheLimit) {
    const auto sizes = [](Bytes first, Bytes limit, DataType type) {
        std::vector<std::int64_t> result;
        for (const Bucket& bucket : make_buckets(tower(5), type, first, limit, std::vector<int>(7, 0))) {
            result.push_back(bucket.elements / 72);
        }
        return result;
    };
    EXPECT_THAT(sizes(Bytes{1}, Bytes{576}, DataType::f32), ElementsAre(1, 2, 2)) << "exactly two layers are enough";
    EXPECT_THAT(sizes(Bytes{1}, Bytes{577}, DataType::f32), ElementsAre(1, 3, 1)) << "the last may be smaller";
    EXPECT_THAT(sizes(Bytes{289}, Bytes{577}, DataType::f32), ElementsAre(2, 3));
    EXPECT_THAT(sizes(Bytes{1e6}, Bytes{576}, DataType::f32), ElementsAre(2, 2, 1)) << "first is never the larger";
    EXPECT_THAT(sizes(Bytes{1}, Bytes{576}, DataType::f16), ElementsAre(1, 4)) << "half as many bytes an element";
    EXPECT_THAT(sizes(Bytes{1e6}, Bytes{1e9}, DataType::f32), ElementsAre(5));
    EXPECT_THAT(make_buckets(tower(5), DataType::f32, Bytes{1}, Bytes{577}, std::vector<int>(7, 0))[1].layers,
                ElementsAre(4, 3, 2));
}

TEST(Buckets, HoldLayersThatAreSummedAlongOneAxis) {
    const std::vector<Bucket> buckets =
        make_buckets(tower(5), DataType::f32, Bytes{1e6}, Bytes{1e6}, std::vector<int>{0, 0, 3, 0, 3, -1, 0});
    ASSERT_EQ(buckets.size(), 3);
    EXPECT_THAT(buckets[0].layers, ElementsAre(5));
    EXPECT_EQ(buckets[0].axis, -1);
    EXPECT_THAT(buckets[1].layers, ElementsAre(4, 2));
    EXPECT_EQ(buckets[1].axis, 3);
    EXPECT_THAT(buckets[2].layers, ElementsAre(3, 1));
}

TEST(Buckets, AreSummedAlongDataAndWhatElseEachLayerNeeds) {
    Mesh mesh{{{"pipe", 2}, {"data", 2}, {"tensor", 3}}};
    Part part = whole(two_dense());
    part.origins[1].summed = {2};
    part.origins[3].cuts = {{.tensor = 0, .dim = 1, .axis = 1}};
    EXPECT_THAT(axes_of_sums(part, mesh), ElementsAre(1, 3, 1, -1, 1));
    EXPECT_EQ(name_of(mesh, 3), "data+tensor");
    part.origins[3].summed = {0};
    part.origins[3].cuts = {};
    EXPECT_THAT(axes_of_sums(part, mesh), ElementsAre(1, 3, 1, 4, 1));
    part.origins[1].summed = {0, 2};
    part.origins[1].cuts = {{.tensor = 0, .dim = 1, .axis = 1}};
    EXPECT_THROW(axes_of_sums(part, mesh), InputError) << "data stands between pipe and tensor";
}

TEST(Update, IsTheOperatorOfTheOptimizer) {
    const auto problem = [](Optimizer optimizer) {
        const Schedule schedule =
            make_schedule(two_dense(), sixes(), parse_plan("data"), {.devices = 1, .optimizer = optimizer});
        return std::get<Update>(schedule.classes[0].steps.back().action).problem.op;
    };
    EXPECT_EQ(problem(Optimizer::sgd), Op{SgdUpdate{23}});
    EXPECT_EQ(problem(Optimizer::adam), Op{AdamUpdate{23}});
    EXPECT_EQ(problem(Optimizer::lamb), (Op{LambUpdate{23, 4}})) << "two layers with weights and bias each";
}

// The scores' gradient of the shared table comes first, that of the lookup last: the bucket is ready after the latter.
TEST(TiedWeights, AreSummedOnceTheOwnerHasItsGradient) {
    Network n{.name = "tied", .layers = {}};
    const int ids = add(n, "ids", Input{{4}, 10}, {});
    const int table = add(n, "table", Embedding{4, 10, 3}, {ids});
    const int scores = add(n, "scores", MatMul{4, 10, 3, false, {}, true}, {table});
    n.layers.back().weights_of = table;
    add(n, "loss", SoftmaxLoss{.classes = 10, .rows = 4}, {scores});
    const Schedule schedule = schedule_of(n, "data", 2);
    EXPECT_EQ(draw(schedule),
              "compute: table:forward scores:forward loss:forward loss:backward_data scores:backward_weights "
              "scores:backward_data table:backward_weights bucket0:update<bucket0:allreduce\n"
              "communication(data): bucket0:allreduce<table:backward_weights\n");
    EXPECT_EQ(schedule.classes[0].part.buckets.size(), 1U);
    EXPECT_EQ(schedule.classes[0].part.buckets[0].elements, 30);
}

}  // namespace
}  // namespace rehearse::schedule
