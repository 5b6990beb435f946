// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/half/half_image.hpp"

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"

namespace rehearse::kernels::cpu {
namespace {

// `count` pixels, `step` apart, of one or two rows.
void copy_pixels(const HalfSimd& simd, HalfChannels row, std::int64_t count, std::int64_t step, std::uint16_t* out) {
    if (simd.pair == 1 && step == 1) {
        std::copy_n(row.first, count, out);
    } else if (simd.pair == 2 && step == 1 && row.second != nullptr) {
        simd.zip(row.first, row.second, count, out);
    } else if (simd.pair == 1) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = row.first[i * step];
    } else {
        for (std::int64_t i = 0; i < count; ++i) {
            out[2 * i] = row.first[i * step];
            out[2 * i + 1] = row.second == nullptr ? std::uint16_t{0} : row.second[i * step];
        }
    }
}

}  // namespace

void pack_half_image(const HalfSimd& simd, const PackedImage& image, HalfChannels channels, std::uint16_t* out) {
    for (const Lattice& at : image.phases) {
        // Columns [begin, end) lie inside.
        const std::int64_t begin =
            std::clamp<std::int64_t>(at.first_x < 0 ? divide_up(-at.first_x, at.step_x) : 0, 0, image.columns);
        const std::int64_t inside = at.first_x < image.width ? divide_up(image.width - at.first_x, at.step_x) : 0;
        const std::int64_t end = std::clamp(inside, begin, image.columns);
        for (std::int64_t i = 0; i < image.rows; ++i, out += image.columns * simd.pair) {
            const std::int64_t y = at.first_y + i * at.step_y;
            if (y < 0 || y >= image.height || begin == end) {
                std::fill_n(out, image.columns * simd.pair, 0);
                continue;
            }
            const std::int64_t from = y * image.width + at.first_x + begin * at.step_x;
            std::fill_n(out, begin * simd.pair, 0);
            copy_pixels(simd, {channels.first + from, channels.second == nullptr ? nullptr : channels.second + from},
                        end - begin, at.step_x, out + begin * simd.pair);
            std::fill(out + end * simd.pair, out + image.columns * simd.pair, 0);
        }
    }
}

}  // namespace rehearse::kernels::cpu
