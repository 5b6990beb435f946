// SPDX-License-Identifier: Apache-2.0
// The GPU's convolutions with every thread's part taken in turn on the host (cuda_host.hpp), and on a GPU where there
// is one, against the reference. Inputs are whole numbers of at most 4, exact in f16, bf16 and TF32: nothing but
// equality will do, save for Winograd's sixths and twenty-fourths.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "kernels/channels_last.hpp"
#include "kernels/cuda/convolution.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/on_an_engine.hpp"
#include "tests/kernels/stored.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels::cuda {
namespace {

constexpr Window square(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1, std::int64_t dilation = 1) {
    return {kernel, kernel, stride, stride, pad, pad, pad, pad, dilation, dilation};
}

std::vector<Op> awkward_shapes() {
    const Window lopsided{3, 3, 2, 1, 0, 1, 1, 2, 1, 1};
    const Window flat{1, 7, 1, 2, 0, 3, 0, 3, 1, 1};
    Window deep = square(3, 1, 2);
    deep.kernel_d = 3, deep.stride_d = 2, deep.pad_front = 1, deep.pad_back = 0;
    return {Conv{1, 1, 1, 1, {}, 1, true},
            Conv{17, 16, 16, 5, {}, 1, true},
            Conv{8, 8, 8, 70, square(1, 0, 2), 1, false},
            Conv{3, 23, 23, 8, square(7, 3, 2), 1, true},
            Conv{5, 7, 9, 19, lopsided, 1, true},
            Conv{16, 11, 9, 16, square(3, 2, 1, 2), 1, false},
            Conv{3, 13, 13, 4, square(3, 1, 3), 1, false},
            Conv{4, 6, 13, 6, flat, 1, true},
            Conv{8, 7, 7, 12, square(3, 1), 2, true},
            Conv{7, 7, 9, 7, square(3, 1), 7, true},
            Conv{13, 14, 15, 11, square(3, 1), 1, true},
            Conv{2, 5, 5, 3, square(3, 2), 1, false},
            Conv{3, 8, 9, 5, square(5, 2), 1, true},
            Conv{2, 9, 7, 3, {4, 2, 1, 1, 0, 1, 3, 0, 2, 3}, 1, true},
            conv3d(3, 5, 7, 6, 4, deep, 1, true),
            ConvTranspose{5, 4, 6, 3, square(3, 1, 2), 1, true},
            ConvTranspose{4, 5, 5, 6, square(2, 0), 2, false},
            MatMul{1, 10, 17, true},
            MatMul{3, 70, 33, false},
            MatMul{.m = 2, .n = 9, .k = 20, .bias = false, .tied = true}};
}

std::vector<float> run(Tensors& t, Pass pass, DataType type, const Backend& backend) {
    if (type == DataType::f32) t.run(backend, pass);
    if (type == DataType::f16) run_stored<Float16>(t, backend, pass);
    if (type == DataType::bf16) run_stored<BFloat16>(t, backend, pass);
    return pass == Pass::forward ? t.dst : pass == Pass::backward_data ? t.diff_src[0] : t.diff_weights;
}

std::vector<float> rounded_to(DataType type, const std::vector<float>& values) {
    if (type == DataType::f16) return rounded<Float16>(values);
    return type == DataType::bf16 ? rounded<BFloat16>(values) : values;
}

TEST_P(OnAnEngine, ConvolvesExactly) {
    int compared = 0;
    for (const auto& device : convolutions(*engine_)) {
        const auto backend = staged(*device, *engine_);
        // F(2x2) has halves, exact; F(4x4) has sixths: with numbers up to 4 and 17 channels sums stay below 2^9 times
        // its constants' 2^7, and each of the three transforms rounds a few times 2^-24 of that.
        // Fourier transforms round spectra of up to 2^9 numbers below 2^2 a few times 2^-24.
        const double tolerance = backend->algorithm() == "winograd4" || backend->algorithm() == "fft" ? 0x1p-5 : 0;
        for (const Op& op : awkward_shapes()) {
            for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
                for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                    const std::int64_t batch = 1 + compared % 3;
                    const Problem problem{op, pass, batch, type};
                    if (!backend->supports(problem).yes) continue;
                    SCOPED_TRACE(full_name(*backend) + " " + to_string(problem));
                    Tensors expected{op, batch, reference::backend()}, actual{op, batch, reference::backend()};
                    const auto right = rounded_to(type, run(expected, pass, DataType::f32, reference::backend()));
                    const auto got = run(actual, pass, type, *backend);
                    ASSERT_EQ(got.size(), right.size());
                    const double unit = tolerance == 0 || type == DataType::f32 ? 0 : 2 * unit_roundoff(type);
                    for (std::size_t i = 0; i < right.size(); ++i) {
                        ASSERT_TRUE(std::abs(got[i] - right[i]) <= tolerance + unit * std::abs(right[i]))
                            << "at " << i << ": " << got[i] << " instead of " << right[i];
                    }
                    ++compared;
                }
            }
        }
    }
    EXPECT_GT(compared, 150);
}

