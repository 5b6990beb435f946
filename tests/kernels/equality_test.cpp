// SPDX-License-Identifier: Apache-2.0
// Every backend of this build against the reference, every pass, on shapes chosen to be awkward. Inputs are whole
// numbers of at most 4: the sums of a convolution, product or maximum are exact in f32, so nothing but equality will do
// there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

// Whole libraries: those that come as algorithms have tests of their own (cpu_test.cpp).
std::vector<const Backend*> others() {
    std::vector<const Backend*> found;
    for (const Backend* backend : backends()) {
        if (backend->name() != "reference" && backend->algorithm().empty()) found.push_back(backend);
    }
    return found;
}

// Below this is rounding: absolute, given by each test.
struct Tolerance {
    double dst = 0, diff_src = 0, diff_weights = 0;
};

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance,
                 const char* what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        // Not EXPECT_NEAR alone: NaN, which marks what nobody wrote, must fail.
        ASSERT_TRUE(std::abs(actual[i] - expected[i]) <= tolerance)
            << what << " at " << i << ": " << actual[i] << " instead of " << expected[i];
    }
}

using Prepare = void (*)(Tensors&);

void expect_same(
    const Op& op, std::int64_t batch, Tolerance tolerance = {}, Prepare prepare = [](Tensors&) {}) {
    SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    Tensors expected{op, batch, reference::backend()};
    prepare(expected);
    expected.run_forward_and_backward(reference::backend());
    for (const Backend* backend : others()) {
        const auto* norm = std::get_if<BatchNorm>(&op);
        if (norm != nullptr && !norm->affine && backend->name() == "onednn") continue;  // refuses it
        SCOPED_TRACE(backend->name());
        Tensors actual{op, batch, *backend};
        prepare(actual);
        ASSERT_NO_FATAL_FAILURE(actual.run_forward_and_backward(*backend));
        expect_near(actual.dst, expected.dst, tolerance.dst, "dst");
        for (std::size_t i = 0; i < actual.diff_src.size(); ++i) {
            expect_near(actual.diff_src[i], expected.diff_src[i], tolerance.diff_src, "diff_src");
        }
        if (has_pass(op, Pass::backward_weights) || gradients_together(op)) {
            expect_near(actual.diff_weights, expected.diff_weights, tolerance.diff_weights, "diff_weights");
        }
        expect_near(actual.state, expected.state, tolerance.dst, "state");
    }
}

class EveryBackend : public testing::Test {
protected:
    void SetUp() override {
        if (others().empty()) GTEST_SKIP() << "this build has only the reference";
    }
};

constexpr Window square(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1) {
    return {kernel, kernel, stride, stride, pad, pad, pad, pad, 1, 1};
}

TEST_F(EveryBackend, ConvolvesExactly) {
    const Window lopsided{3, 3, 2, 1, 0, 1, 1, 2, 1, 1};
    const Window dilated{3, 3, 1, 1, 2, 2, 2, 2, 2, 2};
    const Window flat{1, 7, 1, 2, 0, 3, 0, 3, 1, 1};
    const std::vector<Conv> ops{{1, 1, 1, 1, {}, 1, true},
                                {16, 5, 7, 8, {}, 1, true},
                                {16, 15, 14, 32, {}, 1, false},
                                {17, 16, 16, 5, {}, 1, true},
                                {16, 8, 8, 32, square(1, 0, 2), 1, false},
                                {1, 28, 28, 6, square(5, 2), 1, true},
                                {3, 9, 11, 16, square(3, 1), 1, false},
                                {16, 8, 8, 16, square(3, 1), 1, true},
                                {16, 9, 7, 32, square(3, 1, 2), 1, false},
                                {3, 23, 23, 8, square(7, 3, 2), 1, true},
                                {5, 7, 9, 19, lopsided, 1, true},
                                {16, 11, 9, 16, dilated, 1, false},
                                {4, 6, 13, 6, flat, 1, true},
                                {8, 7, 7, 12, square(3, 1), 2, true},
                                {32, 6, 6, 32, square(3, 1), 2, false},
                                {16, 7, 9, 16, square(3, 1), 16, false},
                                {6, 8, 8, 12, square(3, 1, 2), 6, true}};
    for (const Conv& op : ops) {
        for (const std::int64_t batch : {1, 3}) expect_same(op, batch);
    }
}

TEST_F(EveryBackend, MultipliesMatricesExactly) {
    const std::vector<MatMul> ops{
        {1, 1, 1, true},     {3, 5, 7, true},   {1, 10, 84, true},          {17, 1, 64, true},
        {1, 33, 128, false}, {2, 64, 3, false}, {1, 9, 4, false, {}, true}, {7, 33, 5, true, {}, true}};
    for (const MatMul& op : ops) {
        for (const std::int64_t batch : {1, 3}) expect_same(op, batch);
    }
}

