// SPDX-License-Identifier: Apache-2.0
// Blocks that a network repeats, and wires of the whole machine: what estimates rest on.
#include "search/repeats.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/models.hpp"
#include "search/wires.hpp"
#include "tests/search/requests.hpp"
#include "tests/sim/fixture.hpp"

namespace rehearse::search {
namespace {

using test::mixture;

TEST(Repeats, AreTheBlocksOfANetwork) {
    const Network gpt = models::load_network("gpt-h64-a4-l12-v256@32");
    const Repeats found = repeats_of(gpt);
    EXPECT_EQ(found.times, 12);
    // With fewer of them it is the network with fewer layers, but for its name.
    const Network few = with_blocks(gpt, found, 5), built = models::load_network("gpt-h64-a4-l5-v256@32");
    ASSERT_EQ(few.layers.size(), built.layers.size());
    for (std::size_t i = 0; i < few.layers.size(); ++i) {
        EXPECT_EQ(few.layers[i].name, built.layers[i].name);
        EXPECT_EQ(few.layers[i].op, built.layers[i].op);
        EXPECT_EQ(few.layers[i].inputs, built.layers[i].inputs);
        EXPECT_EQ(few.layers[i].weights_of, built.layers[i].weights_of);
    }
    EXPECT_NO_THROW(check(few));
    EXPECT_LE(repeats_of(mixture()).times, 2);
}

// Seven blocks are looked at one by one; of twelve, five stand for all. Costs are straight lines in the blocks.
TEST(Repeats, CostAsMuchAsTheBlocksThemselves) {
    const Machine machine = sim::test::four_device_nodes(2);
    schedule::Job job;
    job.optimizer = Optimizer::adam;
    for (const schedule::Recompute recompute : {schedule::Recompute::none, schedule::Recompute::attention,
                                                schedule::Recompute::blocks, schedule::Recompute::all}) {
        for (const std::int64_t tensor : {1, 2}) {
            const auto costs = [&](int blocks) {
                const Network network = models::load_network(fmt::format("gpt-h64-a4-l{}-v256@32", blocks));
                return Group{network, machine, {}, job, {.tensor = tensor, .recompute = recompute}}.costs(4).value();
            };
            const LayerCosts six = costs(6), seven = costs(7), twelve = costs(12);
            const auto expect_line = [](double a, double b, double c) { EXPECT_NEAR(c, b + 5 * (b - a), 1e-6 * c); };
            expect_line(six.forward_s.back(), seven.forward_s.back(), twelve.forward_s.back());
            expect_line(six.backward_s.back(), seven.backward_s.back(), twelve.backward_s.back());
            expect_line(six.computed_s, seven.computed_s, twelve.computed_s);
            expect_line(six.weights.back(), seven.weights.back(), twelve.weights.back());
            expect_line(six.held_bytes.back(), seven.held_bytes.back(), twelve.held_bytes.back());
            expect_line(six.fullest_bytes, seven.fullest_bytes, twelve.fullest_bytes);
            EXPECT_EQ(twelve.forward_s.size() - seven.forward_s.size(),
                      5 * (seven.forward_s.size() - six.forward_s.size()));
        }
    }
}

TEST(Wires, AreThoseOfTheWholeMachine) {
    const Machine machine = models::load_machine("summit");
    const Shape shape{.data = 8, .tensor = 6, .pipe = 2};
    Wires wires{machine};
    const Line line = wires.piecewise(CollectiveKind::all_gather, shape);
    const sim::Call call{CollectiveKind::all_gather, 1, 1 << 23, DataType::f32, {}};
    const Mesh mesh{{{"pipe", 2}, {"data", 8}, {"tensor", 6}}};
    EXPECT_NEAR(line.at(4.0 * (1 << 23)), sim::collective_time(call, mesh, machine, sim::Mode::folded).value, 1e-12);
}

}  // namespace
}  // namespace rehearse::search
