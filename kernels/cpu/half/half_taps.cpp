// SPDX-License-Identifier: Apache-2.0
// forward and backward_data in 16 bits: a product of the weights {channels computed, channels and taps summed over}
// with pixels that are read where they lie. The image is packed once, with its padding and by phases (sweep.hpp), so
// that the neighbours of a tile's pixels at any tap are neighbours: pixels run on from row to row, and what a tile
// computes between two rows of outputs is thrown away.
#include <omp.h>

#include <algorithm>

#include "kernels/convert.hpp"
#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/direct_passes.hpp"
#include "kernels/cpu/half/half.hpp"
#include "kernels/cpu/half/half_image.hpp"
#include "kernels/cpu/half/half_pack.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t panel_units = 4 * 1024;    // of weights used at a time: 16 KiB of a first-level cache
constexpr std::int64_t strip_floats = 64 * 1024;  // that are summed: 256 KiB of a second-level cache

constexpr std::int64_t steps_at_once = 8;  // of weights, when they are packed

// A stretch of a grid's pixels, whole tiles of them but for the last.
struct Stretch {
    std::size_t grid;
    std::int64_t first, pixels;
};

/// Large: the sizes of one convolution's loops and of their scratch, worked out once.
class HalfDirectConvolution final : public CheckedKernel {
public:
    HalfDirectConvolution(const Problem& problem, const HalfSimd& simd)
        : CheckedKernel(problem),
          simd_(simd),
          type_(problem.type),
          conv_(problem),
          forward_(problem.pass == Pass::forward),
          sweep_(forward_ ? forward_sweep(conv_) : backward_sweep(conv_)),
          in_(forward_ ? conv_.group_channels : conv_.group_filters),
          out_(forward_ ? conv_.group_filters : conv_.group_channels),
          steps_(half_steps(simd, in_)),
          height_(divide_up(out_, divide_up(out_, simd.rows))),
          panels_(divide_up(out_, height_)),
          panel_(whole_lines(steps_ * conv_.taps * height_)),
          plane_(sweep_.image.pixels() * simd.pair),
          pointwise_(conv_.op.window == Window{}) {
        const std::int64_t in_a_pixel = pointwise_ ? divide_up(steps_ * simd.pair, 2) : 0;
        const std::int64_t most_tiles =
            std::max<std::int64_t>(1, strip_floats / (std::max(out_, in_a_pixel) * simd.columns));
        for (std::size_t g = 0; g < sweep_.grids.size(); ++g) cut(g, most_tiles);
        if (pointwise_) plane_ = strip_ * simd.pair;
        image_ = whole_lines(divide_up(steps_ * plane_ + simd.columns * simd.pair, 2));
        chunk_ = std::clamp<std::int64_t>(packed_floats / image_, 1, conv_.batch * conv_.op.groups);
        own_ = std::max(whole_lines(panels_ * height_ * strip_) + whole_lines(strip_) + (pointwise_ ? image_ : 0),
                        whole_lines(steps_at_once * conv_.taps * height_));
        reserve(conv_.op.groups * panels_ * panel_ + (pointwise_ ? 0 : chunk_ * image_) + threads() * own_);
    }

private:
    void cut(std::size_t index, std::int64_t most_tiles) {
        const Grid& grid = sweep_.grids[index];
        taps_.emplace_back();
        for (const Tap& tap : grid.taps) taps_.back().push_back({tap.offset * simd_.pair, tap.index * height_});
        if (grid.taps.empty()) return void(has_zeros_ = true);  // pixels between the strides: no output has seen them
        const std::int64_t pixels = (grid.rows - 1) * sweep_.image.columns + grid.columns;
        const std::int64_t tiles = divide_up(pixels, simd_.columns);
        const std::int64_t step = divide_up(tiles, divide_up(tiles, most_tiles)) * simd_.columns;
        for (std::int64_t first = 0; first < pixels; first += step) {
            stretches_.push_back({index, first, std::min(step, pixels - first)});
        }
        strip_ = std::max(strip_, step);
    }

