// SPDX-License-Identifier: Apache-2.0
// The steps that every pass is made of: image to points, points to image, for one vector of channels at a time.
#if defined(REHEARSE_CPU_TILES_STAGES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_TILES_STAGES_INL
#undef REHEARSE_CPU_TILES_STAGES_INL
#else
#define REHEARSE_CPU_TILES_STAGES_INL
#endif

#include "kernels/cpu/conv/tiles.hpp"
#include "kernels/cpu/conv/tiles_multiply_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

/// How h x w vectors lie in memory, in floats, and how far apart they are in the tile.
struct Grid {
    std::int64_t row = 0, col = lanes;
    std::int64_t h = 0, w = 0, dilation_h = 1, dilation_w = 1;
};

/// Points of a tile lie `stride` floats apart, each a vector of channels.
using ToPoints = void (*)(const float* from, const Grid& grid, float* points, std::int64_t stride);
using FromPoints = void (*)(const float* points, std::int64_t stride, float* to, const Grid& grid);

struct Transforms {
    TileShape tile;
    ToPoints input = nullptr, filter = nullptr;
    FromPoints output = nullptr;
    ToPoints diff_output = nullptr;  // output turned round: what the gradient of the filters reads
    FromPoints diff_filter = nullptr;
};

/// Where points are kept: number p of row i at data + p * point + i * row.
struct Points {
    float* data = nullptr;
    std::int64_t point = 0, row = 0;
    float* at(std::int64_t i, std::int64_t column) const { return data + i * row + column; }
};

// An odd number of cache lines: powers of two would all fall into one set of a cache.
inline std::int64_t point_stride(std::int64_t floats) {
    constexpr std::int64_t line = 16;
    return (floats + line - 1) / line / 2 * 2 * line + line;
}

class Stages {
public:
    /// `relu`: of the output; where gradients are transformed, they are masked by the sign of that.
    Stages(const Correlation& c, const Transforms& t, std::int64_t block_tiles, bool relu)
        : c_(c), t_(t), relu_(relu), tiling_(tiling(c, t.tile, block_tiles)) {}

    const Correlation& c() const { return c_; }
    const Transforms& t() const { return t_; }
    const Tiling& tiles() const { return tiling_; }
    std::int64_t taps() const { return c_.kernel_h * c_.kernel_w; }
    std::int64_t in_vectors() const { return (c_.in_channels + lanes - 1) / lanes; }
    std::int64_t out_vectors() const { return (c_.out_channels + lanes - 1) / lanes; }
    std::int64_t panels() const { return (c_.out_channels + panel - 1) / panel; }
    std::int64_t panel_vectors(std::int64_t p) const { return std::min<std::int64_t>(2, out_vectors() - 2 * p); }
    /// Filters that are transposed at once, and the floats that either that or a strip takes.
    std::int64_t filters_at_once() const { return std::max<std::int64_t>(1, 256 / taps()); }
    std::int64_t band_floats() const {
        return lanes * std::max((relu_ ? 2 : 1) * tiling_.band_rows * tiling_.band_cols, filters_at_once() * taps());
    }

    /// A strip of the input, channels from vector `v` on; 0 where `sign`, unless null, is not positive.
    void input(const float* src, const float* sign, const Strip& s, std::int64_t v, float* band,
               const Points& to) const {
        const TileShape& tile = t_.tile;
        const Rectangle r{s.tile_y * tile.out_h - c_.pad_top, s.tile_x * tile.out_w - c_.pad_left,
                          s.rows * tile.out_h + tile.size - tile.out_h, s.cols * tile.out_w + tile.size - tile.out_w};
        const std::int64_t first = v * lanes;
        const std::int64_t plane = (s.sample * c_.in_channels + first) * c_.in_h * c_.in_w;
        const std::int64_t channels = std::min(lanes, c_.in_channels - first);
        load(src, sign, plane, channels, c_.in_h, c_.in_w, r, band);
        const Grid grid{.row = r.cols * lanes, .h = tile.size, .w = tile.size};
        for_each_tile(s, [&](std::int64_t y, std::int64_t x, std::int64_t i) {
            t_.input(band + (y * r.cols + x) * lanes, grid, to.at(i, first), to.point);
        });
    }

    /// A strip of the gradient of the output, to panel points; 0 where `sign`, unless null, is not positive.
    void diff_output(const float* diff_dst, const float* sign, const Strip& s, std::int64_t v, float* band,
                     const Points& to) const {
        const Rectangle r = output_rectangle(s);
        const std::int64_t first = v * lanes;
        const std::int64_t plane = (s.sample * c_.out_channels + first) * c_.out_h * c_.out_w;
        const std::int64_t filters = std::min(lanes, c_.out_channels - first);
        load(diff_dst, sign, plane, filters, c_.out_h, c_.out_w, r, band);
        const Grid grid{.row = r.cols * lanes, .h = t_.tile.out_h, .w = t_.tile.out_w};
        for_each_tile(s, [&](std::int64_t y, std::int64_t x, std::int64_t i) {
            t_.diff_output(band + (y * r.cols + x) * lanes, grid, to.at(i, v % 2 * lanes), to.point);
        });
    }

