// SPDX-License-Identifier: Apache-2.0
// Convolution by the Fourier transform, tiles of the image overlapping by the kernel's size (overlap-save): Mathieu,
// Henaff and LeCun, "Fast Training of Convolutional Networks through FFTs" (2014); Vasilache et al., "Fast
// Convolutional Nets with fbfft" (2015), from whom come the small transforms and the tiles.
#include "kernels/cpu/conv/fft.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/convolution.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/fft.cpp"  // NOLINT: Highway compiles this file once a target
#include <hwy/foreach_target.h>                        // must come before highway.h

#include "kernels/cpu/conv/fft_transforms_inl.hpp"
#include "kernels/cpu/conv/tiles_kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

// Everything the kernel calls is of this target, whichever one is chosen while it runs.
std::unique_ptr<Kernel> make_fft(const Problem& problem) {
    const TileShape tile = fft_tile(correlation(problem));
    if (tile.size == 8) return tiled_kernel(problem, fft_transforms<8>(tile));
    if (tile.size == 16) return tiled_kernel(problem, fft_transforms<16>(tile));
    return tiled_kernel(problem, fft_transforms<32>(tile));
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace rehearse::kernels::cpu {
namespace {

HWY_EXPORT(make_fft);

constexpr std::int64_t largest_tile = 32;

std::int64_t extent(std::int64_t kernel, std::int64_t dilation) { return (kernel - 1) * dilation + 1; }

// Multiply-adds of the products, and two directions of n transforms of 2.5 n log2 n operations a tile and a filter.
double operations(const Correlation& c, const TileShape& tile) {
    const double tiles = static_cast<double>(c.batch * divide_up(c.out_h, tile.out_h) * divide_up(c.out_w, tile.out_w));
    const auto in = static_cast<double>(c.in_channels), out = static_cast<double>(c.out_channels);
    const auto n = static_cast<double>(tile.size);
    const double transform = 2 * n * 2.5 * n * std::log2(n);
    return 2 * tiles * in * out * static_cast<double>(tile.points) + (tiles * (in + out) + in * out) * transform;
}

class Fft final : public Algorithm {
public:
    std::string_view algorithm() const override { return "fft"; }

private:
    std::string refusal(const Problem& problem) const override {
        if (std::string reason = refuse_all_but_conv2d(problem, algorithm()); !reason.empty()) return reason;
        const Conv* op = as_conv2d(problem.op);
        const Window& w = op->window;
        if (w.stride_h != 1 || w.stride_w != 1) {
            return fmt::format("the Fourier transform needs stride 1, not {} x {}", w.stride_h, w.stride_w);
        }
        if (op->groups != 1) return fmt::format("the Fourier transform needs one group, not {}", op->groups);
        const std::int64_t h = extent(w.kernel_h, w.dilation_h), wide = extent(w.kernel_w, w.dilation_w);
        if (h > largest_tile || wide > largest_tile) {
            return fmt::format("the kernel is {} x {} pixels, the largest tile {} x {}", h, wide, largest_tile,
                               largest_tile);
        }
        return {};
    }

    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        return HWY_DYNAMIC_DISPATCH(make_fft)(problem);
    }
};

}  // namespace

TileShape fft_tile(const Correlation& c) {
    const std::int64_t h = extent(c.kernel_h, c.dilation_h), w = extent(c.kernel_w, c.dilation_w);
    TileShape best{0, 0, 0, 0};
    for (const std::int64_t n : {8, 16, 32}) {
        const TileShape tile{n, n - h + 1, n - w + 1, 3 * n * n / 2 - 2};
        if (tile.out_h < 1 || tile.out_w < 1) continue;
        if (best.size == 0 || operations(c, tile) < operations(c, best)) best = tile;
    }
    return best;
}

std::span<const Backend* const> fft() {
    static const Fft one;
    static const std::array<const Backend*, 1> all{&one};
    return all;
}

}  // namespace rehearse::kernels::cpu

#endif
