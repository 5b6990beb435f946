// SPDX-License-Identifier: Apache-2.0
#include "core/precision.hpp"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

// PyTorch's allow_tf32 is of convolutions, matrix products, stacks of them and cuDNN's recurrent layers.
TEST(Precision, InTf32WhateverLibrariesMultiplyIsTf32) {
    const Shape square{4, 4};
    for (const Op& op : {Op{MatMul{4, 4, 4}}, Op{Conv{4, 4, 4, 4, Window{}}}, Op{GroupedMatMul{}}, Op{Attention{}},
                         Op{Recurrent{}}, Op{BatchedMatMul{square, square}}, Op{Interaction{}}})
        EXPECT_EQ(compute_type(Precision::tf32, op), DataType::tf32) << op.index();
    for (const Op& op : {Op{Add{square}}, Op{Softmax{4}}, Op{LayerNorm{4, 4}}, Op{Activation{}}, Op{Dropout{}}})
        EXPECT_EQ(compute_type(Precision::tf32, op), DataType::f32) << op.index();
    EXPECT_EQ(compute_type(Precision::fp8, Op{Recurrent{}}), DataType::bf16);
}

}  // namespace
}  // namespace rehearse
