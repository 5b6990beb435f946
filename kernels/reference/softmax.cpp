// SPDX-License-Identifier: Apache-2.0
// Softmax, and softmax with cross-entropy against one label a sample, pixel or row. The largest score is subtracted
// first, so that no exponential overflows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// Logarithms of a row's probabilities. The largest score and the logarithm of the sum stay apart: beside a score of
// 10^19 nothing would be left of the logarithm.
class LogProbabilities {
public:
    explicit LogProbabilities(std::span<const float> scores)
        : largest_(*std::max_element(scores.begin(), scores.end())) {
        double sum = 0;
        for (const float score : scores) sum += std::exp(score - largest_);
        log_sum_ = std::log(sum);
    }
    double of(float score) const { return score - largest_ - log_sum_; }

private:
    double largest_, log_sum_ = 0;
};

// What the rows of labels that ask for something count for, so that the mean over all rows is that of these.
double share_of_labelled(std::span<const std::int32_t> labels) {
    const auto asking = std::ranges::count_if(labels, [](std::int32_t label) { return label >= 0; });
    return asking == 0 ? 0 : static_cast<double>(labels.size()) / static_cast<double>(asking);
}

}  // namespace

void run(const Softmax& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (pass == Pass::backward_data && b.diff_src[0].empty()) return;
    for (std::int64_t first = 0; first < batch * op.classes; first += op.classes) {
        if (pass == Pass::forward) {
            const LogProbabilities log_probability{b.src[0].subspan(first, op.classes)};
            for (std::int64_t i = first; i < first + op.classes; ++i) {
                b.dst[i] = static_cast<float>(std::exp(log_probability.of(b.src[0][i])));
            }
            continue;
        }
        double common = 0;
        for (std::int64_t i = first; i < first + op.classes; ++i) {
            common += static_cast<double>(b.diff_dst[i]) * b.dst_in[i];
        }
        for (std::int64_t i = first; i < first + op.classes; ++i) {
            b.diff_src[0][i] = static_cast<float>(b.dst_in[i] * (b.diff_dst[i] - common));
        }
    }
}

void run(const SoftmaxLoss& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (pass == Pass::backward_data && b.diff_src[0].empty()) return;
    const std::int64_t area = elements(op.image);
    const std::int64_t places = area * op.rows;  // of a sample; area or rows is 1
    std::vector<float> scores(op.classes);
    const double share = share_of_labelled(b.labels.first(static_cast<std::size_t>(batch * places)));
    for (std::int64_t n = 0; n < batch; ++n) {
        double loss = 0;
        for (std::int64_t place = 0; place < places; ++place) {
            const std::int64_t first = n * op.classes * places + place * (op.rows > 1 ? op.classes : 1);
            for (std::int64_t i = 0; i < op.classes; ++i) scores[i] = b.src[0][first + i * area];
            const LogProbabilities log_probability{scores};
            const std::int32_t label = b.labels[n * places + place];
            require(label < op.classes, "a label is one of the classes");
            const bool asks = label >= 0;
            const double weight = !asks ? 0 : share * (op.class_weights.empty() ? 1 : op.class_weights[label]);
            loss -= asks ? weight * log_probability.of(scores[label]) : 0;
            if (pass == Pass::forward) continue;
            for (std::int64_t i = 0; i < op.classes; ++i) {
                const double diff = std::exp(log_probability.of(scores[i])) - (i == label ? 1 : 0);
                b.diff_src[0][first + i * area] =
                    static_cast<float>(weight * diff / static_cast<double>(places * b.loss_batch));
            }
        }
        if (pass == Pass::forward) b.dst[n] = static_cast<float>(loss / static_cast<double>(places));
    }
}

