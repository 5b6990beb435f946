// SPDX-License-Identifier: Apache-2.0
#include "core/network.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rehearse {
namespace {

// input -> conv -> relu -> add(conv, relu) -> loss-less end; small enough to count by hand.
Network residual() {
    const Conv2d conv{2, 4, 4, 2, Window{3, 3, 1, 1, 1, 1, 1, 1}, 1, true};
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

}  // namespace
}  // namespace rehearse