TEST_F(EveryBackend, TakesTheSameMaximaAmongEqualPixels) {
    const Window sticks_out{3, 3, 2, 2, 0, 0, 1, 1, 1, 1};
    const Window lopsided{2, 3, 1, 2, 1, 0, 0, 2, 1, 1};
    const Window dilated{2, 2, 1, 1, 1, 1, 1, 1, 2, 2};
    for (const Window& w : {square(2, 0, 2), square(3, 1, 2), square(1, 0), sticks_out, lopsided, dilated}) {
        for (const std::int64_t channels : {1, 16, 19}) {
            for (const std::int64_t batch : {1, 3}) expect_same(Pool{PoolKind::max, channels, 7, 8, w}, batch);
        }
    }
}

TEST_F(EveryBackend, AveragesTheSameWindows) {
    // Each value is a whole number of at most 9 * 4 divided by at most 9, so below 4; the gradient of a pixel sums at
    // most 9 quotients. A quotient may be taken as a product with a rounded inverse, 2^-23 relative: 9 * 4 * 2^-23.
    const Tolerance rounding{.dst = 4 * 0x1p-23, .diff_src = 36 * 0x1p-23};
    const Window sticks_out{3, 3, 2, 2, 0, 0, 1, 1, 1, 1};
    const Window lopsided{2, 3, 1, 2, 1, 0, 0, 2, 1, 1};
    for (const bool count_padding : {false, true}) {
        for (const Window& w : {square(2, 0, 2), square(3, 1, 2), square(3, 1), sticks_out, lopsided}) {
            for (const std::int64_t channels : {1, 16, 19}) {
                expect_same(Pool{PoolKind::average, channels, 7, 8, w, count_padding}, 3, rounding);
            }
        }
    }
    expect_same(Pool{PoolKind::average, 64, 8, 8, square(8, 0)}, 3);  // 1/64 is exact
}

TEST_F(EveryBackend, NormalizesBatchesAlike) {
    // N values a channel. Summing N squares in f32 leaves a relative error of at most N 2^-24 in the variance, half of
    // that in the deviation; with the handful of roundings after it, (N + 8) 2^-24 of what is added up: dst is at most
    // 4 * 3 + 4; d gamma adds N terms of 4 * 3; d src is gamma / deviation (4 / 2) of a handful of terms below 12.
    for (const std::int64_t channels : {1, 16, 19}) {
        for (const auto& [batch, height, width] : {std::tuple{1, 5, 4}, {3, 3, 5}, {3, 2, 3}}) {
            const double values = batch * height * width;
            const double rounding = (values + 8) * 0x1p-24;
            const Tolerance off{
                .dst = 16 * rounding, .diff_src = 48 * rounding, .diff_weights = 12 * values * rounding};
            expect_same(BatchNorm{channels, height, width}, batch, off);
            expect_same(BatchNorm{.channels = channels, .height = height, .width = width, .affine = false}, batch, off);
        }
    }
}

TEST_F(EveryBackend, GivesGammaAndBetaTheirGradientWithoutTheInputs) {
    for (const Backend* backend : others()) {
        for (const std::int64_t channels : {3, 16}) {
            Tensors with{BatchNorm{channels, 3, 3}, 2, *backend};
            with.run_forward_and_backward(*backend);
            Tensors without{with.op, 2, *backend};
            without.run(*backend, Pass::forward);
            Buffers b = without.buffers();
            b.diff_src[0] = {};
            backend->prepare({with.op, Pass::backward_data, 2, DataType::f32})->run(b);
            EXPECT_EQ(without.diff_weights, with.diff_weights);
        }
    }
}

TEST_F(EveryBackend, NormalizesAcrossChannelsAlike) {
    // scale is between 1 and 1 + 16 and to the power of -3/4; f32 all along, a dozen roundings of values up to 4, and
    // up to 16 in the gradient's sum.
    for (const std::int64_t size : {3, 5}) {
        for (const std::int64_t channels : {3, 16, 20, 32}) {
            expect_same(Lrn{channels, 4, 5, size, 1.0, 0.75, 1.0}, 3,
                        {.dst = 12 * 4 * 0x1p-24, .diff_src = 12 * 16 * 0x1p-24});
        }
    }
}

