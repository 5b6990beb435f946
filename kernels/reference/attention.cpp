// SPDX-License-Identifier: Apache-2.0
// Attention as it is defined (Vaswani et al. 2017, equation 1), query by query. The workspace keeps log sum exp of each
// query's scores, from which backward has the probabilities again.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/heads.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

using In = HeadRows<const float>;
using Sums = std::vector<double>;

double dot(const float* a, const float* b, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
}

// Scaled scores of the keys that query i sees.
Sums scores_of(const Attention& op, In q, In k, std::int64_t i) {
    Sums scores;
    for (std::int64_t j = 0; j < keys_seen(op, i); ++j) {
        scores.push_back(score_scale(op) * dot(q.data + i * q.row, k.data + j * k.row, op.head_size));
    }
    return scores;
}

// Scores become probabilities; the logarithm of the sum of their exponentials.
double softmax(Sums& scores) {
    const double largest = *std::ranges::max_element(scores);
    double total = 0;
    for (double& each : scores) {
        each = std::exp(each - largest);
        total += each;
    }
    for (double& each : scores) each /= total;
    return largest + std::log(total);
}

void forward_head(const Attention& op, const Buffers& b, std::int64_t sample, std::int64_t head) {
    const auto q = rows_of_head<const float>(op, b.src, Part::q, sample, head);
    const auto k = rows_of_head<const float>(op, b.src, Part::k, sample, head);
    const auto v = rows_of_head<const float>(op, b.src, Part::v, sample, head);
    const auto dst = rows_of_result<float>(op, b.dst, sample, head);
    for (std::int64_t i = 0; i < op.queries; ++i) {
        Sums p = scores_of(op, q, k, i);
        const double log_sum = softmax(p);
        for (std::int64_t c = 0; c < value_size(op); ++c) {
            double sum = 0;
            for (std::size_t j = 0; j < p.size(); ++j) {
                sum += p[j] * v.data[static_cast<std::int64_t>(j) * v.row + c];
            }
            dst.data[i * dst.row + c] = static_cast<float>(sum);
        }
        b.workspace[(sample * op.heads + head) * op.queries + i] = static_cast<float>(log_sum);
    }
}

// `again`: onto what an earlier head of those that share the rows left there.
void store(const Sums& sums, HeadRows<float> to, std::int64_t rows, std::int64_t size, bool again = false) {
    if (to.data == nullptr) return;
    for (std::int64_t i = 0; i < rows * size; ++i) {
        float& value = to.data[i / size * to.row + i % size];
        value = static_cast<float>((again ? static_cast<double>(value) : 0) + sums[static_cast<std::size_t>(i)]);
    }
}

// With P the probabilities: dV = P^T dO, dP = dO V^T, dS = P (dP - row sums of P dP), dQ = scale dS K, dK = scale dS^T
// Q. P is computed anew in double: from the workspace it would carry that number's rounding.
void backward_head(const Attention& op, const Buffers& b, std::int64_t sample, std::int64_t head) {
    const auto q = rows_of_head<const float>(op, b.src, Part::q, sample, head);
    const auto k = rows_of_head<const float>(op, b.src, Part::k, sample, head);
    const auto v = rows_of_head<const float>(op, b.src, Part::v, sample, head);
    const auto diff = rows_of_result<const float>(op, b.diff_dst, sample, head);
    const std::int64_t size = op.head_size, values = value_size(op);
    Sums diff_q(op.queries * size), diff_k(op.keys * size), diff_v(op.keys * values);
    for (std::int64_t i = 0; i < op.queries; ++i) {
        Sums p = scores_of(op, q, k, i);
        softmax(p);
        Sums diff_p;
        double common = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
            diff_p.push_back(dot(diff.data + i * diff.row, v.data + static_cast<std::int64_t>(j) * v.row, values));
            common += p[j] * diff_p[j];
        }
        for (std::int64_t j = 0; j < static_cast<std::int64_t>(p.size()); ++j) {
            const double diff_score = score_scale(op) * p[j] * (diff_p[j] - common);
            for (std::int64_t c = 0; c < size; ++c) {
                diff_q[i * size + c] += diff_score * k.data[j * k.row + c];
                diff_k[j * size + c] += diff_score * q.data[i * q.row + c];
            }
            for (std::int64_t c = 0; c < values; ++c) diff_v[j * values + c] += p[j] * diff.data[i * diff.row + c];
        }
    }
    store(diff_q, rows_of_head<float>(op, b.diff_src, Part::q, sample, head), op.queries, size);
    const bool again = head % (op.heads / key_heads(op)) != 0;
    store(diff_k, rows_of_head<float>(op, b.diff_src, Part::k, sample, head), op.keys, size, again);
    store(diff_v, rows_of_head<float>(op, b.diff_src, Part::v, sample, head), op.keys, values, again);
}

}  // namespace

void run(const Attention& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    for (std::int64_t sample = 0; sample < batch; ++sample) {
        for (std::int64_t head = 0; head < op.heads; ++head) {
            if (pass == Pass::forward) forward_head(op, buffers, sample, head);
            if (pass == Pass::backward_data) backward_head(op, buffers, sample, head);
        }
    }
}

}  // namespace rehearse::kernels::reference
