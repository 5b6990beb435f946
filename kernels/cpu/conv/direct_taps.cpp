// SPDX-License-Identifier: Apache-2.0
// forward and backward_data. One is a sweep from src to dst, the other from diff_dst to diff_src; the weights are
// packed with the channels that are summed over outside and a panel of those that are computed inside.
#include <omp.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/direct_passes.hpp"
#include "kernels/cpu/conv/direct_simd.hpp"
#include "kernels/cpu/conv/strips.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t strip_floats = 16 * 1024;    // of a strip that is summed: 64 KiB
constexpr std::int64_t weight_floats = 6 * 1024;    // used at a time: 24 KiB, half of a first-level cache
constexpr std::int64_t cached_floats = 128 * 1024;  // of all weights, that the second-level cache keeps

class DirectConvolution final : public CheckedKernel {
public:
    explicit DirectConvolution(const Problem& problem)
        : CheckedKernel(problem),
          simd_(direct_simd()),
          conv_(problem),
          forward_(problem.pass == Pass::forward),
          sweep_(forward_ ? forward_sweep(conv_) : backward_sweep(conv_)),
          in_(forward_ ? conv_.group_channels : conv_.group_filters),
          out_(forward_ ? conv_.group_filters : conv_.group_channels) {
        const bool flat = sweep_.grids[0].columns == sweep_.image.columns;
        vectors_ = simd_.vectors(out_, flat ? sweep_.grids[0].rows * sweep_.grids[0].columns : sweep_.grids[0].columns);
        panel_ = vectors_ * simd_.lanes;
        blocks_ = divide_up(in_, simd_.lanes);
        panels_ = divide_up(out_, panel_);
        plane_ = whole_lines(sweep_.image.pixels() * simd_.lanes);
        panel_weights_ = whole_lines(in_ * conv_.taps * panel_);
        chunk_ = std::clamp<std::int64_t>(packed_floats / (blocks_ * plane_), 1, conv_.batch * conv_.op.groups);
        strips_ = cut_into_strips(sweep_, panel_, strip_floats);
        strip_ = whole_lines(most_pixels(sweep_, strips_) * panel_);
        taps_ = taps_of_grids(sweep_, simd_.lanes, panel_);
        own_ = 2 * strip_ + (forward_ ? 0 : diff_room(conv_, simd_.lanes));
        reserve(conv_.op.groups * panels_ * panel_weights_ + chunk_ * blocks_ * plane_ + threads() * own_);
    }

private:
    void compute(const Buffers& b, float* scratch) override {
        const std::int64_t groups = conv_.op.groups;
        const std::int64_t images = conv_.batch * groups;
        float* const images_at = scratch + groups * panels_ * panel_weights_;
        const auto strips = static_cast<std::int64_t>(strips_.size());
        const bool weights_stay = panels_ * panel_weights_ <= cached_floats;
#pragma omp parallel
        {
            float* const own = images_at + chunk_ * blocks_ * plane_ + omp_get_thread_num() * own_;
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < groups * panels_; ++i) pack_weights(b, i, scratch + i * panel_weights_);
            for (std::int64_t first = 0; first < images; first += chunk_) {
                const std::int64_t count = std::min(chunk_, images - first);
#pragma omp for schedule(static)
                for (std::int64_t i = 0; i < count * blocks_; ++i)
                    pack(b, first * blocks_ + i, images_at + i * plane_, own + 2 * strip_);
#pragma omp for schedule(static)
                for (std::int64_t i = 0; i < count * strips * panels_; ++i) {
                    // Small weights: all panels of a strip while its rows are in the cache; else all of a panel.
                    const std::int64_t panel = weights_stay ? i % panels_ : i / (count * strips);
                    const std::int64_t strip = weights_stay ? i / panels_ : i % (count * strips);
                    const std::int64_t image = first + strip / strips;
                    const float* const weights = scratch + (image % groups * panels_ + panel) * panel_weights_;
                    run_strip(b, image, panel, strips_[strip % strips], weights,
                              images_at + strip / strips * blocks_ * plane_, own);
                }
            }
        }
    }

    // `index` counts blocks of channels of all groups of all samples.
    void pack(const Buffers& b, std::int64_t index, float* out, float* room) const {
        const std::int64_t channel = index % blocks_ * simd_.lanes;
        const std::int64_t plane = index / blocks_ * in_ + channel;
        const std::int64_t planes = std::min(simd_.lanes, in_ - channel);
        const float* const in =
            forward_ ? b.src[0].data() + plane * conv_.in_pixels() : diff_planes(conv_, b, plane, planes, room);
        simd_.pack_image(sweep_.image, in, planes, out);
    }

    // {channel summed over, tap, channel computed} from {filter, channel, tap}.
    void pack_weights(const Buffers& b, std::int64_t index, float* packed) const {
        const std::int64_t first = index % panels_ * panel_;
        const std::int64_t width = std::min(panel_, out_ - first);
        const std::int64_t row = conv_.group_channels * conv_.taps;
        const float* const weights = b.weights.data() + index / panels_ * conv_.group_filters * row;
        if (forward_) return simd_.transpose(weights + first * row, row, width, row, packed, panel_);
        for (std::int64_t f = 0; f < in_; ++f) {
            const float* const from = weights + f * row + first * conv_.taps;
            if (conv_.taps == 1) {
                std::copy_n(from, width, packed + f * panel_);
            } else {
                simd_.transpose(from, conv_.taps, width, conv_.taps, packed + f * conv_.taps * panel_, panel_);
            }
        }
    }

    void run_strip(const Buffers& b, std::int64_t image, std::int64_t panel, const RowStrip& strip,
                   const float* weights, const float* packed, float* own) const {
        const Grid& grid = sweep_.grids[strip.grid];
        const std::int64_t row = sweep_.image.columns * simd_.lanes;
        const std::int64_t first_channel = panel * panel_;
        const bool bias = forward_ && conv_.op.bias;
        if (bias) fill_with_bias(b, image % conv_.op.groups * out_ + first_channel, strip.rows * grid.columns, own);
        const bool flat = grid.columns == sweep_.image.columns;
        const std::int64_t blocks_at_once =
            std::max<std::int64_t>(1, weight_floats / (simd_.lanes * conv_.taps * panel_));
        for (std::int64_t block = 0; block < blocks_; block += blocks_at_once) {
            const std::int64_t channel = block * simd_.lanes;
            simd_.sum_over_taps({.src = packed + block * plane_ + strip.first * row,
                                 .block = plane_,
                                 .src_row = row,
                                 .weights = weights + channel * conv_.taps * panel_,
                                 .channel = conv_.taps * panel_,
                                 .taps = taps_[strip.grid].data(),
                                 .tap_count = static_cast<std::int64_t>(taps_[strip.grid].size()),
                                 .channels = std::min(blocks_at_once * simd_.lanes, in_ - channel),
                                 .rows = flat ? 1 : strip.rows,
                                 .columns = flat ? strip.rows * grid.columns : grid.columns,
                                 .out = own,
                                 .accumulate = bias || block > 0,
                                 .relu = forward_ && conv_.op.relu && block + blocks_at_once >= blocks_},
                                vectors_);
        }
        float* const out = forward_ ? b.dst.data() : b.diff_src[0].data();
        const StripStore to{simd_, sweep_, std::min(panel_, out_ - first_channel), panel_,
                            out + (image * out_ + first_channel) * sweep_.out_pixels()};
        store(to, strip, own, own + strip_);
    }

    void fill_with_bias(const Buffers& b, std::int64_t filter, std::int64_t pixels, float* own) const {
        const float* const bias = b.weights.data() + conv_.weight_count();
        for (std::int64_t i = 0; i < pixels; ++i) {
            for (std::int64_t f = 0; f < panel_; ++f) {
                own[i * panel_ + f] = filter + f < conv_.op.filters ? bias[filter + f] : 0.0F;
            }
        }
    }

    const DirectSimd& simd_;
    Convolution conv_;
    bool forward_;
    Sweep sweep_;
    std::int64_t in_, out_;  // channels of a group that are summed over, that are computed
    std::int64_t vectors_ = 1, panel_ = 1, blocks_ = 1, panels_ = 1, plane_ = 1, panel_weights_ = 1, chunk_ = 1;
    std::int64_t strip_ = 0, own_ = 0;  // own_: floats of a thread
    std::vector<RowStrip> strips_;
    std::vector<std::vector<TapAt>> taps_;  // of each grid
};

}  // namespace

std::unique_ptr<Kernel> direct_convolution(const Problem& problem) {
    return std::make_unique<DirectConvolution>(problem);
}

}  // namespace rehearse::kernels::cpu