TEST_F(EveryBackend, ActivatesAlike) {
    for (const std::int64_t count : {1, 16, 37}) {
        for (const std::int64_t batch : {1, 3}) expect_same(Activation{Nonlinearity::relu, {count}}, batch);
        // Polynomials stand in for exp and erf: good to 16 units of the last place of a value up to 4, and of a
        // gradient up to 4 * 1.13.
        for (const Nonlinearity kind : {Nonlinearity::sigmoid, Nonlinearity::tanh, Nonlinearity::gelu}) {
            expect_same(Activation{kind, {count}}, 3, {.dst = 16 * 4 * 0x1p-24, .diff_src = 16 * 5 * 0x1p-24});
        }
    }
}

TEST_F(EveryBackend, AddsJoinsAndPadsExactly) {
    for (const std::int64_t batch : {1, 3}) {
        expect_same(Add{{3, 5, 7}, 1}, batch);
        expect_same(Add{{3, 5, 7}, 2}, batch);
        expect_same(Add{{17}, 5}, batch);
        expect_same(Concat{{1}, 3, 3}, batch);
        expect_same(Concat{{16, 3, 8}, 5, 7}, batch);
        expect_same(ChannelPad{16, 4, 4, 8, 8}, batch);
        expect_same(Dropout{{3, 5, 7}, 0.5}, batch);
    }
}

TEST_F(EveryBackend, TakesTheSameSoftmaxAndLoss) {
    // Probabilities are below 1 and off by a few units of exp's last place; the gradient weighs them with at most 8.
    for (const std::int64_t classes : {1, 10, 1000}) {
        expect_same(Softmax{classes}, 3, {.dst = 16 * 0x1p-24, .diff_src = 16 * 8 * 0x1p-24});
        expect_same(SoftmaxLoss{classes}, 3, {.dst = 16 * 8 * 0x1p-24, .diff_src = 16 * 0x1p-24});
    }
}

TEST_F(EveryBackend, RunsAPreparedKernelOnOtherBuffersEachTime) {
    // 5 and 19 channels leave part of a block of channels empty.
    const Conv op{5, 9, 9, 19, square(3, 1), 1, true};
    for (const Backend* backend : others()) {
        const auto kernel = backend->prepare({op, Pass::forward, 2, DataType::f32});
        for (const std::int64_t seed : {11, 12, 13, 14}) {
            Tensors actual{op, 2, *backend};
            actual.src[0] = whole_numbers(static_cast<std::int64_t>(actual.src[0].size()), seed);
            Tensors expected = actual;
            kernel->run(actual.buffers());
            expected.run(reference::backend(), Pass::forward);
            EXPECT_EQ(actual.dst, expected.dst);
            // A larger problem in between moves the memory that kernels may share, later only fills it.
            Tensors larger{Conv{16, 8 * std::min<std::int64_t>(seed, 12), 64, 16, square(3, 1)}, 2, *backend};
            larger.run(*backend, Pass::forward);
        }
    }
}

TEST_F(EveryBackend, RefusesOnlyWithAReasonAndThenTheReferenceIsChosen) {
    // A window wholly in the padding, one whose taps jump over the image, and a neighbourhood of even size.
    const Op empty_window = Pool{PoolKind::max, 2, 4, 4, {2, 2, 1, 1, 2, 0, 0, 0, 1, 1}};
    const Op jumping = Pool{PoolKind::max, 16, 2, 16, {2, 3, 1, 1, 1, 1, 1, 1, 3, 1}};
    const Op jumping_mean = Pool{PoolKind::average, 1, 2, 2, {2, 2, 1, 1, 1, 1, 1, 1, 3, 3}};
    Pool volume{PoolKind::max, 16, 5, 6, {2, 2, 3, 2, 1, 1, 2, 0, 1, 2}};
    volume.depth = 1, volume.window.kernel_d = 2, volume.window.stride_d = 3, volume.window.dilation_d = 2;
    volume.window.pad_front = volume.window.pad_back = 1;
    const Op even = Lrn{.channels = 4, .height = 2, .width = 2, .size = 4};
    for (const Op& op : {empty_window, jumping, jumping_mean, Op{volume}, even}) {
        for (const Backend* backend : others()) {
            const Support support = backend->supports({op, Pass::forward, 1, DataType::f32});
            EXPECT_TRUE(support.yes || !support.reason.empty()) << to_string(op);
        }
        const Backend& chosen = choose(op, 1, DataType::f32);
        Tensors actual{op, 1, chosen};
        Tensors expected{op, 1, reference::backend()};
        actual.run_forward_and_backward(chosen);
        expected.run_forward_and_backward(reference::backend());
        EXPECT_EQ(actual.dst, expected.dst);
        EXPECT_EQ(actual.diff_src, expected.diff_src);
    }
}

}  // namespace
}  // namespace rehearse::kernels
