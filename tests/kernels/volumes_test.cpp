// SPDX-License-Identifier: Apache-2.0
// Volumes and transposed convolutions: the reference against sums written from the definition, every other backend and
// algorithm against the reference. Inputs are whole numbers of at most 4, so the sums are exact in f32.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

// Kernel, stride, padding on each side and dilation alike in all directions.
Window cube(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1, std::int64_t dilation = 1) {
    Window w{kernel, kernel, stride, stride, pad, pad, pad, pad, dilation, dilation};
    w.kernel_d = kernel;
    w.stride_d = stride;
    w.pad_front = w.pad_back = pad;
    w.dilation_d = dilation;
    return w;
}

// Every size different in every direction, more padding than kernel at the front.
Window lopsided() {
    Window w{3, 2, 2, 1, 0, 1, 1, 2, 1, 2};
    w.kernel_d = 2;
    w.stride_d = 3;
    w.pad_front = 3;
    w.pad_back = 1;
    w.dilation_d = 2;
    return w;
}

std::vector<Conv> convolutions() {
    Window flat = cube(1, 0);  // over depth alone
    flat.kernel_d = 3;
    flat.pad_front = 2;
    Window gaps = cube(2, 0, 3);  // strides that leave pixels out
    return {conv3d(1, 1, 1, 1, 1, cube(1, 0), 1, true),       conv3d(5, 3, 4, 5, 7, cube(1, 0), 1, true),
            conv3d(3, 5, 6, 7, 18, cube(3, 1), 1, true),      conv3d(18, 4, 5, 5, 5, cube(3, 1, 2), 1, false),
            conv3d(4, 7, 6, 8, 6, cube(3, 2, 1, 2), 2, true), conv3d(17, 4, 4, 6, 17, cube(3, 1), 17, true),
            conv3d(6, 4, 5, 4, 12, cube(3, 1, 2), 6, false),  conv3d(3, 6, 7, 5, 4, lopsided(), 1, true),
            conv3d(2, 4, 3, 9, 33, flat, 1, false),           conv3d(4, 7, 8, 7, 3, gaps, 1, true)};
}

std::vector<ConvTranspose> transposed() {
    std::vector<ConvTranspose> ops{{1, 1, 1, 1, cube(1, 0), 1, true},       {5, 4, 6, 7, cube(3, 1), 1, true},
                                   {18, 5, 3, 17, cube(3, 1, 2), 1, true},  {4, 3, 5, 6, cube(2, 0, 2), 2, false},
                                   {16, 4, 4, 16, cube(4, 1, 2), 16, true}, {3, 4, 5, 2, cube(3, 2, 3, 2), 1, false}};
    for (ConvTranspose& op : ops) {  // images: nothing over depth
        op.window.kernel_d = op.window.stride_d = op.window.dilation_d = 1;
        op.window.pad_front = op.window.pad_back = 0;
    }
    ops[2].output_pad_h = 1;
    ops[5].output_pad_h = 1;
    ops[5].output_pad_w = 2;
    ConvTranspose volume{5, 3, 4, 6, cube(3, 1, 2), 1, true, 2};
    volume.output_pad_d = volume.output_pad_w = 1;
    ops.push_back(volume);
    ops.push_back({4, 3, 4, 2, cube(2, 0, 2), 2, false, 3});
    ConvTranspose skewed{3, 6, 7, 4, lopsided(), 1, true, 5};
    skewed.output_pad_d = 2;
    ops.push_back(skewed);
    return ops;
}

// A direction of a window: what meets what.
struct Axis {
    std::int64_t stride, pad, dilation;
    std::int64_t at(std::int64_t window, std::int64_t tap) const { return window * stride - pad + tap * dilation; }
};

std::array<Axis, 3> axes(const Window& w) {
    return {Axis{w.stride_d, w.pad_front, w.dilation_d}, Axis{w.stride_h, w.pad_top, w.dilation_h},
            Axis{w.stride_w, w.pad_left, w.dilation_w}};
}

std::array<std::int64_t, 3> sizes(const Shape& shape) {
    return {shape.size() == 4 ? shape[1] : 1, shape[shape.size() - 2], shape.back()};
}

// visit(pixel of the large image, pixel of the small one, tap) wherever window `small` holds pixel `large` at a tap.
template <typename Visit>
void for_each_meeting(const Window& w, const Shape& large, const Shape& small, Visit visit) {
    const auto [depth, height, width] = sizes(large);
    const auto [planes, rows, columns] = sizes(small);
    const auto axis = axes(w);
    std::int64_t window = 0;
    for (std::int64_t z = 0; z < planes; ++z)
        for (std::int64_t y = 0; y < rows; ++y)
            for (std::int64_t x = 0; x < columns; ++x, ++window)
                for (std::int64_t tap = 0; tap < w.taps(); ++tap) {
                    const std::int64_t d = axis[0].at(z, tap / w.kernel_w / w.kernel_h);
                    const std::int64_t h = axis[1].at(y, tap / w.kernel_w % w.kernel_h);
                    const std::int64_t v = axis[2].at(x, tap % w.kernel_w);
                    if (d < 0 || d >= depth || h < 0 || h >= height || v < 0 || v >= width) continue;
                    visit((d * height + h) * width + v, window, tap);
                }
}

