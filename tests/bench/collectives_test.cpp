// SPDX-License-Identifier: Apache-2.0
// Run under mpirun with 2 and 3 ranks. No times: only that everything is measured, right, and computed from the times
// as nccl-tests does.
#include "bench/collectives.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "bench/traffic_check.hpp"
#include "core/error.hpp"
#include "run/train.hpp"

namespace rehearse::bench {
namespace {

using enum CollectiveKind;

TrafficOptions quick(Traffic traffic, std::vector<std::string> names) {
    TrafficOptions options;
    options.traffic = traffic;
    options.sizes = {Bytes{8}, Bytes{50'000}};
    options.algorithms = std::move(names);
    options.rounds = {.count = 2, .budget = Seconds{0.01}, .iterations = 2};
    return options;
}

// PERFORMANCE.md of nccl-tests.
TEST(BusFactor, IsThatOfNcclTests) {
    EXPECT_DOUBLE_EQ(bus_factor({all_reduce, DataType::f32}, 4), 1.5);
    EXPECT_DOUBLE_EQ(bus_factor({reduce_scatter, DataType::f32}, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor({all_gather, DataType::f32}, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor({all_to_all, DataType::f32}, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor({broadcast, DataType::f32}, 4), 1);
    EXPECT_DOUBLE_EQ(bus_factor({std::nullopt, DataType::f32}, 4), 1);
}

TEST(Sizes, GoFromTheLeastToTheMost) {
    EXPECT_EQ(sizes_between(Bytes{8}, Bytes{64}, 2), (std::vector{Bytes{8}, Bytes{16}, Bytes{32}, Bytes{64}}));
    EXPECT_EQ(sizes_between(Bytes{8}, Bytes{8}, 2), std::vector{Bytes{8}});
    EXPECT_EQ(sizes_between(Bytes{10}, Bytes{99}, 10), std::vector{Bytes{10}});
}

TEST(Traffic, OfEveryKindAndTypeIsRightByAllAlgorithmsAndByMpi) {
    kernels::Communicator world = kernels::Communicator::world();
    world.connect();
    for (const CollectiveKind kind : collective_kinds()) {
        for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
            SCOPED_TRACE(std::string{to_string(kind)} + " " + std::string{to_string(type)});
            std::vector<std::string> names;
            for (const AlgorithmName& name : algorithms(kind)) {
                if (name.name.find('(') == std::string_view::npos) names.emplace_back(name.name);
            }
            if (type == DataType::f32) names.emplace_back("auto");
            if (type != DataType::f32) names.resize(1);
            const bool sums = kind == all_reduce || kind == reduce_scatter;
            if (!sums || type == DataType::f32) names.emplace_back("mpi");
            const TrafficMeasurement measured = measure_traffic(world, quick({kind, type}, names));
            ASSERT_EQ(measured.samples.size(), 2 * names.size());
            for (std::size_t i = 0; i < measured.samples.size(); ++i) {
                const TrafficSample& sample = measured.samples[i];
                EXPECT_EQ(sample.algorithm, names[i % names.size()]);
                EXPECT_EQ(sample.wrong, 0) << sample.algorithm;
                EXPECT_EQ(sample.samples, 2);
                EXPECT_GT(sample.median.value, 0);
                EXPECT_NEAR(sample.algorithm_bandwidth.value * sample.median.value / sample.size.value, 1, 1e-12);
            }
        }
    }
}

TEST(Traffic, FromRankToRankIsRightToo) {
    kernels::Communicator world = kernels::Communicator::world();
    world.connect();
    const auto samples = measure_traffic(world, quick({}, {"direct", "mpi"})).samples;
    ASSERT_EQ(samples.size(), 4U);
    for (const TrafficSample& sample : samples) EXPECT_EQ(sample.wrong, 0) << sample.algorithm;
    EXPECT_EQ(samples[2].count, 12'500);
}

// nccl-tests counts a rank's part where the data is cut, and cuts the data to equal parts.
TEST(Traffic, CountsElementsAsNcclTestsDoes) {
    kernels::Communicator world = kernels::Communicator::world();
    const std::int64_t n = world.size();
    const auto last = [&](CollectiveKind kind, const char* name) {
        return measure_traffic(world, quick({kind, DataType::f32}, {name})).samples.back();
    };
    EXPECT_EQ(last(all_reduce, "ring").count, 12'500);
    EXPECT_EQ(last(all_gather, "ring").count, 12'500 / n);
    EXPECT_EQ(last(all_gather, "ring").size.value, static_cast<double>(12'500 / n * n * 4));
}

TEST(Traffic, NamesItsBenchmarksByWhatWasMeasured) {
    kernels::Communicator world = kernels::Communicator::world();
    const auto document =
        nlohmann::json::parse(measure_traffic(world, quick({broadcast, DataType::f16}, {"tree", "mpi"})).json);
    std::vector<std::string> names;
    for (const auto& row : document["benchmarks"]) names.push_back(row["name"]);
    const std::string n = std::to_string(world.size());
    EXPECT_THAT(names, testing::Contains("broadcast:n" + n + ":50000B:f16/comm/tree"));
    EXPECT_THAT(names, testing::Contains("broadcast:n" + n + ":50000B:f16/mpi/default"));
}

TEST(CountWrong, FindsWhatWasNotDone) {
    const kernels::Communicator world = kernels::Communicator::world();
    const std::int64_t n = world.size();
    for (const CollectiveKind kind : collective_kinds()) {
        const Collective collective{kind, parse_algorithm(algorithms(kind).front().name, kind), {n, n}, 60};
        std::vector<float> data(60), received(60);
        const std::int64_t wrong =
            count_wrong(world, {collective, false, false}, kernels::floats(data, received), [] {});
        EXPECT_GT(wrong, 0) << to_string(kind);
    }
}

TEST(Traffic, IsRefusedWithWhatWouldBeRight) {
    kernels::Communicator world = kernels::Communicator::world();
    const auto refusal = [&](Traffic traffic, const char* name) -> std::string {
        try {
            measure_traffic(world, quick(traffic, {name}));
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_THAT(refusal({all_reduce, DataType::f32}, "rign"), testing::HasSubstr("did you mean 'ring'"));
    EXPECT_THAT(refusal({all_reduce, DataType::f16}, "mpi"), testing::HasSubstr("no sum of 16-bit floats"));
    EXPECT_THAT(refusal({std::nullopt, DataType::f32}, "ring"), testing::HasSubstr("p2p has direct and mpi"));
    kernels::Communicator alone = kernels::Communicator::self();
    EXPECT_THROW(measure_traffic(alone, quick({all_reduce, DataType::f32}, {"ring"})), InputError);
}

TEST(Choice, TakesTheFastestAtTheNearestSize) {
    kernels::AlgorithmChoice choice;
    const Algorithm ring = parse_algorithm("ring"), tree = parse_algorithm("tree");
    choice.add(Bytes{1e3}, ring, Seconds{2e-6});
    choice.add(Bytes{1e3}, tree, Seconds{1e-6});
    choice.add(Bytes{1e6}, ring, Seconds{1e-3});
    choice.add(Bytes{1e6}, tree, Seconds{2e-3});
    EXPECT_EQ(choice.best(Bytes{1}), tree);
    EXPECT_EQ(choice.best(Bytes{3e4}), tree);
    EXPECT_EQ(choice.best(Bytes{4e4}), ring);
    EXPECT_EQ(choice.best(Bytes{1e9}), ring);
}

}  // namespace
}  // namespace rehearse::bench
