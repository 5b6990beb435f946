// SPDX-License-Identifier: Apache-2.0
// Convolution by the Fourier transform against the reference: kernels from 1 x 1 to the largest tile, on every SIMD
// target.
#include <gmock/gmock.h>

#include <algorithm>

#include "kernels/cpu/conv/fft.hpp"
#include "tests/kernels/cpu_convolutions.hpp"

namespace rehearse::kernels {
namespace {

using testing::HasSubstr;

class Fft : public OnEachTarget {};
INSTANTIATE_TEST_SUITE_P(, Fft, testing::Combine(testing::ValuesIn(simd_targets()), testing::Values(1, 3)),
                         target_name);

constexpr Window square(std::int64_t kernel, std::int64_t pad, std::int64_t dilation = 1) {
    return {kernel, kernel, 1, 1, pad, pad, pad, pad, dilation, dilation};
}

// One pixel, even and flat kernels, images smaller than a tile, odd sizes, prime channels, padding of more than half
// the kernel and more than the whole of it, dilation, a kernel as large as the tile.
const std::vector<Conv> shapes{{1, 1, 1, 1, square(1, 0), 1, true},
                               {3, 9, 7, 5, square(3, 1), 1, true},
                               {17, 13, 12, 19, square(5, 2), 1, false},
                               {2, 20, 31, 3, square(4, 3), 1, true},
                               {16, 6, 5, 33, square(3, 4), 1, true},
                               {5, 11, 40, 7, {1, 7, 1, 1, 0, 3, 0, 3, 1, 1}, 1, false},
                               {3, 25, 24, 2, {9, 2, 1, 1, 3, 0, 5, 2, 1, 3}, 1, true},
                               {7, 14, 15, 16, square(3, 4, 4), 1, false},
                               {2, 35, 33, 4, square(11, 5), 1, true},
                               {1, 34, 40, 2, square(32, 3), 1, true},
                               {33, 6, 6, 67, square(7, 3), 1, true}};

// The Fourier transform of N = n^2 numbers in f32 is off, root mean square, by at most a few 2^-24 log2 N of its root
// mean square (Higham 2002, section 24.1: errors add up in L2, not entry by entry, since the transform is unitary).
// So the whole result of one tile, of size |x|_2 |y|_2 summed over channels, is off by at most
//   2^-24 (3 transforms * 5 log2 N + 8 of Gauss's product + the channels' sum) |x|_2 |y|_2,
// where |x|_2 <= 4 n over a tile of n^2 pixels and |y|_2 <= 4 sqrt(taps), and an entry by no more than all of them.
double bound(std::int64_t n, std::int64_t image_pixels, std::int64_t filter_pixels, std::int64_t summed) {
    const double roundings = 15 * 2 * std::log2(static_cast<double>(n)) + 8 + static_cast<double>(summed);
    const double pixels = static_cast<double>(std::min(n * n, image_pixels)) * static_cast<double>(filter_pixels);
    return 0x1p-24 * roundings * 16 * std::sqrt(pixels) * static_cast<double>(summed);
}

TEST_P(Fft, KeepsToTheBoundOfTheTransform) {
    for (const Conv& op : shapes) {
        for (const std::int64_t batch : {1, 3}) {
            SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, DataType::f32}));
            const Largest difference = differences(op, batch, cpu_algorithm("fft"));
            const auto tile = [&](Pass pass) {
                return cpu::fft_tile(cpu::correlation({op, pass, batch, DataType::f32}));
            };
            const Shape out = output_shape(op);
            const std::int64_t taps = op.window.kernel_h * op.window.kernel_w;
            const cpu::TileShape forward = tile(Pass::forward), back = tile(Pass::backward_data);
            EXPECT_LE(difference.dst, bound(forward.size, op.height * op.width, taps, op.channels));
            EXPECT_LE(difference.diff_src, bound(back.size, out[1] * out[2], taps, op.filters));
            const cpu::TileShape w = tile(Pass::backward_weights);
            const std::int64_t tiles = batch * ((out[1] + w.out_h - 1) / w.out_h) * ((out[2] + w.out_w - 1) / w.out_w);
            EXPECT_LE(difference.diff_weights, bound(w.size, op.height * op.width, w.out_h * w.out_w, tiles));
        }
    }
}

TEST(FftTile, GrowsWithTheKernel) {
    const auto size = [](std::int64_t kernel) {
        const Conv op{64, 56, 56, 64, square(kernel, kernel / 2), 1, false};
        return cpu::fft_tile(cpu::correlation({op, Pass::forward, 8, DataType::f32})).size;
    };
    EXPECT_LE(size(3), 16);
    EXPECT_EQ(size(17), 32);
    EXPECT_LE(size(3), size(7));
    EXPECT_LE(size(7), size(15));
}

TEST(FftBackend, RefusesWithAReason) {
    const auto reason = [](const Op& op) {
        return cpu_algorithm("fft").supports({op, Pass::forward, 1, DataType::f32}).reason;
    };
    EXPECT_THAT(reason(Conv{4, 40, 40, 4, square(33, 0), 1, false}), HasSubstr("33 x 33 pixels, the largest tile"));
    EXPECT_THAT(reason(Conv{4, 40, 40, 4, square(3, 0, 16), 1, false}), HasSubstr("33 x 33 pixels"));
    EXPECT_THAT(reason(Conv{4, 8, 8, 4, square(3, 1), 2, false}), HasSubstr("one group, not 2"));
    Conv op{4, 8, 8, 4, square(3, 1), 1, false};
    op.window.stride_w = 3;
    EXPECT_THAT(reason(op), HasSubstr("stride 1, not 1 x 3"));
    EXPECT_THAT(reason(MatMul{1, 2, 3}), HasSubstr("fft runs conv2d, not matmul"));
}

}  // namespace
}  // namespace rehearse::kernels