// dst of a convolution (gathers) or transposed convolution (scatters) of one group, one sample, no bias.
std::vector<float> by_definition(const auto& op, const Tensors& t, bool scatter) {
    const Shape in = input_shapes(op)[0];
    const Shape out = output_shape(op);
    const std::int64_t in_pixels = elements(in) / op.channels;
    const std::int64_t out_pixels = elements(out) / op.filters;
    std::vector<float> dst(static_cast<std::size_t>(elements(out)));
    for (std::int64_t f = 0; f < op.filters; ++f) {
        for (std::int64_t c = 0; c < op.channels; ++c) {
            const std::int64_t filter = scatter ? c * op.filters + f : f * op.channels + c;
            for_each_meeting(op.window, scatter ? out : in, scatter ? in : out,
                             [&](std::int64_t large, std::int64_t small, std::int64_t tap) {
                                 const std::int64_t from = scatter ? small : large;
                                 const std::int64_t to = scatter ? large : small;
                                 dst[f * out_pixels + to] +=
                                     t.src[0][c * in_pixels + from] * t.weights[filter * op.window.taps() + tap];
                             });
        }
    }
    return dst;
}

TEST(Reference, ConvolvesAsItIsDefined) {
    for (Conv op : convolutions()) {
        op.groups = 1;
        op.bias = false;
        SCOPED_TRACE(to_string(Op{op}));
        Tensors t{op, 1, reference::backend()};
        t.run(reference::backend(), Pass::forward);
        EXPECT_EQ(t.dst, by_definition(op, t, false));
    }
}

TEST(Reference, ConvolvesTransposedAsItIsDefined) {
    for (ConvTranspose op : transposed()) {
        op.groups = 1;
        op.bias = false;
        SCOPED_TRACE(to_string(Op{op}));
        Tensors t{op, 1, reference::backend()};
        t.run(reference::backend(), Pass::forward);
        EXPECT_EQ(t.dst, by_definition(op, t, true));
    }
}

TEST(Reference, OfAVolumeOfOnePlaneIsThatOfAnImage) {
    const Window w{3, 2, 2, 1, 0, 1, 1, 2, 1, 2};
    const Conv flat{4, 6, 7, 6, w, 2, true};
    Tensors image{flat, 2, reference::backend()};
    Tensors volume{as_volume(flat), 2, reference::backend()};
    image.run_forward_and_backward(reference::backend());
    volume.run_forward_and_backward(reference::backend());
    EXPECT_EQ(image.dst, volume.dst);
    EXPECT_EQ(image.diff_src, volume.diff_src);
    EXPECT_EQ(image.diff_weights, volume.diff_weights);
}

void expect_same_everywhere(const Op& op, std::int64_t batch, double tolerance = 0) {
    SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    Tensors expected{op, batch, reference::backend()};
    expected.run_forward_and_backward(reference::backend());
    for (const Backend* backend : backends()) {
        if (!backend->supports({op, Pass::forward, batch, DataType::f32}).yes) continue;
        SCOPED_TRACE(full_name(*backend));
        Tensors actual{op, batch, *backend};
        ASSERT_NO_FATAL_FAILURE(actual.run_forward_and_backward(*backend));
        const auto expect_near = [&](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
            ASSERT_EQ(a.size(), b.size()) << what;
            for (std::size_t i = 0; i < a.size(); ++i)
                ASSERT_TRUE(std::abs(a[i] - b[i]) <= tolerance) << what << " at " << i << ": " << a[i] << ", " << b[i];
        };
        expect_near(actual.dst, expected.dst, "dst");
        expect_near(actual.diff_src[0], expected.diff_src[0], "diff_src");
        if (parameters(op) > 0) expect_near(actual.diff_weights, expected.diff_weights, "diff_weights");
    }
}

// The algorithms of our own, and those of Winograd and Fourier where they run the mirrored convolution, are not exact:
// 1e-3 of sums of up to 4 * 4 * 18 * 9 (tests of their own hold them to their bounds).
constexpr double inexact = 2.6;

bool runs(std::string_view name, const Op& op) {
    for (const Backend* backend : backends()) {
        if (full_name(*backend) == name) return backend->supports({op, Pass::forward, 1, DataType::f32}).yes;
    }
    return false;
}

TEST(VolumesOnEveryBackend, ConvolvesVolumesExactly) {
    for (const Conv& op : convolutions()) {
        for (const std::int64_t batch : {1, 3}) expect_same_everywhere(op, batch);
    }
}

TEST(VolumesOnEveryBackend, ConvolvesTransposed) {
    for (const ConvTranspose& op : transposed()) {
        const double tolerance = runs("cpu winograd2", op) || runs("cpu fft", op) ? inexact : 0;
        for (const std::int64_t batch : {1, 3}) expect_same_everywhere(op, batch, tolerance);
    }
}

