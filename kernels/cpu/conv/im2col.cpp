// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product (Chellapilla, Puri and Simard 2006): the column matrix has a row for each channel and
// tap and a column for each output pixel. It is made for a tile of pixels at a time, at most max_column_floats a
// thread.
//   forward            dst           {filters, pixels} = weights   {filters, rows}   x columns
//   backward_data      diff_columns  {rows, pixels}    = weights^T {rows, filters}   x diff_dst, added into diff_src
//   backward_weights   diff_weights  {filters, rows}   = diff_dst  {filters, pixels} x columns^T
// A dense 1 x 1 needs no column matrix: the image is one.
#include "kernels/cpu/conv/im2col.hpp"

#include <omp.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/columns.hpp"
#include "kernels/cpu/conv/convolution.hpp"
#include "kernels/cpu/gemm/epilogue.hpp"
#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/gemm/gemm_streamed.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t max_column_floats = 128 * 1024;  // 512 KiB: half of a second-level cache

bool is_matrix(const Convolution& conv) { return conv.op.window == Window{}; }

class Im2col : public CheckedKernel {
protected:
    explicit Im2col(const Problem& problem) : CheckedKernel(problem), conv_(problem), tile_(panel_columns()) {}

    // A tile of pixels, whole panels of them, for which `floats_a_pixel` fit into the bound, and `lay_out()`, which
    // gives the floats of scratch memory of such a tile, into the caller's limit if tiles can be made so small.
    template <typename LayOut>
    void cut_pixels(std::int64_t floats_a_pixel, Bytes limit, LayOut lay_out) {
        const std::int64_t panel = panel_columns();
        const std::int64_t panels = std::max<std::int64_t>(1, max_column_floats / (floats_a_pixel * panel));
        const std::int64_t all = divide_up(conv_.out_pixels(), panel);
        tile_ = divide_up(all, divide_up(all, panels)) * panel;  // of about one size: threads take as many each
        std::int64_t floats = lay_out();
        while (static_cast<double>(floats) * size_of(DataType::f32) > limit && tile_ > panel) {
            tile_ = std::max(panel, tile_ / 2 / panel * panel);
            floats = lay_out();
        }
        reserve(floats);
    }

    // Channels of a group in so many parts that there is one for each thread.
    void cut_channels(std::int64_t items) {
        part_ = divide_up(conv_.group_channels,
                          std::min(conv_.group_channels, std::max<std::int64_t>(1, divide_up(threads(), items))));
        parts_ = divide_up(conv_.group_channels, part_);
    }

    std::int64_t rows() const { return conv_.group_channels * conv_.taps; }
    std::int64_t channels_of(std::int64_t part) const { return std::min(part_, conv_.group_channels - part * part_); }
    std::int64_t diff_tile_floats() const { return conv_.op.relu ? whole_lines(conv_.group_filters * tile_) : 0; }

    // The tile's gradient of the output {filters, width}; `index` counts groups of all samples.
    MatrixView diff_tile(const Buffers& b, std::int64_t index, std::int64_t first, float* room) const {
        const std::int64_t pixels = conv_.out_pixels();
        const std::int64_t at = index * conv_.group_filters * pixels + first;
        if (!conv_.op.relu) return {b.diff_dst.data() + at, pixels, 1};
        for (std::int64_t f = 0; f < conv_.group_filters; ++f) {
            const std::int64_t row = at + f * pixels;
            mask(b.diff_dst.data() + row, b.dst_in.data() + row, width_at(first), room + f * tile_);
        }
        return {room, tile_, 1};
    }

    std::int64_t width_at(std::int64_t pixel) const { return std::min(tile_, conv_.out_pixels() - pixel); }

    Convolution conv_;
    std::int64_t tile_, part_ = 1, parts_ = 1;
};

