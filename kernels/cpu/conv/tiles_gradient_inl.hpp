// SPDX-License-Identifier: Apache-2.0
// backward_weights as loops over the stages.
#if defined(REHEARSE_CPU_TILES_GRADIENT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_TILES_GRADIENT_INL
#undef REHEARSE_CPU_TILES_GRADIENT_INL
#else
#define REHEARSE_CPU_TILES_GRADIENT_INL
#endif

#include <omp.h>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/convolution.hpp"
#include "kernels/cpu/conv/tiles_stages_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

/// backward_weights: at each point, tiles are what is summed over.
class TiledFilterGradient final : public CheckedKernel {
public:
    TiledFilterGradient(const Problem& problem, const Transforms& t)
        : CheckedKernel(problem),
          conv_(problem),
          s_(correlation(problem), t, block_tiles(correlation(problem), t.tile), conv_.op.relu),
          threads_(threads()),
          in_row_(s_.in_vectors() * lanes),
          in_point_(point_stride(s_.tiles().largest_block * in_row_)),
          diff_point_(point_stride(s_.tiles().largest_block * panel)),
          filter_point_(point_stride(s_.c().in_channels * panel)),
          ins_(points() * in_point_),
          diffs_(s_.panels() * points() * diff_point_),
          filters_(s_.panels() * points() * filter_point_) {
        reserve(ins_ + diffs_ + filters_ + threads_ * s_.band_floats());
    }

private:
    // The sums of all filters are read and written once a block, so that blocks should be large.
    static std::int64_t block_tiles(const Correlation& c, const TileShape& tile) {
        return std::clamp<std::int64_t>((1 << 20) / (tile.points * (c.in_channels + c.out_channels)), 32, 512);
    }

    std::int64_t points() const { return s_.t().tile.points; }

    void compute(const Buffers& b, float* scratch) override {
        scratch_ = scratch;
#pragma omp parallel num_threads(threads_)
        {
            float* const band = scratch_ + ins_ + diffs_ + filters_ + omp_get_thread_num() * s_.band_floats();
            for (const Block& block : s_.tiles().blocks) {
                transform_block(block, b, band);
                multiply_block(block);
            }
#pragma omp for
            for (std::int64_t v = 0; v < s_.out_vectors(); ++v) {
                s_.diff_filters(filters_at(v / 2), v, band, b.diff_weights.data());
            }
        }
        if (conv_.op.bias) sum_diff_bias(conv_, b);
    }

    // Called by every thread of the region.
    void transform_block(const Block& block, const Buffers& b, float* band) const {
        const float* const sign = conv_.op.relu ? b.dst_in.data() : nullptr;
        const std::int64_t vectors = s_.in_vectors() + s_.out_vectors();
#pragma omp for collapse(2)
        for (std::int64_t v = 0; v < vectors; ++v) {
            for (std::int64_t i = block.first_strip; i < block.last_strip; ++i) {
                const Strip& strip = s_.tiles().strips[i];
                if (v < s_.in_vectors()) {
                    const Points in{scratch_ - block.first_tile * in_row_, in_point_, in_row_};
                    s_.input(b.src[0].data(), nullptr, strip, v, band, in);
                } else {
                    const std::int64_t out = v - s_.in_vectors();
                    Points diff = diff_at(out / 2);
                    diff.data -= block.first_tile * panel;
                    s_.diff_output(b.diff_dst.data(), sign, strip, out, band, diff);
                }
            }
        }
    }

    void multiply_block(const Block& block) const {
#pragma omp for collapse(2)
        for (std::int64_t i = 0; i < s_.t().tile.points; ++i) {
            for (std::int64_t p = 0; p < s_.panels(); ++p) {
                multiply({.left = scratch_ + i * in_point_,
                          .row_stride = 1,
                          .depth_stride = in_row_,
                          .right = diff_at(p).data + i * diff_point_,
                          .sums = filters_at(p).data + i * filter_point_,
                          .depth = block.tiles,
                          .accumulate = block.first_tile > 0},
                         s_.c().in_channels, static_cast<int>(s_.panel_vectors(p)));
            }
        }
    }

    Points diff_at(std::int64_t p) const { return {scratch_ + ins_ + p * points() * diff_point_, diff_point_, panel}; }
    Points filters_at(std::int64_t p) const {
        return {scratch_ + ins_ + diffs_ + p * points() * filter_point_, filter_point_, panel};
    }

    Convolution conv_;
    Stages s_;
    std::int64_t threads_;
    std::int64_t in_row_, in_point_, diff_point_, filter_point_;
    std::int64_t ins_, diffs_, filters_;  // floats of scratch memory, bands behind them
    float* scratch_ = nullptr;
};

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
