// SPDX-License-Identifier: Apache-2.0
#include "prices/stack_price.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>

#include "models/models.hpp"
#include "prices/kernel_point.hpp"
#include "prices/tile_model.hpp"

namespace rehearse {
namespace {

DeviceClass card(const std::string& like) {
    return models::parse_machine("name = \"one\"\n[[device]]\nname = \"gpu\"\nlike = \"" + like +
                                     "\"\n[[node]]\nname = \"n\"\ncount = 1\ndevices = [{class = \"gpu\", name = "
                                     "\"gpu\"}]\n",
                                 "test")
        .classes.at(0);
}

Price of(const Op& op, Pass pass, DataType type, const DeviceClass& device, std::int64_t batch = 8) {
    return price({op, pass, batch, type}, device);
}

// 8 samples of 16 heads: 128 products of 1,024 x 1,024 x 1,024, backward two of them.
TEST(Stacks, AreTheBatchesThatWereMeasuredOnTheBoard) {
    const BatchedMatMul stack{{16, 1024, 1024}, {16, 1024, 1024}};
    const GroupedMatMul batch{.experts = 128, .rows = 1024, .n = 1024, .k = 1024, .bias = false};
    for (const char* board : {"l4", "t4", "h100-sxm", "mi210"}) {
        const DeviceClass device = card(board);
        const Price measured = of(batch, Pass::forward, DataType::f32, device, 1);
        const Price priced = of(stack, Pass::forward, DataType::f32, device);
        EXPECT_EQ(priced.time, measured.time) << board;
        EXPECT_EQ(priced.error, measured.error) << board;
        const Price gradients = of(stack, Pass::backward_data, DataType::f32, device);
        EXPECT_NEAR(gradients.time / measured.time, 2, 1e-12) << board;
        EXPECT_DOUBLE_EQ(gradients.error, std::hypot(measured.error, 0.15)) << board;
    }
}

// Where nobody measured batches, and in 16 bits, by tiles dealt out together; no stack is faster than its best product.
TEST(Stacks, AreTilesWhereNoBatchesWereMeasured) {
    const BatchedMatMul stack{{16, 1024, 1024}, {16, 1024, 1024}};
    const DeviceClass h100 = card("h100-sxm");
    const Price priced = of(stack, Pass::forward, DataType::bf16, h100);
    EXPECT_EQ(priced.time, product_time(product_sizes(MatMul{1024, 1024, 1024}, Pass::forward, 1), 128, *h100.tiles,
                                        h100, DataType::bf16));
    EXPECT_GT(priced.time.value, 128 * 2 * std::pow(1024.0, 3) / 989e12 / h100.tiles->large_tile.value);
    EXPECT_GE(of(stack, Pass::forward, DataType::f32, card("a100-40gb")).error, 0.3);
}

// A card without tiles or batches: by what its large products take beyond the peak, not by what a copy does.
TEST(Stacks, AreAtTheShareOfLargeProductsElsewhere) {
    const DeviceClass device = card("gtx1080ti");
    const BatchedMatMul stack{{16, 1024, 1024}, {16, 1024, 1024}};
    const Price large = of(MatMul{4096, 4096, 4096, false}, Pass::forward, DataType::f32, device, 1);
    const Price priced = of(stack, Pass::forward, DataType::f32, device);
    EXPECT_NEAR((priced.time - device.launch.value) / (2 * large.time), 1, 1e-9);  // 128 x 2^30 over 2^36
    EXPECT_GT(priced.error, 0.35);
}

// Trained matrices that all samples share are a dense layer's; a trained stack is one of as many products.
TEST(Stacks, WhoseRightOperandIsSharedAreOneProduct) {
    const StackedProducts dense = stacked_products({{16, 32, 64}, {64, 48}, 2}, Pass::backward_weights, 8);
    EXPECT_EQ(dense.count, 1);
    EXPECT_EQ(dense.each, (MatMul{16 * 32 * 8, 48, 64, false}));
    EXPECT_EQ(dense.passes, std::vector{Pass::backward_weights});
    const StackedProducts each = stacked_products({{16, 32, 64}, {64, 48}}, Pass::backward_data, 8);
    EXPECT_EQ(each.count, 8);
    EXPECT_EQ(each.each.m, 16 * 32);
    EXPECT_EQ(each.passes, (std::vector{Pass::backward_data, Pass::backward_weights}));
    const StackedProducts left = stacked_products({{32, 64}, {16, 64, 48}, 1}, Pass::backward_data, 8);
    EXPECT_EQ(left.count, 128);
    EXPECT_EQ(left.passes, std::vector{Pass::backward_weights});
    const DeviceClass a100 = card("a100-40gb");
    EXPECT_EQ(of(BatchedMatMul{{16, 32, 64}, {64, 48}, 2}, Pass::forward, DataType::f32, a100).time,
              of(MatMul{16 * 32 * 8, 48, 64, false}, Pass::forward, DataType::f32, a100, 1).time);
}

}  // namespace
}  // namespace rehearse
