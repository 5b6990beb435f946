// SPDX-License-Identifier: Apache-2.0
// Every operator, pass and backend in f16 and bf16 against the reference in f32. Inputs are whole numbers of at most 4,
// which both types hold exactly; where sums are exact in f32 the result must be that sum, rounded once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/convert.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/stored.hpp"

namespace rehearse::kernels {
namespace {

constexpr Window square(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1) {
    return {kernel, kernel, stride, stride, pad, pad, pad, pad, 1, 1};
}

// The same over depth.
constexpr Window cube(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1) {
    Window w = square(kernel, pad, stride);
    w.kernel_d = kernel;
    w.stride_d = stride;
    w.pad_front = w.pad_back = pad;
    return w;
}

struct Case {
    Op op;
    // Of what is not exact in f32: the error of f32 arithmetic, relative to the largest value of the tensor. 2^-18 is
    // 64 of its roundings.
    double f32_error = 0;
};

std::vector<Case> exact_cases() {
    return {{Conv{1, 1, 1, 1, {}, 1, true}},
            {Conv{17, 6, 5, 13, {}, 1, true}},
            {Conv{3, 9, 11, 16, square(3, 1), 1, false}},
            {Conv{16, 9, 7, 32, square(3, 1, 2), 1, false}},
            {Conv{5, 7, 9, 19, {3, 3, 2, 1, 0, 1, 1, 2, 1, 1}, 1, true}},
            {Conv{4, 11, 10, 6, {5, 3, 3, 3, 4, 2, 4, 2, 1, 1}, 1, true}},  // padding above half of the filter
            {Conv{8, 7, 7, 12, {3, 3, 1, 1, 2, 2, 2, 2, 2, 2}, 2, true}},
            {Conv{16, 7, 9, 16, square(3, 1), 16, false}},
            {Conv{6, 8, 8, 12, square(3, 1, 2), 6, true}},
            {conv3d(3, 5, 6, 7, 18, cube(3, 1), 1, true)},
            {conv3d(18, 4, 5, 5, 6, cube(3, 2, 3), 2, false)},
            {ConvTranspose{5, 4, 6, 7, square(3, 1), 1, true}},
            {ConvTranspose{4, 3, 5, 6, square(2, 0, 2), 2, false}},
            {MatMul{1, 1, 1, true}},
            {MatMul{3, 5, 7, true}},
            {MatMul{17, 33, 64, false}},
            {Pool{PoolKind::max, 19, 7, 8, square(3, 1, 2)}},
            {Pool{PoolKind::average, 3, 8, 8, square(8, 0)}},
            {Activation{Nonlinearity::relu, {37}}},
            {Add{{3, 5, 7}, 3}},
            {Concat{{16, 3, 8}, 5, 7}},
            {ChannelPad{16, 4, 4, 8, 8}},
            {Dropout{{3, 5, 7}, 0.5}},
            {Flatten{{3, 5}}}};
}

std::vector<Case> rounded_cases() {
    const double some = 0x1p-18;
    return {{Pool{PoolKind::average, 19, 7, 8, square(3, 1, 2), true}, some},
            {BatchNorm{5, 3, 5}, some},
            {Lrn{16, 4, 5, 5, 1.0, 0.75, 1.0}, some},
            {Activation{Nonlinearity::sigmoid, {37}}, some},
            {Activation{Nonlinearity::tanh, {37}}, some},
            {Activation{Nonlinearity::gelu, {37}}, some},
            {Softmax{10}, some},
            {SoftmaxLoss{10}, some}};
}

double largest(const std::vector<float>& values) {
    double most = 0;
    for (const float value : values) most = std::max(most, std::abs(static_cast<double>(value)));
    return most;
}

// `actual` is a number near `expected`, rounded to Half: it lies between what the two ends are rounded to.
template <typename Half>
void expect_rounded(const std::vector<float>& actual, const std::vector<float>& expected, double error,
                    const char* what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    const auto slack = static_cast<float>(error * largest(expected));
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const auto low = static_cast<float>(Half(expected[i] - slack));
        const auto high = static_cast<float>(Half(expected[i] + slack));
        ASSERT_TRUE(low <= actual[i] && actual[i] <= high)
            << what << " at " << i << ": " << actual[i] << " instead of " << expected[i] << " rounded";
    }
}

// Winograd's and Fourier's sums are of other numbers: within 2^-14 of the largest (f32, docs/kernels.md).
double error_of(const Case& c, const Backend& backend) {
    const bool transforms = backend.algorithm().starts_with("winograd") || backend.algorithm() == "fft";
    return transforms ? 0x1p-14 : c.f32_error;
}

template <typename Half>
void expect_same(const Case& c, std::int64_t batch, const Backend& backend) {
    SCOPED_TRACE(to_string(Problem{c.op, Pass::forward, batch, data_type<Half>()}) + " " + full_name(backend));
    Tensors actual{c.op, batch, backend};
    Tensors expected{c.op, batch, reference::backend()};
    const double error = error_of(c, backend);
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        if (pass != Pass::forward && !has_pass(c.op, pass)) continue;
        run_stored<Half>(actual, backend, pass);
        expected.run(reference::backend(), pass);
        if (pass == Pass::forward) {
            expect_rounded<Half>(actual.dst, expected.dst, error, "dst");
            expected.dst = actual.dst;  // which a backward pass may read
        }
        for (std::size_t i = 0; pass == Pass::backward_data && i < actual.src.size(); ++i) {
            expect_rounded<Half>(actual.diff_src[i], expected.diff_src[i], error, "diff_src");
        }
        const bool both = std::holds_alternative<BatchNorm>(c.op) && pass == Pass::backward_data;
        if (pass == Pass::backward_weights || both) {
            expect_rounded<Half>(actual.diff_weights, expected.diff_weights, error, "diff_weights");
        }
        if (testing::Test::HasFatalFailure()) return;
    }
}

