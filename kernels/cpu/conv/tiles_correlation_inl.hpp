// SPDX-License-Identifier: Apache-2.0
// forward and backward_data as loops over the stages.
#if defined(REHEARSE_CPU_TILES_CORRELATION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_TILES_CORRELATION_INL
#undef REHEARSE_CPU_TILES_CORRELATION_INL
#else
#define REHEARSE_CPU_TILES_CORRELATION_INL
#endif

#include <omp.h>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/tiles_stages_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

/// forward, and backward_data, which is forward of diff_dst with other filters.
class TiledCorrelation final : public CheckedKernel {
public:
    TiledCorrelation(const Problem& problem, const Transforms& t)
        : CheckedKernel(problem),
          pass_(problem.pass),
          bias_(problem.pass == Pass::forward && std::get<Conv>(problem.op).bias),
          relu_(std::get<Conv>(problem.op).relu),
          s_(correlation(problem), t, block_tiles(correlation(problem), t.tile), relu_),
          threads_(threads()),
          filters_first_(s_.tiles().blocks.size() > 1),
          depth_(filters_first_ ? s_.c().in_channels : std::min(s_.c().in_channels, depth_at_once)),
          in_point_(point_stride(s_.tiles().largest_block * s_.in_vectors() * lanes)),
          filter_point_(point_stride(depth_ * panel)),
          out_point_(point_stride(s_.tiles().largest_block * panel)),
          ins_((filters_first_ ? threads_ : 1) * points() * in_point_),
          filters_((filters_first_ ? s_.panels() : threads_) * points() * filter_point_),
          outs_(threads_ * points() * out_point_) {
        reserve(ins_ + filters_ + outs_ + threads_ * s_.band_floats());
    }

private:
    static constexpr std::int64_t depth_at_once = 128;

    // Where the points of all tiles are fewer than those of the filters, the tiles are the ones to keep, and filters
    // are transformed as they are needed: the deep layers, where filters would be written to memory and read again.
    static std::int64_t block_tiles(const Correlation& c, const TileShape& tile) {
        const std::int64_t all = tiling(c, tile, 1).tiles;
        if (all * 2 <= c.out_channels && all * c.in_channels * tile.points <= largest_in) return all;
        constexpr std::int64_t least = 4 * most_rows, most = 8 * most_rows;
        return std::clamp(cache_floats / (tile.points * (c.in_channels + panel)), least, most);
    }
    static constexpr std::int64_t cache_floats = 1 << 18;  // 1 MiB, a second-level cache
    static constexpr std::int64_t largest_in = 1 << 23;

    std::int64_t points() const { return s_.t().tile.points; }

    void compute(const Buffers& b, float* scratch) override {
        scratch_ = scratch;
        const bool forward = pass_ == Pass::forward;
        sign_ = !forward && relu_ ? b.dst_in.data() : nullptr;
        const float* const src = forward ? b.src[0].data() : b.diff_dst.data();
        float* const dst = forward ? b.dst.data() : b.diff_src[0].data();
        if (filters_first_) {
            filters_first(src, b.weights.data(), dst);
        } else {
            tiles_first(src, b.weights.data(), dst);
        }
    }

    void filters_first(const float* src, const float* weights, float* dst) {
        const auto blocks = static_cast<std::int64_t>(s_.tiles().blocks.size());
#pragma omp parallel num_threads(threads_)
        {
            const std::int64_t thread = omp_get_thread_num();
#pragma omp for
            for (std::int64_t v = 0; v < s_.out_vectors(); ++v) {
                transform_filters(weights, v, 0, depth_, filters_at(v / 2), band(thread));
            }
#pragma omp for schedule(dynamic)
            for (std::int64_t i = 0; i < blocks; ++i) {
                const Block& block = s_.tiles().blocks[i];
                for (std::int64_t strip = block.first_strip; strip < block.last_strip; ++strip) {
                    for (std::int64_t v = 0; v < s_.in_vectors(); ++v) transform_input(src, block, strip, v, thread);
                }
                for (std::int64_t p = 0; p < s_.panels(); ++p) {
                    multiply_points(block, p, 0, depth_, filters_at(p), thread);
                    transform_output(block, p, weights, dst, thread);
                }
            }
        }
    }

