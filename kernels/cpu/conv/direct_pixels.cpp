// SPDX-License-Identifier: Apache-2.0
// backward_weights. Strips of rows of diff_dst stay in the first cache while all channels of src pass by; the sums of a
// block of channels and a panel of filters are kept from strip to strip and from sample to sample.
#include <omp.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/direct_passes.hpp"
#include "kernels/cpu/conv/direct_simd.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t strip_floats = 8 * 1024;  // of src and diff_dst: 32 KiB

class DirectWeightGradient final : public CheckedKernel {
public:
    explicit DirectWeightGradient(const Problem& problem)
        : CheckedKernel(problem), simd_(direct_simd()), conv_(problem), sweep_(forward_sweep(conv_)) {
        vectors_ = conv_.group_filters > simd_.lanes ? 2 : 1;
        panel_ = vectors_ * simd_.lanes;
        blocks_ = divide_up(conv_.group_channels, simd_.lanes);
        panels_ = divide_up(conv_.group_filters, panel_);
        src_plane_ = whole_lines(sweep_.image.pixels() * simd_.lanes);
        dst_plane_ = whole_lines(conv_.out_pixels() * panel_);
        sums_ = whole_lines(conv_.group_channels * conv_.taps * panel_);
        const std::int64_t sample = conv_.op.groups * (blocks_ * src_plane_ + panels_ * dst_plane_);
        chunk_ = std::clamp<std::int64_t>(packed_floats / sample, 1, conv_.batch);
        rows_ = std::clamp<std::int64_t>(strip_floats / (conv_.out_width * panel_ + sweep_.image.columns * simd_.lanes),
                                         1, conv_.out_height);
        // Several parts of the blocks where panels alone would leave threads without work.
        const std::int64_t items = conv_.op.groups * panels_;
        part_ = divide_up(blocks_, std::min(blocks_, threads() == 1 ? 1 : divide_up(4 * threads(), items)));
        room_ = diff_room(conv_, panel_);
        reserve(items * sums_ + chunk_ * sample + threads() * room_);
    }

private:
    void compute(const Buffers& b, float* scratch) override {
        const std::int64_t groups = conv_.op.groups;
        float* const src = scratch + groups * panels_ * sums_;
        float* const dst = src + chunk_ * groups * blocks_ * src_plane_;
        float* const rooms = dst + chunk_ * groups * panels_ * dst_plane_;
        const std::int64_t parts = divide_up(blocks_, part_);
#pragma omp parallel
        for (std::int64_t first = 0; first < conv_.batch; first += chunk_) {
            const std::int64_t count = std::min(chunk_, conv_.batch - first) * groups;
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < count * (blocks_ + panels_); ++i) {
                const std::int64_t j = i - count * blocks_;
                if (j < 0) {
                    pack_src(b, first * groups * blocks_ + i, src + i * src_plane_);
                } else {
                    pack_dst(b, first * groups * panels_ + j, dst + j * dst_plane_,
                             rooms + omp_get_thread_num() * room_);
                }
            }
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < groups * panels_ * parts; ++i) {
                const std::int64_t panel = i / parts;
                float* const sums = scratch + panel * sums_;
                if (first == 0) clear(i % parts, sums);
                for (std::int64_t image = panel / panels_; image < count; image += groups) {
                    add_image(src + image * blocks_ * src_plane_,
                              dst + (image * panels_ + panel % panels_) * dst_plane_, i % parts, sums);
                }
            }
        }
        store(b, scratch);
    }

    std::int64_t first_channel(std::int64_t part) const { return part * part_ * simd_.lanes; }

    void clear(std::int64_t part, float* sums) const {
        const std::int64_t row = conv_.taps * panel_;
        const std::int64_t end = std::min(first_channel(part + 1), conv_.group_channels);
        std::fill(sums + first_channel(part) * row, sums + end * row, 0.0F);
    }

    void pack_src(const Buffers& b, std::int64_t index, float* out) const {
        const std::int64_t channel = index % blocks_ * simd_.lanes;
        const float* const in =
            b.src[0].data() + (index / blocks_ * conv_.group_channels + channel) * conv_.in_pixels();
        simd_.pack_image(sweep_.image, in, std::min(simd_.lanes, conv_.group_channels - channel), out);
    }

    void pack_dst(const Buffers& b, std::int64_t index, float* out, float* room) const {
        const std::int64_t filter = index % panels_ * panel_;
        const std::int64_t planes = std::min(panel_, conv_.group_filters - filter);
        const float* const in = diff_planes(conv_, b, index / panels_ * conv_.group_filters + filter, planes, room);
        simd_.transpose(in, conv_.out_pixels(), planes, conv_.out_pixels(), out, panel_);
    }

    void add_image(const float* src, const float* dst, std::int64_t part, float* sums) const {
        const std::int64_t end = std::min((part + 1) * part_, blocks_);
        for (const Grid& grid : sweep_.grids) add_plane(grid, src, dst, part, end, sums);
    }

    void add_plane(const Grid& grid, const float* src, const float* dst, std::int64_t part, std::int64_t end,
                   float* sums) const {
        const std::int64_t row = sweep_.image.columns * simd_.lanes;
        dst += grid.plane * conv_.out_height * conv_.out_width * panel_;
        for (std::int64_t y = 0; y < conv_.out_height; y += rows_) {
            for (std::int64_t block = part * part_; block < end; ++block) {
                const std::int64_t channel = block * simd_.lanes;
                for (const Tap& tap : grid.taps) {
                    simd_.sum_over_pixels({.src = src + block * src_plane_ + y * row + tap.offset * simd_.lanes,
                                           .src_row = row,
                                           .diff_dst = dst + y * conv_.out_width * panel_,
                                           .channels = std::min(simd_.lanes, conv_.group_channels - channel),
                                           .rows = std::min(rows_, conv_.out_height - y),
                                           .columns = conv_.out_width,
                                           .out = sums + (channel * conv_.taps + tap.index) * panel_,
                                           .out_row = conv_.taps * panel_},
                                          vectors_);
                }
            }
        }
    }

    // {filter, channel, tap} from {channel, tap, filter}.
    void store(const Buffers& b, const float* sums) const {
        const std::int64_t row = conv_.group_channels * conv_.taps;
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < conv_.op.groups * panels_; ++i) {
            const std::int64_t filter = i % panels_ * panel_;
            simd_.transpose(sums + i * sums_, panel_, row, std::min(panel_, conv_.group_filters - filter),
                            b.diff_weights.data() + (i / panels_ * conv_.group_filters + filter) * row, row);
        }
        if (conv_.op.bias) sum_diff_bias(conv_, b);
    }

    const DirectSimd& simd_;
    Convolution conv_;
    Sweep sweep_;
    std::int64_t vectors_ = 1, panel_ = 1, blocks_ = 1, panels_ = 1, src_plane_ = 1, dst_plane_ = 1, sums_ = 1;
    std::int64_t chunk_ = 1, rows_ = 1, part_ = 1, room_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> direct_weight_gradient(const Problem& problem) {
    return std::make_unique<DirectWeightGradient>(problem);
}

}  // namespace rehearse::kernels::cpu