    /// A strip of the output, filters from vector `v` on.
    void output(const Points& from, const Strip& s, std::int64_t v, const float* bias, bool relu, float* band,
                float* dst) const {
        const Rectangle r = output_rectangle(s);
        const Grid grid{.row = r.cols * lanes, .h = t_.tile.out_h, .w = t_.tile.out_w};
        for_each_tile(s, [&](std::int64_t y, std::int64_t x, std::int64_t i) {
            t_.output(from.at(i, v % 2 * lanes), from.point, band + (y * r.cols + x) * lanes, grid);
        });
        const std::int64_t first = v * lanes, filters = std::min(lanes, c_.out_channels - first);
        HWY_ALIGN float add[lanes] = {};
        if (bias != nullptr) std::copy_n(bias + first, filters, add);
        store_band(band, {hn::Load(Floats(), add), relu}, r, filters, c_.out_h, c_.out_w,
                   dst + (s.sample * c_.out_channels + first) * c_.out_h * c_.out_w);
    }

    /// Filters {out, in, taps}: output vector `v`, `count` input channels from `first` on.
    void filters(const float* weights, std::int64_t v, std::int64_t first, std::int64_t count, float* scratch,
                 const Points& to) const {
        const std::int64_t out = v * lanes, stride = c_.in_channels * taps();
        const std::int64_t valid = std::min(lanes, c_.out_channels - out);
        for (std::int64_t i = 0; i < count; i += filters_at_once()) {
            const std::int64_t now = std::min(filters_at_once(), count - i);
            gather_pixels(weights + out * stride + (first + i) * taps(), stride, valid, now * taps(), scratch);
            for (std::int64_t j = 0; j < now; ++j) {
                t_.filter(scratch + j * taps() * lanes, filter_grid(), to.at(i + j, v % 2 * lanes), to.point);
            }
        }
    }

    /// The filters of backward_data, {in, out, taps}, turned by 180 degrees.
    void turned_filters(const float* weights, std::int64_t v, std::int64_t first, std::int64_t count, float* scratch,
                        const Points& to) const {
        const std::int64_t out = v * lanes, valid = std::min(lanes, c_.out_channels - out);
        Grid grid = filter_grid();
        grid.row = -grid.row;
        grid.col = -grid.col;
        for (std::int64_t i = 0; i < count; ++i) {
            gather_pixels(weights + ((first + i) * c_.out_channels + out) * taps(), taps(), valid, taps(), scratch);
            t_.filter(scratch + (taps() - 1) * lanes, grid, to.at(i, v % 2 * lanes), to.point);
        }
    }

    /// The gradients of the filters of output vector `v`.
    void diff_filters(const Points& from, std::int64_t v, float* scratch, float* diff_weights) const {
        const std::int64_t out = v * lanes, stride = c_.in_channels * taps();
        const std::int64_t valid = std::min(lanes, c_.out_channels - out);
        for (std::int64_t i = 0; i < c_.in_channels; i += filters_at_once()) {
            const std::int64_t now = std::min(filters_at_once(), c_.in_channels - i);
            for (std::int64_t j = 0; j < now; ++j) {
                t_.diff_filter(from.at(i + j, v % 2 * lanes), from.point, scratch + j * taps() * lanes, filter_grid());
            }
            scatter_pixels(scratch, {hn::Zero(Floats()), false}, now * taps(), valid,
                           diff_weights + out * stride + i * taps(), stride);
        }
    }

private:
    Rectangle output_rectangle(const Strip& s) const {
        const TileShape& tile = t_.tile;
        return {s.tile_y * tile.out_h, s.tile_x * tile.out_w, s.rows * tile.out_h, s.cols * tile.out_w};
    }

    Grid filter_grid() const {
        return {.row = c_.kernel_w * lanes,
                .h = c_.kernel_h,
                .w = c_.kernel_w,
                .dilation_h = c_.dilation_h,
                .dilation_w = c_.dilation_w};
    }

    // visit(top, left of its output in the strip, number of the tile)
    template <typename Visit>
    void for_each_tile(const Strip& s, Visit visit) const {
        for (std::int64_t y = 0; y < s.rows; ++y) {
            for (std::int64_t x = 0; x < s.cols; ++x) {
                visit(y * t_.tile.out_h, x * t_.tile.out_w, s.first + y * s.cols + x);
            }
        }
    }

    void load(const float* from, const float* sign, std::int64_t plane, std::int64_t channels, std::int64_t height,
              std::int64_t width, const Rectangle& r, float* band) const {
        if (sign == nullptr) return load_band(from + plane, channels, height, width, r, band);
        float* const room = band + lanes * tiling_.band_rows * tiling_.band_cols;
        load_masked_band(from + plane, sign + plane, channels, height, width, r, room, band);
    }

    Correlation c_;
    Transforms t_;
    bool relu_;
    Tiling tiling_;
};

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
