// SPDX-License-Identifier: Apache-2.0
#include "kernels/transposed.hpp"

#include <utility>

#include "kernels/buffers.hpp"

namespace rehearse::kernels {
namespace {

class Transposed final : public Kernel {
public:
    Transposed(const Problem& problem, std::unique_ptr<Kernel> kernel)
        : op_(std::get<ConvTranspose>(problem.op)),
          pass_(problem.pass),
          sizes_(problem, 0),
          weights_(elements(weights(problem.op)[0].shape)),
          pixels_(elements(output_shape(problem.op)) / op_.filters),
          kernel_(std::move(kernel)) {}

    Bytes scratch() const override { return kernel_->scratch(); }

    void run(const Buffers& buffers) override {
        sizes_.check(buffers);
        const auto count = static_cast<std::size_t>(weights_);
        const std::span<float> weights = buffers.weights;
        const std::span<float> diff_weights = buffers.diff_weights;
        Buffers mirror;
        if (pass_ == Pass::forward) {
            mirror.weights = weights.first(count);
            mirror.diff_dst = buffers.src[0];
            mirror.diff_src = {buffers.dst};
        } else if (pass_ == Pass::backward_data) {
            if (buffers.diff_src[0].empty()) return;
            mirror.weights = weights.first(count);
            mirror.src = {buffers.diff_dst};
            mirror.dst = buffers.diff_src[0];
        } else {
            mirror.src = {buffers.diff_dst};
            mirror.diff_dst = buffers.src[0];
            mirror.diff_weights = diff_weights.first(count);
        }
        kernel_->run(mirror);
        if (op_.bias && pass_ == Pass::forward) add_bias(weights.subspan(count), buffers.dst);
        if (op_.bias && pass_ == Pass::backward_weights) sum_diff_bias(buffers.diff_dst, diff_weights.subspan(count));
    }

private:
    void add_bias(std::span<const float> bias, std::span<float> dst) const {
        const auto planes = static_cast<std::int64_t>(dst.size()) / pixels_;
        for (std::int64_t plane = 0; plane < planes; ++plane) {
            const float value = bias[plane % op_.filters];
            for (float& pixel : dst.subspan(plane * pixels_, pixels_)) pixel += value;
        }
    }

    void sum_diff_bias(std::span<const float> diff_dst, std::span<float> diff_bias) const {
        const auto planes = static_cast<std::int64_t>(diff_dst.size()) / pixels_;
        for (std::int64_t f = 0; f < op_.filters; ++f) {
            double sum = 0;
            for (std::int64_t plane = f; plane < planes; plane += op_.filters) {
                for (const float diff : diff_dst.subspan(plane * pixels_, pixels_)) sum += diff;
            }
            diff_bias[f] = static_cast<float>(sum);
        }
    }

    ConvTranspose op_;
    Pass pass_;
    BufferSizes sizes_;
    std::int64_t weights_, pixels_;
    std::unique_ptr<Kernel> kernel_;
};

}  // namespace

bool is_mirrored(const Problem& problem) {
    return std::holds_alternative<ConvTranspose>(problem.op) && problem.pass != Pass::update;
}

Problem mirrored_problem(const Problem& problem) {
    Problem mirror = problem;
    mirror.op = mirrored(std::get<ConvTranspose>(problem.op));
    if (problem.pass == Pass::forward) mirror.pass = Pass::backward_data;
    if (problem.pass == Pass::backward_data) mirror.pass = Pass::forward;
    return mirror;
}

std::unique_ptr<Kernel> transposed(const Problem& problem, std::unique_ptr<Kernel> mirrored) {
    return std::make_unique<Transposed>(problem, std::move(mirrored));
}

}  // namespace rehearse::kernels
