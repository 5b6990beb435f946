// SPDX-License-Identifier: Apache-2.0
// Batch normalization on NCHW as it lies. Channels are taken a few at a time, as many as stay in the second-level cache
// between the sums and what is computed with them: memory is read once, although there are two passes over the values.
// One sweep gives mean and variance, as sums of distances from the mean of the channel's first plane. That mean is at
// most sqrt(samples) deviations off, so that taking the squared mean distance away again cannot lose more than a factor
// of `samples` of the precision.
#include "kernels/batchnorm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/rows/batchnorm.hpp"
#include "kernels/cpu/rows/batchnorm_simd.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t cached_floats = 128 * 1024;  // 512 KiB: half of a second-level cache
constexpr std::int64_t most_channels = 64;          // at a time

class Normalization final : public CheckedKernel {
public:
    explicit Normalization(const Problem& problem)
        : CheckedKernel(problem),
          simd_(batchnorm_simd()),
          op_(std::get<BatchNorm>(problem.op)),
          batch_(problem.batch),
          area_(std::max<std::int64_t>(op_.depth, 1) * op_.height * op_.width),
          count_(static_cast<double>(batch_ * area_)),
          forward_(problem.pass == Pass::forward) {
        const std::int64_t tensors = forward_ ? 2 : 3;  // src and dst; src, dst and diff_dst
        group_ = std::clamp<std::int64_t>(cached_floats / (tensors * batch_ * area_), 1, most_channels);
        group_ = std::min(group_, divide_up(op_.channels, threads()));
        if (!op_.affine) {
            plain_.assign(static_cast<std::size_t>(2 * op_.channels), 0);
            std::fill_n(plain_.begin(), op_.channels, 1.0F);
        }
        reserve(0);
    }

private:
    using Sums = std::array<TwoSums, most_channels>;

    void compute(const Buffers& b, float* /*scratch*/) override {
#pragma omp parallel for schedule(static)
        for (std::int64_t first = 0; first < op_.channels; first += group_) {
            const std::int64_t last = std::min(first + group_, op_.channels);
            forward_ ? forward(b, first, last) : backward(b, first, last);
        }
        if (forward_) update_running_statistics(op_, batch_, b);
    }

    const float* weights(const Buffers& b) const { return op_.affine ? b.weights.data() : plain_.data(); }

    // visit(channel, where its plane of a sample begins), sample after sample.
    template <typename Visit>
    void for_each_plane(std::int64_t first, std::int64_t last, Visit visit) const {
        for (std::int64_t n = 0; n < batch_; ++n) {
            for (std::int64_t c = first; c < last; ++c) visit(c, (n * op_.channels + c) * area_);
        }
    }

    void forward(const Buffers& b, std::int64_t first, std::int64_t last) const {
        const float* const src = b.src[0].data();
        const float* const shortcut = op_.add ? b.src[1].data() : nullptr;
        const float* const gamma = weights(b);
        float* const mean = b.workspace.data();
        float* const variance = mean + op_.channels;
        Sums sums{};
        for (std::int64_t c = first; c < last; ++c) {
            TwoSums plane;
            simd_.add_distances(src + c * area_, area_, 0, plane);
            mean[c] = static_cast<float>(plane.first / static_cast<double>(area_));
        }
        for_each_plane(first, last, [&](std::int64_t c, std::int64_t at) {
            simd_.add_distances(src + at, area_, mean[c], sums[c - first]);
        });
        std::array<float, most_channels> scale;
        for (std::int64_t c = first; c < last; ++c) {
            const double distance = sums[c - first].first / count_;
            // In this order a variance that is not a number stays so.
            const double spread = std::max(sums[c - first].second / count_ - distance * distance, 0.0);
            mean[c] = static_cast<float>(mean[c] + distance);
            variance[c] = static_cast<float>(spread);
            scale[c - first] = static_cast<float>(gamma[c] / std::sqrt(spread + op_.epsilon));
        }
        for_each_plane(first, last, [&](std::int64_t c, std::int64_t at) {
            simd_.normalize(src + at, shortcut == nullptr ? nullptr : shortcut + at, b.dst.data() + at, area_, mean[c],
                            scale[c - first], gamma[op_.channels + c], op_.relu);
        });
    }

    void backward(const Buffers& b, std::int64_t first, std::int64_t last) const {
        const float* const src = b.src[0].data();
        const float* const mean = b.workspace.data();
        float* const keep = op_.add && !b.diff_src[1].empty() ? b.diff_src[1].data() : nullptr;
        const auto offset = [](auto* tensor, std::int64_t at) { return tensor == nullptr ? nullptr : tensor + at; };
        const float* const dst = op_.relu ? b.dst_in.data() : nullptr;
        Sums sums{};
        for_each_plane(first, last, [&](std::int64_t c, std::int64_t at) {
            simd_.add_gradients(src + at, b.diff_dst.data() + at, offset(dst, at), offset(keep, at), area_, mean[c],
                                sums[c - first]);
        });
        std::array<float, most_channels> inverse;  // of the deviation
        for (std::int64_t c = first; c < last; ++c) {
            inverse[c - first] = static_cast<float>(1 / std::sqrt(mean[op_.channels + c] + op_.epsilon));
            if (!op_.affine) continue;
            b.diff_weights[c] = static_cast<float>(sums[c - first].second * inverse[c - first]);
            b.diff_weights[op_.channels + c] = static_cast<float>(sums[c - first].first);
        }
        if (b.diff_src[0].empty()) return;
        // Where the shortcut has its gradient, ReLU has been applied in it.
        const float* const diff = keep != nullptr ? keep : b.diff_dst.data();
        const float* const sign = keep != nullptr ? nullptr : dst;
        for_each_plane(first, last, [&](std::int64_t c, std::int64_t at) {
            const double share = inverse[c - first] / count_;
            simd_.gradient(src + at, diff + at, offset(sign, at), b.diff_src[0].data() + at, area_, mean[c],
                           weights(b)[c] * inverse[c - first], static_cast<float>(sums[c - first].first / count_),
                           static_cast<float>(sums[c - first].second * share * inverse[c - first]));
        });
    }

    const BatchNormSimd& simd_;
    BatchNorm op_;
    std::int64_t batch_, area_;
    double count_;  // values a channel
    bool forward_;
    std::int64_t group_ = 1;    // channels at a time
    std::vector<float> plain_;  // gammas of 1 and betas of 0 where there are none
};

class BatchNormBackend final : public Algorithm {
public:
    std::string_view algorithm() const override { return "batchnorm"; }

private:
    std::string refusal(const Problem& problem) const override {
        const auto* norm = std::get_if<BatchNorm>(&problem.op);
        if (norm != nullptr && norm->parts > 1) return "batchnorm takes no sums of other ranks";
        if (norm != nullptr) return {};
        return fmt::format("batchnorm runs batchnorm, not {}", kind_of(problem.op));
    }

    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        return std::make_unique<Normalization>(problem);
    }
};

}  // namespace

const Backend& batchnorm() {
    static const BatchNormBackend backend;
    return backend;
}

}  // namespace rehearse::kernels::cpu
