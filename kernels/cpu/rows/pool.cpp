// SPDX-License-Identifier: Apache-2.0
// Max pooling channel by channel: a channel's image, its gradient and what is read of them stay in the cache.
#include "kernels/cpu/rows/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/rows/pool_simd.hpp"
#include "kernels/cpu/share.hpp"

namespace rehearse::kernels::cpu {
namespace {

// One dimension over which rows are picked: depth or height.
struct Picked {
    std::int64_t size, kernel, stride, dilation, pad;

    // Those of output `at` inside the image, in their order.
    template <typename Visit>
    void of(std::int64_t at, Visit visit) const {
        for (std::int64_t tap = 0; tap < kernel; ++tap) {
            const std::int64_t place = at * stride - pad + tap * dilation;
            if (place >= 0 && place < size) visit(place);
        }
    }
};

class MaxPool final : public Shared {
public:
    explicit MaxPool(const Problem& problem) : Shared(problem, 0), forward_(problem.pass == Pass::forward) {
        const auto& op = std::get<Pool>(problem.op);
        const Window& w = op.window;
        const Shape out = output_shape(problem.op);
        const std::int64_t depth = std::max<std::int64_t>(op.depth, 1), out_depth = op.depth > 0 ? out[1] : 1;
        const std::int64_t out_height = out[out.size() - 2], out_width = out.back();
        channels_ = problem.batch * op.channels;
        in_pixels_ = depth * op.height * op.width;
        out_pixels_ = out_depth * out_height * out_width;
        columns_ = pool_columns(op.width, out_width, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
        const Picked planes =
            op.depth > 0 ? Picked{depth, w.kernel_d, w.stride_d, w.dilation_d, w.pad_front} : Picked{1, 1, 1, 1, 0};
        const Picked lines{op.height, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top};
        for (std::int64_t z = 0; z < out_depth; ++z) {
            for (std::int64_t y = 0; y < out_height; ++y) {
                std::vector<std::int64_t> rows;
                planes.of(z, [&](std::int64_t plane) {
                    lines.of(y, [&](std::int64_t line) { rows.push_back((plane * op.height + line) * op.width); });
                });
                most_rows_ = std::max(most_rows_, std::ssize(rows));
                rows_.push_back(std::move(rows));
            }
        }
        room_ = columns_.room(most_rows_) * (forward_ ? 1 : 2);
        reserve(workers_ * room_);
    }

private:
    void compute(const Buffers& b, float* scratch) override {
        const float* const src = b.src[0].data();
        share(channels_, 1, workers_, [&](std::int64_t worker, Stretch part) {
            float* const room = scratch + worker * room_;
            for (std::int64_t channel = part.begin; channel < part.end; ++channel) {
                const float* const from = src + channel * in_pixels_;
                if (forward_) {
                    forward(from, room, b.dst.data() + channel * out_pixels_);
                } else {
                    backward(from, b.diff_dst.data() + channel * out_pixels_, room,
                             b.diff_src[0].data() + channel * in_pixels_);
                }
            }
        });
    }

    void forward(const float* src, float* room, float* dst) const {
        for (const std::vector<std::int64_t>& rows : rows_) {
            max_pool_row(columns_, {rows.data(), std::ssize(rows)}, src, room, dst);
            dst += columns_.out_width;
        }
    }

    void backward(const float* src, const float* diff_dst, float* room, float* diff_src) const {
        std::fill_n(diff_src, in_pixels_, 0.0F);
        for (const std::vector<std::int64_t>& rows : rows_) {
            max_pool_row_gradient(columns_, {rows.data(), std::ssize(rows)}, src, diff_dst, room, diff_src);
            diff_dst += columns_.out_width;
        }
    }

    bool forward_;
    std::int64_t channels_ = 1, in_pixels_ = 1, out_pixels_ = 1, most_rows_ = 0, room_ = 0;
    PoolColumns columns_;
    std::vector<std::vector<std::int64_t>> rows_;  // of the image, that each row of the output reads
};

class PoolBackend final : public Algorithm {
public:
    std::string_view algorithm() const override { return "pool"; }

private:
    std::string refusal(const Problem& problem) const override {
        const auto* pooled = std::get_if<Pool>(&problem.op);
        if (pooled == nullptr) return fmt::format("pool runs pooling, not {}", kind_of(problem.op));
        if (pooled->kind != PoolKind::max) return "pool takes the largest voxel of a window, not the average";
        return pooled->depth > 0 ? "" : "pool runs volumes, not images";
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override { return std::make_unique<MaxPool>(problem); }
};

}  // namespace

const Backend& pool() {
    static const PoolBackend backend;
    return backend;
}

}  // namespace rehearse::kernels::cpu
