// SPDX-License-Identifier: Apache-2.0
#include "core/network.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/once.hpp"

namespace rehearse {
namespace {

// input -> conv -> relu -> add(conv, relu) -> loss-less end; small enough to count by hand.
Network residual() {
    const Conv conv{2, 4, 4, 2, Window{3, 3, 1, 1, 1, 1, 1, 1}, 1, true};
    const Shape image{2, 4, 4};
    return {"residual",
            {{"input", Input{image}, {}, image},
             {"conv", conv, {0}, image},
             {"relu", Activation{Nonlinearity::relu, image}, {1}, image},
             {"add", Add{image}, {1, 2}, image}}};
}

TEST(Network, CountsItsParts) {
    const Network network = residual();
    check(network);
    EXPECT_EQ(parameters(network), 2 * 2 * 9 + 2);
    // conv: 32 outputs x (2 x 18 + 1); relu 32; add 32.
    EXPECT_EQ(flops(network, Pass::forward), Flops{32.0 * 37 + 32 + 32});
    EXPECT_EQ(activation_bytes(network, DataType::f16), Bytes{4.0 * 32 * 2});
    EXPECT_EQ(consumers(network)[1], (std::vector{2, 3}));
    EXPECT_EQ(find_layer(network, "add"), 3);
    EXPECT_EQ(find_layer(network, "sub"), std::nullopt);
}

TEST(Network, NeedsNoGradientOfItsInput) {
    EXPECT_EQ(needs_input_gradient(residual()), (std::vector{false, false, true, true}));
}

// A low-rank sum as weights: {5, 2} x {2, 3} once, its product with each sample's rows {4, 5} for each.
TEST(Network, MakesProductsOfWeightsOnce) {
    const Network network{"merged",
                          {{"input", Input{{4, 5}}, {}, {4, 5}},
                           {"a", Parameter{{1, 5, 2}}, {}, {1, 5, 2}},
                           {"b", Parameter{{1, 2, 3}}, {}, {1, 2, 3}},
                           {"ab", BatchedMatMul{{1, 5, 2}, {1, 2, 3}}, {1, 2}, {1, 5, 3}},
                           {"rows", Flatten{{4, 5}, {1, 4, 5}}, {0}, {1, 4, 5}},
                           {"made", BatchedMatMul{{1, 4, 5}, {1, 5, 3}}, {4, 3}, {1, 4, 3}}}};
    check(network);
    EXPECT_EQ(made_once(network), (std::vector{false, true, true, true, false, false}));
    EXPECT_EQ(multiply_adds_once(network), 5 * 2 * 3);
}

TEST(Check, RefusesBrokenNetworks) {
    Network twice = residual();
    twice.layers[2].name = "conv";
    EXPECT_THROW(check(twice), InputError);
    Network backwards = residual();
    backwards.layers[1].inputs = {2};
    EXPECT_THROW(check(backwards), InputError);
    Network misshapen = residual();
    misshapen.layers[1].output = {2, 3, 3};
    EXPECT_THROW(check(misshapen), InputError);
    EXPECT_THROW(check(Network{"empty", {}}), InputError);
}

// ids -> table -> scores by the same table.
Network tied() {
    return {"tied",
            {{"ids", Input{{4}, 10}, {}, {4}},
             {"table", Embedding{4, 10, 3, 4}, {0}, {4, 3}},
             {"scores", MatMul{4, 10, 3, false, {}, true}, {1}, {4, 10}, 1}}};
}

TEST(Check, KnowsWhoseWeightsATiedProductShares) {
    check(tied());
    EXPECT_EQ(parameters(tied()), (10 + 4) * 3);
    Network of_nobody = tied();
    of_nobody.layers[2].weights_of = -1;
    EXPECT_THROW(check(of_nobody), InputError);
    Network of_the_input = tied();
    of_the_input.layers[2].weights_of = 0;
    EXPECT_THROW(check(of_the_input), InputError);
    Network other_size = tied();
    other_size.layers[2].op = MatMul{4, 9, 3, false, {}, true};
    other_size.layers[2].output = {4, 9};
    EXPECT_THROW(check(other_size), InputError);
}

TEST(Check, LetsOnlyTablesReadIntegers) {
    Network floats = tied();
    floats.layers[0].op = Input{{4}};
    EXPECT_THROW(check(floats), InputError);
    Network too_many = tied();
    too_many.layers[0].op = Input{{4}, 11};
    EXPECT_THROW(check(too_many), InputError);
    Network relu{"relu", {{"ids", Input{{4}, 10}, {}, {4}}, {"relu", Activation{Nonlinearity::relu, {4}}, {0}, {4}}}};
    EXPECT_THROW(check(relu), InputError);
}

}  // namespace
}  // namespace rehearse