template <typename Half>
class Types : public testing::Test {};
using Halves = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Types, Halves, );

TYPED_TEST(Types, AreRoundedOnceByEveryBackend) {
    std::vector<Case> cases = exact_cases();
    std::ranges::copy(rounded_cases(), std::back_inserter(cases));
    for (const Case& c : cases) {
        for (const Backend* backend : backends()) {
            if (!backend->supports({c.op, Pass::forward, 1, data_type<TypeParam>()}).yes) continue;
            for (const std::int64_t batch : {1, 3}) expect_same<TypeParam>(c, batch, *backend);
        }
    }
}

TYPED_TEST(Types, OfAnUpdateMayBeMixed) {
    // f32 weights, momentum 0, gradients and the copy in 16 bits: w = w - 0.5 g. Thirds are rounded in the copy only.
    const DataType type = data_type<TypeParam>();
    for (const Backend* backend : backends()) {
        if (!backend->supports({SgdUpdate{5}, Pass::update, 1, DataType::f32}).yes) continue;
        std::vector<float> weights{1.0F / 3, 2.0F / 3, 3, -4, 5e-4F};
        std::vector<float> momentum(5);
        const std::vector<float> gradients{1, -2, 0.25F, 8, 0};
        std::vector<TypeParam> given;
        for (const float gradient : gradients) given.push_back(TypeParam(gradient));
        std::vector<TypeParam> copy(5);
        std::vector<float> expected;
        for (std::size_t i = 0; i < 5; ++i) expected.push_back(weights[i] - 0.5F * gradients[i]);
        Buffers b;
        b.weights = weights;
        b.momentum = momentum;
        b.diff_weights = given;
        b.weights_copy = copy;
        b.learning_rate = 0.5F;
        backend->prepare({SgdUpdate{5}, Pass::update, 1, DataType::f32})->run(b);
        EXPECT_EQ(weights, expected) << full_name(*backend) << " " << to_string(type);
        EXPECT_EQ(momentum, gradients);
        for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(copy[i].bits, TypeParam(expected[i]).bits);
    }
}

TYPED_TEST(Types, OfAnUpdateMayBeAllTheSame) {
    Tensors t{SgdUpdate{3}, 1, reference::backend()};
    t.weights = {1, 2, 3};
    t.diff_weights = {4, -8, 0.5F};
    StoredRun<TypeParam> stored(t);
    stored.buffers.learning_rate = 0.25F;
    stored.run(*reference::backend().prepare({t.op, Pass::update, 1, data_type<TypeParam>()}));
    EXPECT_EQ(t.weights, (std::vector<float>{0, 4, 2.875F}));
    EXPECT_EQ(t.momentum, (std::vector<float>{4, -8, 0.5F}));
}

// core/half.hpp, which tests/core/half_test.cpp holds to the definition, is the oracle of the conversions by vectors.
TYPED_TEST(Types, ConvertByVectorsAsOneByOne) {
    std::vector<TypeParam> all;
    for (unsigned bits = 0; bits < 65536; ++bits) all.push_back(TypeParam::of_bits(static_cast<std::uint16_t>(bits)));
    std::vector<float> wide(all.size());
    convert(ConstView(all), View(wide));
    for (unsigned bits = 0; bits < 65536; ++bits) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[bits]),
                  std::bit_cast<std::uint32_t>(static_cast<float>(all[bits])));
    }
    // Floats of every exponent and sign whose lowest bits lie at, just below and just above the middle.
    std::vector<float> values;
    for (std::uint32_t high = 0; high < 65536; ++high) {
        for (const std::uint32_t low : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
            values.push_back(std::bit_cast<float>(high << 16 | low));
        }
        for (const std::uint32_t low : {0xFFFU, 0x1000U, 0x1001U, 0x3000U}) {
            values.push_back(std::bit_cast<float>(high << 16 | low));
        }
    }
    std::vector<TypeParam> halves(values.size());
    convert(ConstView(values), View(halves));
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(halves[i].bits, TypeParam(values[i]).bits) << values[i];
    for (std::int64_t count = 0; count < 20; ++count) {
        std::vector<TypeParam> some(21, TypeParam(7));
        convert(values.data() + 1000, some.data(), count);
        EXPECT_EQ(some[count].bits, TypeParam(7).bits) << "nothing beyond the end is written";
    }
}

}  // namespace
}  // namespace rehearse::kernels