    void tiles_first(const float* src, const float* weights, float* dst) {
        const Block& block = s_.tiles().blocks.front();
#pragma omp parallel num_threads(threads_)
        {
            const std::int64_t thread = omp_get_thread_num();
#pragma omp for collapse(2)
            for (std::int64_t v = 0; v < s_.in_vectors(); ++v) {
                for (std::int64_t strip = block.first_strip; strip < block.last_strip; ++strip) {
                    transform_input(src, block, strip, v, thread);
                }
            }
#pragma omp for schedule(dynamic)
            for (std::int64_t p = 0; p < s_.panels(); ++p) {
                for (std::int64_t c = 0; c < s_.c().in_channels; c += depth_) {
                    const std::int64_t now = std::min(depth_, s_.c().in_channels - c);
                    for (std::int64_t v = 2 * p; v < 2 * p + s_.panel_vectors(p); ++v) {
                        transform_filters(weights, v, c, now, filters_at(thread), band(thread));
                    }
                    multiply_points(block, p, c, now, filters_at(thread), thread);
                }
                transform_output(block, p, weights, dst, thread);
            }
        }
    }

    void transform_input(const float* src, const Block& block, std::int64_t strip, std::int64_t v,
                         std::int64_t thread) const {
        Points to = in_at(thread);
        to.data -= block.first_tile * to.row;
        s_.input(src, sign_, s_.tiles().strips[strip], v, band(thread), to);
    }

    void transform_filters(const float* weights, std::int64_t v, std::int64_t first, std::int64_t count,
                           const Points& to, float* scratch) const {
        if (pass_ == Pass::forward) {
            s_.filters(weights, v, first, count, scratch, to);
        } else {
            s_.turned_filters(weights, v, first, count, scratch, to);
        }
    }

    void multiply_points(const Block& block, std::int64_t p, std::int64_t first, std::int64_t depth,
                         const Points& filters, std::int64_t thread) const {
        const Points in = in_at(thread), out = out_at(thread);
        for (std::int64_t i = 0; i < points(); ++i) {
            multiply({.left = in.data + i * in.point + first,
                      .row_stride = in.row,
                      .depth_stride = 1,
                      .right = filters.data + i * filters.point,
                      .sums = out.data + i * out.point,
                      .depth = depth,
                      .accumulate = first > 0},
                     block.tiles, static_cast<int>(s_.panel_vectors(p)));
        }
    }

    void transform_output(const Block& block, std::int64_t p, const float* weights, float* dst,
                          std::int64_t thread) const {
        const float* bias = bias_ ? weights + s_.c().out_channels * s_.c().in_channels * s_.taps() : nullptr;
        const bool relu = relu_ && pass_ == Pass::forward;
        Points from = out_at(thread);
        from.data -= block.first_tile * from.row;
        for (std::int64_t strip = block.first_strip; strip < block.last_strip; ++strip) {
            for (std::int64_t v = 2 * p; v < 2 * p + s_.panel_vectors(p); ++v) {
                s_.output(from, s_.tiles().strips[strip], v, bias, relu, band(thread), dst);
            }
        }
    }

    Points in_at(std::int64_t thread) const {
        return {scratch_ + (filters_first_ ? thread : 0) * points() * in_point_, in_point_, s_.in_vectors() * lanes};
    }
    Points filters_at(std::int64_t i) const {
        return {scratch_ + ins_ + i * points() * filter_point_, filter_point_, panel};
    }
    Points out_at(std::int64_t thread) const {
        return {scratch_ + ins_ + filters_ + thread * points() * out_point_, out_point_, panel};
    }
    float* band(std::int64_t thread) const { return scratch_ + ins_ + filters_ + outs_ + thread * s_.band_floats(); }

    Pass pass_;
    bool bias_, relu_;
    Stages s_;
    std::int64_t threads_;
    bool filters_first_;
    std::int64_t depth_, in_point_, filter_point_, out_point_;
    std::int64_t ins_, filters_, outs_;  // floats of scratch memory, bands behind them
    const float* sign_ = nullptr;        // of the output, for a gradient
    float* scratch_ = nullptr;
};

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
