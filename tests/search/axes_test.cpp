// SPDX-License-Identifier: Apache-2.0
// Meshes with an expert or a context axis, screened and simulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "models/models.hpp"
#include "predict/predict.hpp"
#include "search/search.hpp"
#include "tests/search/requests.hpp"
#include "tests/sim/fixture.hpp"

namespace rehearse::search {
namespace {

using test::request_for;
using test::tower;

/// The plans of shapes of eight devices, one after the other.
struct Everything {
    const Network& network;
    const Machine& machine;
    const Request& request;
    Screen screen{network, machine, request.job};
    double best = INFINITY;
    int screened = 0;

    /// What a screened plan is estimated to hold is what it holds to a quarter, and no step is below its shape's bound.
    void simulate(const Shape& shape, bool is_screened) {
        schedule::Job job = request.job;
        job.devices = 8;
        for (Choices choices : choices_of(shape, *request.job.global_batch, request.variety)) {
            const std::optional<Estimate> estimate = is_screened ? screen.estimate(choices) : std::nullopt;
            if (is_screened && !estimate) continue;
            const Simulated result = simulated(network, machine, job, plan_text(choices), Bytes{1e15});
            if (!result.refusal.empty()) continue;
            best = std::min(best, result.step.value);
            if (!estimate) continue;
            SCOPED_TRACE(plan_text(choices));
            EXPECT_NEAR(estimate->memory_bytes / result.memory.value, 1, 0.25);
            EXPECT_GE(result.step.value, *screen.bound(shape) * (1 - 1e-9));
            ++screened;
        }
    }
    /// What the search finds is not slower than any of them.
    void expect_found() const {
        const Result found = search(network, machine, request);
        ASSERT_FALSE(found.ranked.empty());
        EXPECT_LE(found.ranked.front().result.step.value, 1.02 * best);
    }
};

// What is screened of meshes with an expert axis is what their schedules hold and take: memory to a tenth, steps not
// below the bound, and the best of all plans is found by simulating few.
TEST(Experts, AreAnAxisOfTheMesh) {
    const Network network = test::mixture();
    const Machine machine = sim::test::four_device_nodes(2);
    EXPECT_EQ(experts_of(network), 4);
    EXPECT_EQ(experts_of(tower(2, 64)), 1);
    Request request = request_for(16, 12);
    request.variety = {.chunks = 1, .zero = 0};
    request.most = {.tensor = 2, .pipe = 2};
    std::set<std::int64_t> seen;
    for (const Shape& shape : shapes(8, request.most, {4, 1})) {
        EXPECT_EQ(devices(shape), 8);
        EXPECT_TRUE(shape.expert == 1 || shape.tensor == 1);
        seen.insert(shape.expert);
    }
    EXPECT_EQ(seen, (std::set<std::int64_t>{1, 2, 4}));
    Everything all{network, machine, request};
    for (const Shape& shape : shapes(8, request.most, {4, 1})) all.simulate(shape, shape.expert > 1);
    all.expect_found();
}

// Where a batch has fewer samples than there are devices, their tokens are shared: memory to a quarter, steps not below
// the bound, and what is found is not slower than any of them.
TEST(Sequences, AreSharedAlongContext) {
    const Network network = models::load_network("gpt-h1024-a8-l2-v1024@256");
    const Machine machine = sim::test::four_device_nodes(2);
    EXPECT_EQ(tokens_of(network), 256);
    EXPECT_EQ(tokens_of(tower(2, 64)), 1);
    Request request = request_for(2, 8);
    request.variety = {.chunks = 1, .zero = 0};
    request.most = {.tensor = 4, .pipe = 2};
    Everything all{network, machine, request};
    for (const Shape& shape : shapes(8, request.most, {1, 256})) {
        EXPECT_EQ(devices(shape), 8);
        EXPECT_TRUE(shape.context == 1 || shape.tensor == 1);
        if (shape.context > 1) all.simulate(shape, true);
    }
    EXPECT_GT(all.screened, 10);
    all.expect_found();
}

}  // namespace
}  // namespace rehearse::search
