// SPDX-License-Identifier: Apache-2.0
// Every backend of this build, as it is chosen on this machine.
#include "tests/kernels/fused.hpp"

#include <gmock/gmock.h>

namespace rehearse::kernels {
namespace {

TEST(Fused, ConvolutionAndReluAreTheTwo) {
    for (const Backend* backend : backends()) {
        for (const Conv& op : convolutions_with_relu) expect_exactly_as_chain(op, 2, *backend);
    }
}

TEST(Fused, ProductAndReluAreTheTwo) {
    for (const Backend* backend : backends()) {
        for (const MatMul& op : products_with_relu) expect_exactly_as_chain(op, 3, *backend);
    }
}

TEST(Fused, ProductAndGeluAreTheTwo) {
    int found = 0;
    for (const Backend* backend : backends()) {
        for (const MatMul& op : {MatMul{1, 33, 8, true, Nonlinearity::gelu}, {5, 20, 8, false, Nonlinearity::gelu}}) {
            if (!backend->supports({op, Pass::forward, 3, DataType::f32}).yes) continue;
            expect_gelu_as_chain(op, 3, *backend);
            ++found;
        }
    }
    EXPECT_GE(found, 2);
}

TEST(Fused, NormalizationShortcutAndReluAreTheThree) {
    for (const Backend* backend : backends()) {
        for (const BatchNorm& op : norms()) expect_norm_as_chain(op, 3, *backend);
    }
}

TEST(Fused, EveryOperatorHasABackendForAllItsPasses) {
    for (const BatchNorm& op : norms()) EXPECT_NO_THROW((void)choose(op, 2, DataType::f32));
    for (const Conv& op : convolutions_with_relu) EXPECT_NO_THROW((void)choose(op, 2, DataType::f32));
    EXPECT_NO_THROW((void)choose(MatMul{1, 4, 4, true, Nonlinearity::gelu}, 2, DataType::f32));
}

// Of a batch normalization with a shortcut, whichever gradients somebody wants.
TEST(Fused, GradientsThatNobodyWantsAreLeftOut) {
    const BatchNorm op{.channels = 19, .height = 3, .width = 5, .relu = true, .add = true};
    for (const Backend* backend : backends()) {
        if (!backend->supports({op, Pass::backward_data, 2, DataType::f32}).yes) continue;
        SCOPED_TRACE(full_name(*backend));
        Tensors all{op, 2, *backend};
        all.run_forward_and_backward(*backend);
        for (const std::size_t left_out : {0U, 1U}) {
            Tensors some{op, 2, *backend};
            some.run(*backend, Pass::forward);
            Buffers b = some.buffers();
            b.diff_src[left_out] = {};
            backend->prepare({op, Pass::backward_data, 2, DataType::f32})->run(b);
            EXPECT_EQ(some.diff_src[1 - left_out], all.diff_src[1 - left_out]);
            EXPECT_EQ(some.diff_weights, all.diff_weights);
        }
    }
}

TEST(Fused, BackwardPassesAskForTheOutput) {
    const Op op = convolutions_with_relu[0];
    Tensors t{op, 1, reference::backend()};
    Buffers b = t.buffers();
    b.dst_in = {};
    for (const Pass pass : {Pass::backward_data, Pass::backward_weights}) {
        const auto kernel = reference::backend().prepare({op, pass, 1, DataType::f32});
        EXPECT_THAT([&] { kernel->run(b); }, testing::ThrowsMessage<std::logic_error>(testing::HasSubstr("dst_in")));
    }
}

}  // namespace
}  // namespace rehearse::kernels