class Forward final : public Im2col {
public:
    Forward(const Problem& problem, Bytes limit) : Im2col(problem) {
        weights_ = whole_lines(packed_a_floats(conv_.group_filters, rows()));
        cut_pixels(rows(), limit, [this] {
            columns_ = whole_lines(is_matrix(conv_) ? streamed_workspace(rows()) : packed_b_floats(tile_, rows()));
            return conv_.op.groups * weights_ + threads() * columns_;
        });
    }

private:
    void compute(const Buffers& b, float* scratch) override {
        const std::int64_t groups = conv_.op.groups;
        const std::int64_t tiles = divide_up(conv_.out_pixels(), tile_);
        float* const columns = scratch + groups * weights_;
#pragma omp parallel
        {
            float* const own = columns + omp_get_thread_num() * columns_;
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < groups * threads(); ++i) {
                const std::int64_t group = i / threads();
                pack_a_part({conv_.group_filters, 0, rows()},
                            {b.weights.data() + group * conv_.group_filters * rows(), rows(), 1}, i % threads(),
                            threads(), scratch + group * weights_);
            }
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < conv_.batch * groups * tiles; ++i) {
                run_tile(b, i / tiles, i % tiles * tile_, scratch + i / tiles % groups * weights_, own);
            }
        }
    }

    // `index` counts groups of all samples.
    void run_tile(const Buffers& b, std::int64_t index, std::int64_t first, const float* weights, float* columns) {
        const float* const image = b.src[0].data() + index * conv_.group_channels * conv_.in_pixels();
        const std::int64_t width = width_at(first);
        float* const dst = b.dst.data() + index * conv_.group_filters * conv_.out_pixels() + first;
        const float* const bias =
            b.weights.data() + conv_.weight_count() + index % conv_.op.groups * conv_.group_filters;
        for (std::int64_t f = 0; conv_.op.bias && f < conv_.group_filters; ++f) {
            std::fill_n(dst + f * conv_.out_pixels(), width, bias[f]);
        }
        const GemmShape shape{conv_.group_filters, width, rows()};
        if (is_matrix(conv_)) {
            gemm_streamed(shape, weights, image + first, conv_.in_pixels(), dst, conv_.out_pixels(), conv_.op.bias,
                          columns);
        } else {
            gather_panels(image, first, width, columns);
            gemm_packed(shape, weights, columns, dst, conv_.out_pixels(), conv_.op.bias);
        }
        for (std::int64_t f = 0; conv_.op.relu && f < conv_.group_filters; ++f) {
            apply_relu(dst + f * conv_.out_pixels(), width);
        }
    }

    void gather_panels(const float* image, std::int64_t first, std::int64_t width, float* columns) const {
        const std::int64_t panel = panel_columns();
        for (std::int64_t p = 0; p < width; p += panel) {
            const std::int64_t count = std::min(panel, width - p);
            float* const out = columns + p * rows();
            if (count < panel) std::fill_n(out, panel * rows(), 0.0F);
            for (std::int64_t c = 0; c < conv_.group_channels; ++c) {
                gather(conv_, image + c * conv_.in_pixels(), first + p, count, out + c * conv_.taps * panel, panel);
            }
        }
    }

    std::int64_t weights_, columns_;
};

class BackwardData final : public Im2col {
public:
    BackwardData(const Problem& problem, Bytes limit) : Im2col(problem) {
        cut_channels(conv_.batch * conv_.op.groups);
        weights_ = whole_lines(packed_a_floats(part_ * conv_.taps, conv_.group_filters));
        cut_pixels(part_ * conv_.taps + conv_.group_filters, limit, [this] {
            columns_ = whole_lines(is_matrix(conv_) ? 0 : part_ * conv_.taps * tile_);
            packed_ = whole_lines(is_matrix(conv_) ? streamed_workspace(conv_.group_filters)
                                                   : packed_b_floats(tile_, conv_.group_filters));
            own_ = columns_ + packed_ + diff_tile_floats();
            return conv_.op.groups * parts_ * weights_ + threads() * own_;
        });
    }

private:
    void compute(const Buffers& b, float* scratch) override {
        const std::int64_t panels = conv_.op.groups * parts_;
#pragma omp parallel
        {
            float* const own = scratch + panels * weights_ + omp_get_thread_num() * own_;
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < panels * threads(); ++i) {
                const std::int64_t panel = i / threads();
                const float* from = b.weights.data() + panel / parts_ * conv_.group_filters * rows();
                pack_a_part({channels_of(panel % parts_) * conv_.taps, 0, conv_.group_filters},
                            {from + panel % parts_ * part_ * conv_.taps, 1, rows()}, i % threads(), threads(),
                            scratch + panel * weights_);
            }
#pragma omp for schedule(static)
            for (std::int64_t i = 0; i < conv_.batch * panels; ++i) {
                run_part(b, i / parts_, i % parts_, scratch + i % panels * weights_, own);
            }
        }
    }

    void run_part(const Buffers& b, std::int64_t index, std::int64_t part, const float* weights, float* own) {
        const std::int64_t pixels = conv_.out_pixels();
        float* const diff_src =
            b.diff_src[0].data() + (index * conv_.group_channels + part * part_) * conv_.in_pixels();
        const std::int64_t channels = channels_of(part);
        if (!is_matrix(conv_)) std::fill_n(diff_src, channels * conv_.in_pixels(), 0.0F);
        for (std::int64_t first = 0; first < pixels; first += tile_) {
            const GemmShape shape{channels * conv_.taps, width_at(first), conv_.group_filters};
            const MatrixView diff = diff_tile(b, index, first, own + columns_ + packed_);
            if (is_matrix(conv_)) {
                gemm_streamed(shape, weights, diff.data, diff.row, diff_src + first, pixels, false, own);
                continue;
            }
            pack_b(shape, diff, own + columns_);
            gemm_packed(shape, weights, own + columns_, own, tile_, false);
            for (std::int64_t c = 0; c < channels; ++c) {
                scatter(conv_, own + c * conv_.taps * tile_, tile_, first, shape.n, diff_src + c * conv_.in_pixels());
            }
        }
    }

    std::int64_t weights_, columns_, packed_, own_;
};

