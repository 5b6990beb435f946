// SPDX-License-Identifier: Apache-2.0
// What only adds or moves values: sum, concatenation, channel padding, flattening.
#include <algorithm>
#include <vector>

#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {

void run(const Add& /*op*/, Pass pass, std::int64_t /*batch*/, const Buffers& b) {
    if (pass == Pass::backward_data) {
        for (const auto diff_src : b.diff_src) {
            if (!diff_src.empty()) std::ranges::copy(b.diff_dst, diff_src.begin());
        }
        return;
    }
    for (std::size_t i = 0; i < b.dst.size(); ++i) {
        double sum = 0;
        for (const auto src : b.src) sum += src[i];
        b.dst[i] = static_cast<float>(sum);
    }
}

void run(const Concat& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::int64_t area = pixels(op);
    std::int64_t at = 0;  // in the whole; a part's samples lie one after the other
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::size_t i = 0; i < op.channels.size(); ++i) {
            const std::int64_t part = op.channels[i] * area;
            if (pass == Pass::forward) {
                std::ranges::copy(b.src[i].subspan(n * part, part), b.dst.begin() + at);
            } else if (!b.diff_src[i].empty()) {
                std::ranges::copy(b.diff_dst.subspan(at, part), b.diff_src[i].begin() + n * part);
            }
            at += part;
        }
    }
}

void run(const ChannelPad& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::int64_t area = op.height * op.width;
    const std::int64_t inner = op.channels * area;
    const std::int64_t outer = (op.before + op.channels + op.after) * area;
    if (pass == Pass::forward) std::ranges::fill(b.dst, 0.0F);
    if (pass == Pass::backward_data && b.diff_src[0].empty()) return;
    for (std::int64_t n = 0; n < batch; ++n) {
        const std::int64_t at = n * outer + op.before * area;
        if (pass == Pass::forward) {
            std::ranges::copy(b.src[0].subspan(n * inner, inner), b.dst.begin() + at);
        } else {
            std::ranges::copy(b.diff_dst.subspan(at, inner), b.diff_src[0].begin() + n * inner);
        }
    }
}

void run(const Bias& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const auto dim = static_cast<std::size_t>(op.dim);
    const std::int64_t channels = op.shape[dim];
    std::int64_t inner = 1;  // elements of one channel that lie together
    for (std::size_t d = dim + 1; d < op.shape.size(); ++d) inner *= op.shape[d];
    const std::int64_t runs = batch * elements(op.shape) / inner;
    const auto channel_of = [&](std::int64_t run) { return run % channels; };
    if (pass == Pass::forward) {
        for (std::int64_t run = 0; run < runs; ++run) {
            const float bias = b.weights[channel_of(run)];
            for (std::int64_t i = run * inner; i < (run + 1) * inner; ++i) b.dst[i] = b.src[0][i] + bias;
        }
    } else if (pass == Pass::backward_data) {
        if (!b.diff_src[0].empty()) std::ranges::copy(b.diff_dst, b.diff_src[0].begin());
    } else {
        std::vector<double> sums(static_cast<std::size_t>(channels));
        for (std::int64_t run = 0; run < runs; ++run) {
            double& sum = sums[static_cast<std::size_t>(channel_of(run))];
            for (std::int64_t i = run * inner; i < (run + 1) * inner; ++i) sum += b.diff_dst[i];
        }
        std::ranges::transform(sums, b.diff_weights.begin(), [](double sum) { return static_cast<float>(sum); });
    }
}

void run(const Flatten& /*op*/, Pass pass, std::int64_t /*batch*/, const Buffers& b) {
    const auto from = pass == Pass::forward ? b.src[0] : b.diff_dst;
    const auto to = pass == Pass::forward ? b.dst : b.diff_src[0];
    if (!to.empty() && to.data() != from.data()) std::ranges::copy(from, to.begin());
}

}  // namespace rehearse::kernels::reference
