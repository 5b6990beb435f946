// SPDX-License-Identifier: Apache-2.0
// Rows of tables picked by ids, and DLRM's dot products of what was picked.
#include <vector>

#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// Which rows of which table make row `token` of the output: offsets into the weights.
struct Rows {
    std::int64_t word, position, segment;  // -1: there is no such table
};

Rows rows_of(const Embedding& op, std::int64_t token, std::int64_t id, bool word_alone) {
    const std::int64_t positions = op.vocabulary;  // where the next table begins, in rows
    const std::int64_t segments = positions + op.positions;
    return {id >= 0 && id < op.vocabulary ? id * op.width : -1,
            op.positions > 0 && !word_alone ? (positions + token) * op.width : -1,
            op.segments > 0 && !word_alone ? (segments + token * op.segments / op.tokens) * op.width : -1};
}

void store(const std::vector<double>& sums, std::span<float> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(sums[i]);
}

}  // namespace

void run(const Embedding& op, Pass pass, std::int64_t batch, const Buffers& b) {
    std::vector<double> sums(b.diff_weights.size());
    const bool word_alone = pass == Pass::forward && b.first_row > 0;
    for (std::int64_t i = 0; i < batch * op.tokens; ++i) {
        const Rows rows = rows_of(op, i % op.tokens, b.indices[i] - b.first_row, word_alone);
        for (std::int64_t c = 0; c < op.width; ++c) {
            const std::int64_t at = i * op.width + c;
            double sum = 0;
            for (const std::int64_t row : {rows.word, rows.position, rows.segment}) {
                if (row < 0) continue;
                if (pass == Pass::forward) sum += b.weights[row + c];
                if (pass == Pass::backward_weights) sums[row + c] += b.diff_dst[at];
            }
            if (pass == Pass::forward) b.dst[at] = static_cast<float>(sum);
        }
    }
    if (pass == Pass::backward_weights) store(sums, b.diff_weights);
}

void run(const EmbeddingBag& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const bool direct = op.direct && pass == Pass::backward_weights;
    const double rate = b.learning_rate;
    std::vector<double> sums(pass == Pass::forward ? b.dst.size() : direct ? b.weights.size() : b.diff_weights.size());
    for (std::int64_t i = 0; i < batch * op.samples * op.tables * op.lookups; ++i) {
        const std::int64_t bag = i / op.lookups;
        const std::int64_t row = (bag % op.tables * op.vocabulary + b.indices[i]) * op.width;
        for (std::int64_t c = 0; c < op.width; ++c) {
            if (pass == Pass::forward) sums[bag * op.width + c] += b.weights[row + c];
            if (pass == Pass::backward_weights) sums[row + c] += b.diff_dst[bag * op.width + c];
        }
    }
    for (std::size_t i = 0; direct && i < sums.size(); ++i) {
        if (sums[i] != 0) b.weights[i] = static_cast<float>(b.weights[i] - rate * sums[i]);
    }
    if (!direct) store(sums, pass == Pass::forward ? b.dst : b.diff_weights);
}

void run(const Interaction& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::int64_t sparse = (op.vectors - 1) * op.width;
    const std::int64_t outputs = op.width + op.vectors * (op.vectors - 1) / 2;
    std::vector<double> sums(op.vectors * op.width);
    for (std::int64_t n = 0; n < batch; ++n) {
        const auto value = [&](std::int64_t i) -> double {  // of all vectors, one after the other
            return i < op.width ? b.src[0][n * op.width + i] : b.src[1][n * sparse + i - op.width];
        };
        std::int64_t pair = n * outputs + op.width;
        for (std::int64_t c = 0; c < op.width; ++c) {
            if (pass == Pass::forward) b.dst[n * outputs + c] = b.src[0][n * op.width + c];
            if (pass == Pass::backward_data) sums[c] = b.diff_dst[n * outputs + c];
        }
        if (pass == Pass::backward_data) std::fill(sums.begin() + op.width, sums.end(), 0.0);
        for (std::int64_t i = 1; i < op.vectors; ++i) {
            for (std::int64_t j = 0; j < i; ++j, ++pair) {
                double dot = 0;
                for (std::int64_t c = 0; c < op.width; ++c) {
                    const std::int64_t left = i * op.width + c;
                    const std::int64_t right = j * op.width + c;
                    dot += value(left) * value(right);
                    if (pass == Pass::forward) continue;
                    sums[left] += b.diff_dst[pair] * value(right);
                    sums[right] += b.diff_dst[pair] * value(left);
                }
                if (pass == Pass::forward) b.dst[pair] = static_cast<float>(dot);
            }
        }
        for (std::int64_t i = 0; pass == Pass::backward_data && i < op.vectors * op.width; ++i) {
            const std::span<float> to = b.diff_src[i < op.width ? 0 : 1];
            const std::int64_t at = i < op.width ? n * op.width + i : n * sparse + i - op.width;
            if (!to.empty()) to[at] = static_cast<float>(sums[i]);
        }
    }
}

}  // namespace rehearse::kernels::reference