TEST(VolumesOnEveryBackend, PoolsVolumes) {
    Window sticks_out = cube(3, 0, 2);
    sticks_out.pad_back = sticks_out.pad_bottom = sticks_out.pad_right = 1;
    for (const Window& w : {cube(2, 0, 2), cube(3, 1, 2), sticks_out}) {
        for (const std::int64_t channels : {1, 16, 19}) {
            expect_same_everywhere(Pool{PoolKind::max, channels, 6, 7, w, false, 5}, 2);
            // A quotient of whole numbers up to 27 * 4 by up to 27, below 4, maybe by a rounded inverse; the gradient
            // sums at most 27 of them: 27 * 4 * 2^-23.
            for (const bool count_padding : {false, true})
                expect_same_everywhere(Pool{PoolKind::average, channels, 6, 7, w, count_padding, 5}, 2, 108 * 0x1p-23);
        }
    }
}

TEST(VolumesOnEveryBackend, NormalizesAndJoinsVolumes) {
    // As for images (equality_test.cpp): 2 * 60 values a channel, (N + 8) 2^-24 of gradients of N terms of 4 * 3.
    for (const std::int64_t channels : {3, 16})
        expect_same_everywhere(BatchNorm{.channels = channels, .height = 4, .width = 5, .depth = 3}, 2,
                               12 * 120 * 128 * 0x1p-24);
    expect_same_everywhere(Concat{{3, 16, 5}, 4, 5, 3}, 2);
}

// Of the definition of each: centres at (i + 1/2) / size.
TEST(Resize, MixesTheNearestTwoPixelsOfEachDirection) {
    Tensors t{Resize{Interpolation::linear, 1, 1, 2, 1, 4}, 1, reference::backend()};
    t.src[0] = {4, 8};
    t.diff_dst = {1, 2, 4, 8};
    t.run_forward_and_backward(reference::backend());
    EXPECT_EQ(t.dst, (std::vector<float>{4, 5, 7, 8}));           // centres -1/4, 1/4, 3/4, 5/4
    EXPECT_EQ(t.diff_src[0], (std::vector<float>{3.5F, 11.5F}));  // 1 + 3/4 2 + 1/4 4, 1/4 2 + 3/4 4 + 8
    t.op = Resize{Interpolation::nearest, 1, 1, 2, 1, 4};
    t.run_forward_and_backward(reference::backend());
    EXPECT_EQ(t.dst, (std::vector<float>{4, 4, 8, 8}));
    EXPECT_EQ(t.diff_src[0], (std::vector<float>{3, 12}));
    t.op = Resize{Interpolation::linear, 1, 1, 2, 1, 4, 0, 0, true};
    t.src[0] = {3, 9};
    t.run(reference::backend(), Pass::forward);
    for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(t.dst[i], static_cast<float>(3 + 2 * i));
}

TEST(Resize, OfAVolumeIsTheProductOfItsDirections) {
    Resize op{Interpolation::linear, 1, 2, 2, 4, 4, 2, 4};
    Tensors t{op, 1, reference::backend()};
    t.src[0] = {0, 16, 32, 48, 64, 80, 96, 112};  // 64 z + 32 y + 16 x
    t.run(reference::backend(), Pass::forward);
    const std::array<float, 4> at{0, 0.25F, 0.75F, 1};
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(t.dst[i], 64 * at[i / 16] + 32 * at[i / 4 % 4] + 16 * at[i % 4]) << "pixel " << i;
}

TEST(PixelLoss, IsTheWeightedMeanOverThePixels) {
    // Two classes, scores equal but at one pixel: log 2 each, weighed 1 or 3 by the label, over 4 pixels.
    Tensors t{SoftmaxLoss{2, {2, 2}, {1, 3}}, 1, reference::backend()};
    t.labels = {0, 1, 1, 0};
    t.src[0].assign(8, 1.0F);
    t.run_forward_and_backward(reference::backend());
    EXPECT_FLOAT_EQ(t.dst[0], static_cast<float>((1 + 3 + 3 + 1) * std::log(2.0) / 4));
    // (probability - 1) weight / 4 at the label, probability weight / 4 elsewhere.
    EXPECT_EQ(t.diff_src[0], (std::vector<float>{-0.125F, 0.375F, 0.375F, -0.125F, 0.125F, -0.375F, -0.375F, 0.125F}));
}

TEST(PixelLoss, OfOnePixelIsThatOfASample) {
    Tensors pixel{SoftmaxLoss{7, {1, 1}}, 3, reference::backend()};
    Tensors sample{SoftmaxLoss{7}, 3, reference::backend()};
    pixel.run_forward_and_backward(reference::backend());
    sample.run_forward_and_backward(reference::backend());
    EXPECT_EQ(pixel.dst, sample.dst);
    EXPECT_EQ(pixel.diff_src, sample.diff_src);
}

}  // namespace
}  // namespace rehearse::kernels