// Whole vectors of channels, less than one, and of groups.
std::vector<Op> channels_last_shapes() {
    std::vector<Op> all = awkward_shapes();
    const Window lopsided{3, 3, 2, 1, 0, 1, 1, 2, 1, 1};
    Window deep = square(3, 1, 2);
    deep.kernel_d = 3, deep.stride_d = 2, deep.pad_front = 1, deep.pad_back = 0;
    all.insert(all.end(), {Conv{8, 7, 9, 16, lopsided, 1, true}, Conv{24, 5, 6, 8, square(3, 1), 1, true},
                           Conv{16, 6, 7, 32, square(3, 1), 2, true}, Conv{80, 9, 5, 72, square(1, 0), 1, true},
                           Conv{8, 9, 9, 24, square(1, 0, 2), 1, false}, Conv{72, 12, 11, 136, square(3, 1), 1, true},
                           conv3d(8, 5, 7, 6, 16, deep, 1, true)});
    return all;
}

TEST_P(OnAnEngine, ConvolvesTensorsThatAreChannelsLastExactly) {
    int compared[3] = {};
    for (const auto& device : channels_last_convolutions(*engine_)) {
        const auto there = staged(*device, *engine_);
        const auto backend = channels_first(*there);
        for (const Op& op : channels_last_shapes()) {
            for (const DataType type : {DataType::f16, DataType::bf16}) {
                for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                    const std::int64_t batch = 1 + compared[0] % 3;
                    const Problem problem{op, pass, batch, type};
                    if (!backend->supports(problem).yes) continue;
                    SCOPED_TRACE(full_name(*backend) + " " + to_string(problem));
                    Tensors expected{op, batch, reference::backend()}, actual{op, batch, reference::backend()};
                    const auto right = rounded_to(type, run(expected, pass, DataType::f32, reference::backend()));
                    ASSERT_EQ(run(actual, pass, type, *backend), right);
                    ++compared[static_cast<int>(pass)];
                }
            }
        }
    }
    for (const int passes : compared) EXPECT_GE(passes, 14);
}

TEST_P(OnAnEngine, RefusesOtherLayersThatAreChannelsLast) {
    for (const auto& device : channels_last_convolutions(*engine_)) {
        const auto reason = [&](const Op& op, Pass pass, DataType type) {
            return device->supports({op, pass, 1, type}).reason;
        };
        EXPECT_EQ(reason(ConvTranspose{8, 4, 6, 8, square(3, 1, 2), 1, true}, Pass::forward, DataType::f16),
                  "runs convolutions and products, not convtranspose");
        EXPECT_EQ(reason(Conv{8, 4, 6, 8, square(3, 1), 1, true}, Pass::forward, DataType::f32),
                  "lays 16-bit numbers only");
        EXPECT_NE(reason(Conv{3, 4, 6, 8, square(3, 1), 1, true}, Pass::backward_weights, DataType::f16), "");
    }
}

TEST_P(OnAnEngine, SaysWhatItDoesNotRun) {
    const auto all = convolutions(*engine_);
    const auto reason = [&](std::string_view algorithm, const Op& op, Pass pass) {
        for (const auto& backend : all) {
            if (backend->algorithm() == algorithm) return backend->supports({op, pass, 1, DataType::f32}).reason;
        }
        return std::string{"no such algorithm"};
    };
    const Conv five{3, 8, 8, 4, square(5, 2), 1, false};
    EXPECT_EQ(reason("winograd2", five, Pass::forward), "Winograd needs a 3 x 3 kernel, not 5 x 5");
    EXPECT_EQ(reason("gemm", Softmax{3}, Pass::forward), "runs convolutions and products, not softmax");
    EXPECT_EQ(reason("winograd2", MatMul{1, 2, 3}, Pass::forward), "Winograd runs 2-D convolutions only");
    EXPECT_EQ(reason("direct", five, Pass::backward_weights), "direct has no backward_weights: gemm splits its pixels");
}

TEST_P(OnAnEngine, FillsLargeTilesOfManyWarps) {
    // More rows and columns than one large tile, and no multiple of it; -1, 0 and 1, so that f16 holds every sum.
    const Op op = Conv{40, 13, 12, 131, square(3, 1), 1, true};
    for (const auto& device : convolutions(*engine_)) {
        const auto backend = staged(*device, *engine_);
        const bool half = backend->supports({op, Pass::forward, 1, DataType::f16}).yes;
        const DataType type = half && backend->algorithm() != "winograd4" ? DataType::f16 : DataType::f32;
        if (!backend->supports({op, Pass::forward, 1, type}).yes) continue;
        SCOPED_TRACE(full_name(*backend));
        Tensors expected{op, 1, reference::backend()}, actual{op, 1, reference::backend()};
        for (Tensors* t : {&expected, &actual}) {
            for (float& value : t->src[0]) value = static_cast<float>(static_cast<int>(value) % 2);
            for (float& value : t->weights) value = static_cast<float>(static_cast<int>(value) % 2);
        }
        const auto right = run(expected, Pass::forward, DataType::f32, reference::backend());
        const auto got = run(actual, Pass::forward, type, *backend);
        const double tolerance = backend->algorithm() == "winograd4" || backend->algorithm() == "fft" ? 0x1p-6 : 0;
        for (std::size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(got[i], right[i], tolerance) << "at " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Places, OnAnEngine, testing::ValuesIn(places), testing::PrintToStringParamName());

}  // namespace
}  // namespace rehearse::kernels::cuda