    void compute(const Buffers& b, float* scratch) override {
        const std::int64_t groups = conv_.op.groups;
        const std::int64_t images = conv_.batch * groups;
        float* const images_at = scratch + groups * panels_ * panel_;
        const auto stretches = static_cast<std::int64_t>(stretches_.size());
        const std::uint16_t* const in = half_words(forward_ ? b.src[0] : b.diff_dst);
        if (has_zeros_) std::fill_n(half_words(b.diff_src[0]), b.diff_src[0].size(), 0);
#pragma omp parallel
        {
            float* const own = images_at + (pointwise_ ? 0 : chunk_ * image_) + omp_get_thread_num() * own_;
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < groups * panels_; ++i) pack_weights(b, i, units(scratch + i * panel_), own);
            for (std::int64_t first = 0; first < images; first += chunk_) {
                const std::int64_t count = std::min(chunk_, images - first);
#pragma omp for schedule(static)
                for (std::int64_t i = 0; i < (pointwise_ ? 0 : count * steps_); ++i) {
                    pack_half_image(simd_, sweep_.image, channels_of(in, first + i / steps_, i % steps_),
                                    words(images_at + i / steps_ * image_) + i % steps_ * plane_);
                }
#pragma omp for schedule(static)
                for (std::int64_t i = 0; i < count * stretches; ++i) {
                    const std::int64_t image = first + i / stretches;
                    const Stretch& stretch = stretches_[i % stretches];
                    float* const weights = scratch + image % groups * panels_ * panel_;
                    const std::uint16_t* const packed =
                        pointwise_ ? packed_stretch(in, image, stretch, own)
                                   : words(images_at + i / stretches * image_) + stretch.first * simd_.pair;
                    run_stretch(b, image, stretch, weights, packed, own);
                }
            }
        }
    }

    HalfChannels channels_of(const std::uint16_t* in, std::int64_t image, std::int64_t step) const {
        const std::int64_t pixels = sweep_.image.height * sweep_.image.width;
        const std::int64_t channel = step * simd_.pair;
        const std::uint16_t* const first = in + (image * in_ + channel) * pixels;
        return {first, channel + 1 < in_ ? first + pixels : nullptr};
    }

    // Of a 1 x 1, whose images need no padding: {step, pixel, pair} of a stretch, still in the cache when it is used.
    const std::uint16_t* packed_stretch(const std::uint16_t* in, std::int64_t image, const Stretch& stretch,
                                        float* own) const {
        std::uint16_t* const packed = words(own + whole_lines(panels_ * height_ * strip_) + whole_lines(strip_));
        const PackedImage row{{{}}, 1, stretch.pixels, 1, stretch.pixels};
        for (std::int64_t step = 0; step < steps_; ++step) {
            const HalfChannels from = channels_of(in, image, step);
            const std::uint16_t* const second = from.second == nullptr ? nullptr : from.second + stretch.first;
            pack_half_image(simd_, row, {from.first + stretch.first, second}, packed + step * plane_);
        }
        return packed;
    }

    // {step summed over, tap, channel computed} from {filter, channel, tap}.
    void pack_weights(const Buffers& b, std::int64_t index, std::uint32_t* packed, float* own) const {
        const std::int64_t first = index % panels_ * height_;
        const std::int64_t items = std::min(height_, out_ - first);
        const std::int64_t row = conv_.group_channels * conv_.taps;
        const std::uint16_t* const weights = half_words(b.weights) + index / panels_ * conv_.group_filters * row;
        if (forward_ && (conv_.taps == 1 || simd_.pair == 1)) {
            return pack_half_a(simd_, {weights + first * row, row, 1}, items, row, height_, packed);
        }
        if (forward_) return pack_pairs_of_channels(weights + first * row, items, packed, units(own));
        const std::int64_t taps = conv_.taps;
        std::uint32_t* const zipped = units(own);
        std::fill(zipped, zipped + taps * height_, 0);
        for (std::int64_t step = 0; step < steps_; ++step) {
            const std::uint16_t* const from = weights + step * simd_.pair * row + first * taps;
            const bool alone = simd_.pair == 2 && step * 2 + 1 == in_;
            zip(from, alone ? nullptr : from + (simd_.pair - 1) * row, items * taps, zipped);
            transpose(zipped, taps, height_, taps, packed + step * taps * height_, height_);
        }
    }

    // A few steps at a time, each of two channels' taps, of `items` filters.
    void pack_pairs_of_channels(const std::uint16_t* weights, std::int64_t items, std::uint32_t* packed,
                                std::uint32_t* zipped) const {
        const std::int64_t taps = conv_.taps;
        const std::int64_t row = conv_.group_channels * taps;
        std::fill(zipped, zipped + height_ * steps_at_once * taps, 0);
        for (std::int64_t step = 0; step < steps_; step += steps_at_once) {
            const std::int64_t count = std::min(steps_at_once, steps_ - step);
            const std::int64_t whole = std::min(count, in_ / 2 - step);  // the last channel may be alone
            for (std::int64_t i = 0; i < items; ++i) {
                const std::uint16_t* const from = weights + i * row + 2 * step * taps;
                std::uint32_t* const to = zipped + i * steps_at_once * taps;
                simd_.zip_rows(from, whole, taps, reinterpret_cast<std::uint16_t*>(to));
                if (whole < count) zip(from + 2 * whole * taps, nullptr, taps, to + whole * taps);
            }
            transpose(zipped, steps_at_once * taps, height_, count * taps, packed + step * taps * height_, height_);
        }
    }

    void zip(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint32_t* out) const {
        if (b != nullptr) return simd_.zip(a, b, count, reinterpret_cast<std::uint16_t*>(out));
        for (std::int64_t i = 0; i < count; ++i) out[i] = a[i];
    }

    void run_stretch(const Buffers& b, std::int64_t image, const Stretch& stretch, float* weights,
                     const std::uint16_t* packed, float* own) const {
        const std::vector<TapAt>& taps = taps_[stretch.grid];
        const bool bias = forward_ && conv_.op.bias;
        if (bias) fill_with_bias(b, image % conv_.op.groups * out_, own);
        const std::int64_t at_once = std::max<std::int64_t>(1, panel_units / (conv_.taps * height_));
        for (std::int64_t step = 0; step < steps_; step += at_once) {
            for (std::int64_t p = 0; p < panels_; ++p) {
                for (std::int64_t x = 0; x < stretch.pixels; x += simd_.columns) {
                    simd_.multiply(std::min(height_, out_ - p * height_),
                                   {.a = units(weights + p * panel_) + step * conv_.taps * height_,
                                    .a_channel = conv_.taps * height_,
                                    .b = packed + step * plane_ + x * simd_.pair,
                                    .b_channel = plane_,
                                    .taps = taps.data(),
                                    .tap_count = static_cast<std::int64_t>(taps.size()),
                                    .channels = std::min(at_once, steps_ - step),
                                    .c = own + p * height_ * strip_ + x,
                                    .ldc = strip_,
                                    .accumulate = bias || step > 0});
                }
            }
        }
        std::uint16_t* const out = half_words(forward_ ? b.dst : b.diff_src[0]);
        std::uint16_t* const row = words(own + whole_lines(panels_ * height_ * strip_));
        for (std::int64_t c = 0; c < out_; ++c) {
            round_half(type_, own + c * strip_, row, stretch.pixels);
            store(stretch, row, out + (image * out_ + c) * sweep_.out_height * sweep_.out_width);
        }
    }

    void fill_with_bias(const Buffers& b, std::int64_t first, float* own) const {
        std::vector<float> bias(static_cast<std::size_t>(out_));
        convert(ConstView(b.weights).subspan(conv_.weight_count() + first, bias.size()), bias);
        for (std::int64_t c = 0; c < out_; ++c) std::fill_n(own + c * strip_, strip_, bias[c]);
    }

    // A channel's pixels of a stretch to where they belong, without those between the rows.
    void store(const Stretch& stretch, const std::uint16_t* row, std::uint16_t* plane) const {
        const Grid& grid = sweep_.grids[stretch.grid];
        const std::int64_t columns = sweep_.image.columns;
        const std::int64_t last = stretch.first + stretch.pixels;
        for (std::int64_t y = stretch.first / columns; y * columns < last; ++y) {
            const std::int64_t begin = std::max<std::int64_t>(0, stretch.first - y * columns);
            const std::int64_t end = std::min(grid.columns, last - y * columns);
            const std::uint16_t* const from = row + y * columns - stretch.first;
            std::uint16_t* const to =
                plane + (grid.at.first_y + y * grid.at.step_y) * sweep_.out_width + grid.at.first_x;
            if (grid.at.step_x == 1 && begin < end) std::copy(from + begin, from + end, to + begin);
            for (std::int64_t x = begin; grid.at.step_x != 1 && x < end; ++x) to[x * grid.at.step_x] = from[x];
        }
    }

    const HalfSimd& simd_;
    DataType type_;
    Convolution conv_;
    bool forward_;
    Sweep sweep_;
    std::int64_t in_, out_;                         // channels of a group that are summed over, that are computed
    std::int64_t steps_, height_, panels_, panel_;  // panel_: floats' room of packed weights
    std::int64_t plane_;                            // 16-bit numbers of one step's packed pixels
    bool pointwise_;
    std::int64_t image_ = 0;  // floats' room of a packed image; of a 1 x 1, of a stretch
    std::int64_t strip_ = 1, chunk_ = 1, own_ = 0;
    bool has_zeros_ = false;
    std::vector<Stretch> stretches_;
    std::vector<std::vector<TapAt>> taps_;  // of each grid
};

}  // namespace

std::unique_ptr<Kernel> half_direct_convolution(const Problem& problem, const HalfSimd& simd) {
    return std::make_unique<HalfDirectConvolution>(problem, simd);
}

}  // namespace rehearse::kernels::cpu