// A rank whose share only fills up has the lowest of all numbers for its largest score, and a sum of nothing.
void run(const SoftmaxTerms& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (pass == Pass::backward_data && b.diff_src[0].empty()) return;
    const std::int64_t words = op.words == 0 ? op.classes * op.parts : op.words;
    const std::int64_t there = std::clamp<std::int64_t>(words - b.first_row, 0, op.classes);
    for (std::int64_t row = 0; row < batch * op.rows; ++row) {
        const std::span<const float> scores = b.src[0].subspan(row * op.classes, there);
        const std::int64_t label = b.labels[row] - b.first_row;
        require(b.labels[row] < words, "a label is one of the classes");
        const bool own = b.labels[row] >= 0 && label >= 0 && label < there;
        if (pass == Pass::forward) {
            double largest = std::numeric_limits<float>::lowest();
            for (const float score : scores) largest = std::max<double>(largest, score);
            double others = 0;
            for (std::int64_t i = 0; i < there; ++i) others += own && i == label ? 0 : std::exp(scores[i] - largest);
            b.dst[3 * row] = static_cast<float>(largest);
            b.dst[3 * row + 1] = static_cast<float>(others);
            b.dst[3 * row + 2] = own ? scores[label] : 0;
            continue;
        }
        const double largest = b.dst_in[3 * row], of_sum = b.diff_dst[3 * row + 1], of_label = b.diff_dst[3 * row + 2];
        for (std::int64_t i = 0; i < there; ++i) {
            const double diff = own && i == label ? of_label : of_sum * std::exp(scores[i] - largest);
            b.diff_src[0][row * op.classes + i] = static_cast<float>(diff);
        }
        for (std::int64_t i = there; i < op.classes; ++i) b.diff_src[0][row * op.classes + i] = 0;
    }
}

void run(const TermsLoss& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (pass == Pass::backward_data && b.diff_src[0].empty()) return;
    // Of one part there are no labels: it is a mean of numbers (models/onnx/losses.cpp).
    const std::size_t labelled = op.parts == 1 ? 0 : static_cast<std::size_t>(batch * op.rows);
    const std::span<const std::int32_t> labels = b.labels.first(std::min(b.labels.size(), labelled));
    const double of_row = labels.empty() ? 1 : share_of_labelled(labels);
    const double share = of_row / static_cast<double>(op.rows * b.loss_batch);
    for (std::int64_t n = 0; n < batch; ++n) {
        double loss = 0;
        for (std::int64_t row = n * op.rows; row < (n + 1) * op.rows; ++row) {
            if (!labels.empty() && labels[static_cast<std::size_t>(row)] < 0) {
                if (pass == Pass::forward) continue;
                const auto rest = b.diff_src[0].subspan(3 * op.parts * row, 3 * op.parts);
                std::fill(rest.begin(), rest.end(), 0.0F);
                continue;
            }
            const std::span<const float> terms = b.src[0].subspan(3 * op.parts * row, 3 * op.parts);
            double largest = terms[0], others = 0, label = 0;
            for (std::int64_t i = 0; i < op.parts; ++i) largest = std::max<double>(largest, terms[3 * i]);
            for (std::int64_t i = 0; i < op.parts; ++i) {
                others += std::exp(terms[3 * i] - largest) * terms[3 * i + 1];
                label += terms[3 * i + 2];
            }
            const double sum = others + (op.parts == 1 ? 0 : std::exp(label - largest));
            loss += largest - label + std::log(sum);
            if (pass == Pass::forward) continue;
            const std::span<float> diff = b.diff_src[0];
            for (std::int64_t i = 0; i < op.parts; ++i) {
                float* const own = diff.data() + 3 * (op.parts * row + i);
                own[0] = 0;
                own[1] = static_cast<float>(share * std::exp(terms[3 * i] - largest) / sum);
                own[2] = static_cast<float>(-share * others / sum);
            }
        }
        if (pass == Pass::forward) b.dst[n] = static_cast<float>(of_row * loss / static_cast<double>(op.rows));
    }
}

}  // namespace rehearse::kernels::reference