class BackwardWeights final : public Im2col {
public:
    BackwardWeights(const Problem& problem, Bytes limit) : Im2col(problem) {
        cut_channels(conv_.op.groups);
        cut_pixels(part_ * conv_.taps, limit, [this] {
            columns_ = whole_lines(is_matrix(conv_) ? 0 : part_ * conv_.taps * tile_);
            gemm_ = whole_lines(gemm_workspace({conv_.group_filters, part_ * conv_.taps, tile_}));
            own_ = columns_ + gemm_ + diff_tile_floats();
            return threads() * own_;
        });
    }

private:
    void compute(const Buffers& b, float* scratch) override {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < conv_.op.groups * parts_; ++i) {
            run_part(b, i / parts_, i % parts_, scratch + omp_get_thread_num() * own_);
        }
        if (conv_.op.bias) sum_diff_bias(conv_, b);
    }

    void run_part(const Buffers& b, std::int64_t group, std::int64_t part, float* own) {
        float* const diff_weights =
            b.diff_weights.data() + group * conv_.group_filters * rows() + part * part_ * conv_.taps;
        const std::int64_t pixels = conv_.out_pixels();
        const std::int64_t channels = channels_of(part);
        for (std::int64_t n = 0; n < conv_.batch; ++n) {
            const std::int64_t index = n * conv_.op.groups + group;
            const float* const image =
                b.src[0].data() + (index * conv_.group_channels + part * part_) * conv_.in_pixels();
            for (std::int64_t first = 0; first < pixels; first += tile_) {
                const GemmShape shape{conv_.group_filters, channels * conv_.taps, width_at(first)};
                for (std::int64_t c = 0; !is_matrix(conv_) && c < channels; ++c) {
                    gather(conv_, image + c * conv_.in_pixels(), first, shape.k, own + c * conv_.taps * tile_, tile_);
                }
                const MatrixView columns =
                    is_matrix(conv_) ? MatrixView{image + first, 1, pixels} : MatrixView{own, 1, tile_};
                gemm(shape, diff_tile(b, index, first, own + columns_ + gemm_), columns, diff_weights, rows(),
                     n + first > 0, own + columns_);
            }
        }
    }

    std::int64_t columns_, gemm_, own_;
};

class Im2colBackend final : public Algorithm {
public:
    std::string_view algorithm() const override { return "im2col"; }

private:
    std::string refusal(const Problem& problem) const override {
        return refuse_all_but_convolutions(problem, "im2col");
    }

    std::unique_ptr<Kernel> make(const Problem& problem) const override { return make_within(problem, any_scratch); }

    std::unique_ptr<Kernel> make_within(const Problem& problem, Bytes limit) const override {
        if (problem.pass == Pass::forward) return std::make_unique<Forward>(problem, limit);
        if (problem.pass == Pass::backward_data) return std::make_unique<BackwardData>(problem, limit);
        return std::make_unique<BackwardWeights>(problem, limit);
    }
};

}  // namespace

const Backend& im2col() {
    static const Im2colBackend backend;
    return backend;
}

}  // namespace rehearse::kernels::cpu
