// SPDX-License-Identifier: Apache-2.0
// Winograd's convolutions against the reference. F(2 x 2)'s matrices hold halves and whole numbers, so that whole
// numbers stay exact; the others are held to the bound that follows from their matrices.
#include <gmock/gmock.h>

#include <algorithm>

#include "kernels/cpu/conv/winograd_matrices.hpp"
#include "tests/kernels/cpu_convolutions.hpp"

namespace rehearse::kernels {
namespace {

using testing::HasSubstr;

class Winograd : public OnEachTarget {};
INSTANTIATE_TEST_SUITE_P(, Winograd, testing::Combine(testing::ValuesIn(simd_targets()), testing::Values(1, 3)),
                         target_name);

constexpr Window padded(std::int64_t top, std::int64_t left, std::int64_t bottom, std::int64_t right) {
    return {3, 3, 1, 1, top, left, bottom, right, 1, 1};
}

// One pixel, one output pixel, images smaller than a tile, odd sizes, prime channels, channels over one panel, padding
// of more than half the filter and more than the whole of it, lopsided padding, more filters than tiles, more channels
// and more tiles than are taken at once.
const std::vector<Conv> shapes{
    {1, 1, 1, 1, padded(1, 1, 1, 1), 1, true},      {1, 3, 3, 1, padded(0, 0, 0, 0), 1, false},
    {3, 5, 7, 2, padded(1, 1, 1, 1), 1, true},      {5, 8, 8, 7, padded(2, 2, 2, 2), 1, true},
    {2, 4, 3, 3, padded(4, 3, 3, 5), 1, false},     {17, 9, 11, 19, padded(0, 1, 2, 1), 1, true},
    {16, 13, 14, 32, padded(1, 1, 1, 1), 1, false}, {3, 6, 61, 37, padded(1, 1, 1, 1), 1, true},
    {33, 6, 6, 67, padded(1, 1, 1, 1), 1, true}};

TEST_P(Winograd, OfTwoByTwoPixelsIsExact) {
    // The largest numbers on the way, in quarters: src 4 * 4 times filters 4 * 9/4, at most 131 channels, 9 of them in
    // an output: 16 * 9 * 131 * 9 * 4 = 679 104. Filters' gradients: 16 * 16 from each of at most 3 * 25 * 24 tiles, 4
    // of them in a tap: 256 * 1800 * 4 * 4 = 7 372 800. Both are below 2^24.
    for (const Conv& op : shapes) {
        for (const std::int64_t batch : {1, 3}) {
            SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, DataType::f32}));
            const Largest difference = differences(op, batch, cpu_algorithm("winograd2"));
            EXPECT_EQ(difference.dst, 0);
            EXPECT_EQ(difference.diff_src, 0);
            EXPECT_EQ(difference.diff_weights, 0);
        }
    }
}

template <std::size_t columns>
double row_sum(const std::array<float, columns>& row) {
    double sum = 0;
    for (const float value : row) sum += std::abs(value);
    return sum;
}

// The largest result of one dimension when every product of |matrix^T| |x| |y| has the same sign and inputs are 1: how
// much larger the numbers on the way can be than the operands.
template <std::size_t columns, typename X, typename Y>
double growth(const cpu::Matrix<X{}.size(), columns>& last, const X& x, const Y& y) {
    double largest = 0;
    for (std::size_t i = 0; i < columns; ++i) {
        double sum = 0;
        for (std::size_t p = 0; p < last.size(); ++p) sum += std::abs(last[p][i]) * row_sum(x[p]) * row_sum(y[p]);
        largest = std::max(largest, sum);
    }
    return largest;
}

// A sum of n terms is off by at most n 2^-24 of the sum of their sizes (Higham 2002, section 3.1). Here the terms, of
// size at most 4 * 4, are `summed` ones a point, plus the coefficients (one rounding each) and sums of four matrices
// (at most 9 roundings each) a dimension; two dimensions square the growth.
double bound(double growth_1d, std::int64_t summed) {
    return growth_1d * growth_1d * 16 * static_cast<double>(summed) * static_cast<double>(summed + 40) * 0x1p-24;
}

template <typename Matrices>
void expect_within_bound(const Conv& op, std::int64_t batch, const Backend& backend) {
    SCOPED_TRACE(std::string{backend.algorithm()} + to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    const std::int64_t out = static_cast<std::int64_t>(Matrices::a[0].size());
    const Shape dst = output_shape(op);
    const std::int64_t tiles = batch * ((dst[1] + out - 1) / out) * ((dst[2] + out - 1) / out);
    const Largest difference = differences(op, batch, backend);
    const double forward = growth(Matrices::a, Matrices::b, Matrices::g);
    EXPECT_LE(difference.dst, bound(forward, op.channels));
    EXPECT_LE(difference.diff_src, bound(forward, op.filters));
    EXPECT_LE(difference.diff_weights, bound(growth(Matrices::g, Matrices::b, Matrices::a), tiles));
}

TEST_P(Winograd, OfMorePixelsKeepsToTheBoundOfItsMatrices) {
    for (const Conv& op : shapes) {
        for (const std::int64_t batch : {1, 3}) {
            expect_within_bound<cpu::Winograd4>(op, batch, cpu_algorithm("winograd4"));
            expect_within_bound<cpu::Winograd6>(op, batch, cpu_algorithm("winograd6"));
        }
    }
}

TEST_P(Winograd, IsOffByNoMoreThanTwiceWhatWasMeasured) {
    // 64 channels of 14 x 14 pixels, whole numbers up to 4; results are up to 611. Measured with and without fused
    // multiply-adds: F(4 x 4) at most 0.0030, F(6 x 6) at most 0.0059 in an image, 0.00031 and 0.00067 in the filters'
    // gradients of up to 348. Twice that is left to another order of the sums.
    const Conv op{64, 14, 14, 64, padded(1, 1, 1, 1), 1, false};
    for (const auto& [name, image, filters] :
         {std::tuple{"winograd4", 0.0060, 0.0007}, std::tuple{"winograd6", 0.012, 0.0014}}) {
        const Largest difference = differences(op, 1, cpu_algorithm(name));
        EXPECT_LE(difference.dst, image);
        EXPECT_LE(difference.diff_src, image);
        EXPECT_LE(difference.diff_weights, filters);
    }
}

TEST(WinogradBackend, RefusesWithAReason) {
    const auto reason = [](const Op& op) {
        return cpu_algorithm("winograd4").supports({op, Pass::forward, 1, DataType::f32}).reason;
    };
    Conv op = shapes[3];
    op.window.kernel_w = 5;
    EXPECT_THAT(reason(op), HasSubstr("3 x 3 kernel, not 3 x 5"));
    op = shapes[3];
    op.window.stride_h = 2;
    EXPECT_THAT(reason(op), HasSubstr("stride 1, not 2 x 1"));
    op = shapes[3];
    op.window.dilation_w = 2;
    EXPECT_THAT(reason(op), HasSubstr("dilation 1, not 1 x 2"));
    op = {4, 8, 8, 4, padded(1, 1, 1, 1), 2, false};
    EXPECT_THAT(reason(op), HasSubstr("one group, not 2"));
    EXPECT_THAT(reason(Softmax{3}), HasSubstr("winograd4 runs conv2d, not softmax"));
}

}  // namespace
}  // namespace rehearse::kernels
