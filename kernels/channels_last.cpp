// SPDX-License-Identifier: Apache-2.0
#include "kernels/channels_last.hpp"

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "kernels/delegate.hpp"

namespace rehearse::kernels {
namespace {

/// A tensor {outer, channels, pixels}; what lies behind it, a bias, keeps its place.
struct Planes {
    std::int64_t outer = 1, channels = 1, pixels = 1;
};

// Of {outer, channels, pixels} numbers {outer, pixels, channels}, or the other way.
void relay(const Planes& of, ConstView from, View to, bool to_last) {
    const std::size_t element = from.size_bytes() / from.size();
    const auto* const read = static_cast<const std::byte*>(from.bytes());
    auto* const written = static_cast<std::byte*>(to.bytes());
    std::size_t first = 0;
    for (std::int64_t o = 0; o < of.outer; ++o) {
        for (std::int64_t c = 0; c < of.channels; ++c) {
            for (std::int64_t p = 0; p < of.pixels; ++p, first += element) {
                const auto last = static_cast<std::size_t>((o * of.pixels + p) * of.channels + c) * element;
                std::memcpy(written + (to_last ? last : first), read + (to_last ? first : last), element);
            }
        }
    }
    std::memcpy(written + first, read + first, from.size_bytes() - first);
}

class RelaidKernel final : public Kernel {
public:
    RelaidKernel(const Problem& problem, std::unique_ptr<Kernel> kernel)
        : problem_(problem), kernel_(std::move(kernel)) {
        if (const auto* norm = std::get_if<BatchNorm>(&problem.op)) {
            src_ = dst_ = {problem.batch, norm->channels, elements(output_shape(problem.op)) / norm->channels};
            weights_ = {0};  // gamma and beta stay as they are
            return;
        }
        const auto& op = std::get<Conv>(problem.op);
        const std::int64_t channels = op.channels / op.groups;
        src_ = {problem.batch, op.channels, elements(input_shapes(problem.op)[0]) / op.channels};
        dst_ = {problem.batch, op.filters, elements(output_shape(problem.op)) / op.filters};
        weights_ = {op.filters, channels, elements(weights(problem.op)[0].shape) / (op.filters * channels)};
    }
    Bytes scratch() const override { return kernel_->scratch(); }
    void run(const Buffers& first) override {
        if (problem_.pass == Pass::update) return kernel_->run(first);
        memory_.clear();
        Buffers last = first;
        if (!first.src.empty()) last.src[0] = inside(src_, first.src[0]);
        last.weights = inside(weights_, first.weights);
        if (problem_.pass == Pass::forward) {
            last.dst = inside(dst_, first.dst);
            kernel_->run(last);
            return relay(dst_, last.dst, first.dst, false);
        }
        last.diff_dst = inside(dst_, first.diff_dst);
        if (problem_.pass == Pass::backward_data) {
            last.diff_src[0] = inside(src_, first.diff_src[0]);
            kernel_->run(last);
            if (first.diff_src[0].empty()) return;
            return relay(src_, last.diff_src[0], first.diff_src[0], false);
        }
        last.diff_weights = inside(weights_, first.diff_weights);
        kernel_->run(last);
        relay(weights_, last.diff_weights, first.diff_weights, false);
    }

private:
    // The same numbers, laid channels last; at whole 16 bytes, as all that `new` gives.
    View inside(const Planes& of, ConstView outside) {
        if (outside.empty()) return {};
        memory_.emplace_back(outside.size_bytes() / sizeof(float) + 1);
        const View made{memory_.back().data(), outside.size(), outside.type()};
        relay(of, outside, made, true);
        return made;
    }

    Problem problem_;
    std::unique_ptr<Kernel> kernel_;
    Planes src_, dst_, weights_;
    std::deque<std::vector<float>> memory_;
};

class Relaid final : public Delegate {
public:
    using Delegate::Delegate;
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        return std::make_unique<RelaidKernel>(problem, backend_.prepare(problem));
    }
};

}  // namespace

std::unique_ptr<Backend> channels_first(const Backend& backend) { return std::make_unique<Relaid>(backend); }

}  // namespace rehearse::kernels
