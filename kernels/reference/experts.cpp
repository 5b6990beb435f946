// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: tokens to the slots of the experts that they choose, a dense layer of each expert, and back.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

constexpr std::int64_t nowhere = -1;

/// One of a token's choices: the expert, the token's slot in its group, and how much what lies there weighs.
struct Choice {
    std::int64_t expert = 0, slot = nowhere;
    double weight = 0;
};

/// The choices of the tokens of all groups, `top` a token.
class Choices {
public:
    Choices(const Routing& routing, std::int64_t batch, ConstView scores) : r_(routing), scores_(scores) {
        const std::int64_t in_group = r_.group * r_.tokens;
        choices_.resize(batch * r_.tokens * r_.top);
        for (std::int64_t first = 0; first < batch * r_.tokens; first += in_group) fill_group(first, in_group);
    }

    Choice of(std::int64_t token, std::int64_t which) const { return choices_[token * r_.top + which]; }
    /// Where values of a choice's slot begin in the tensor of slots.
    std::int64_t place(std::int64_t token, const Choice& choice) const {
        const std::int64_t group = token / (r_.group * r_.tokens);
        return (group * r_.experts * r_.capacity + choice.slot) * r_.width;
    }
    /// visit(which, choice, place) for each choice of a token that found a slot.
    template <typename Visit>
    void each_placed(std::int64_t token, Visit visit) const {
        for (std::int64_t which = 0; which < r_.top; ++which) {
            const Choice choice = of(token, which);
            if (choice.slot != nowhere) visit(which, choice, place(token, choice));
        }
    }
    double score(std::int64_t token, std::int64_t expert) const { return scores_[token * r_.experts + expert]; }

    /// Softmax of a token's scores.
    std::vector<double> probabilities(std::int64_t token) const {
        double largest = score(token, 0), sum = 0;
        for (std::int64_t e = 1; e < r_.experts; ++e) largest = std::max(largest, score(token, e));
        std::vector<double> shares(r_.experts);
        for (std::int64_t e = 0; e < r_.experts; ++e) sum += shares[e] = std::exp(score(token, e) - largest);
        for (double& share : shares) share /= sum;
        return shares;
    }

private:
    void fill_group(std::int64_t first, std::int64_t tokens) {
        for (std::int64_t t = first; t < first + tokens; ++t) choose(t);
        std::vector<std::int64_t> taken(r_.experts);
        for (std::int64_t which = 0; which < r_.top; ++which) {
            for (std::int64_t t = first; t < first + tokens; ++t) {
                Choice& choice = choices_[t * r_.top + which];
                std::int64_t& count = taken[choice.expert];
                if (count < r_.capacity) choice.slot = choice.expert * r_.capacity + count++;
            }
        }
    }

    void choose(std::int64_t token) {
        const std::vector<double> shares = probabilities(token);
        double sum = 0;
        for (std::int64_t which = 0; which < r_.top; ++which) {
            std::int64_t best = nowhere;
            for (std::int64_t e = 0; e < r_.experts; ++e) {
                const bool free = !is_chosen(token, which, e);
                if (free && (best == nowhere || score(token, e) > score(token, best))) best = e;
            }
            choices_[token * r_.top + which] = {best, nowhere, shares[best]};
            sum += shares[best];
        }
        for (std::int64_t which = 0; r_.top > 1 && which < r_.top; ++which) {
            choices_[token * r_.top + which].weight /= sum;
        }
    }

    bool is_chosen(std::int64_t token, std::int64_t before, std::int64_t expert) const {
        for (std::int64_t which = 0; which < before; ++which) {
            if (of(token, which).expert == expert) return true;
        }
        return false;
    }

    Routing r_;
    ConstView scores_;
    std::vector<Choice> choices_;
};

void fill_zero(View values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0;
}

// Of the scores of one token from those of its weights: with top = 1 the weight is the softmax of all, else that of
// those chosen.
void give_scores(const Routing& r, const Choices& choices, std::int64_t token, const std::vector<double>& of_weight,
                 View diff_scores) {
    double mean = 0;
    for (std::int64_t c = 0; c < r.top; ++c) mean += choices.of(token, c).weight * of_weight[c];
    const auto give = [&](std::int64_t expert, double value) {
        diff_scores[token * r.experts + expert] = static_cast<float>(value);
    };
    if (r.top == 1) {
        const std::vector<double> shares = choices.probabilities(token);
        for (std::int64_t e = 0; e < r.experts; ++e) give(e, -shares[e] * mean);
    }
    for (std::int64_t c = 0; c < r.top; ++c) {
        const Choice choice = choices.of(token, c);
        give(choice.expert, choice.weight * (of_weight[c] - mean));
    }
}

}  // namespace

void run(const DispatchTokens& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const Routing& r = op.routing;
    const Choices choices{r, batch, b.src[1]};
    const bool forward = pass == Pass::forward;
    if (forward) fill_zero(b.dst);
    if (!forward && !b.diff_src[1].empty()) fill_zero(b.diff_src[1]);
    for (std::int64_t t = 0; t < batch * r.tokens && (forward || !b.diff_src[0].empty()); ++t) {
        for (std::int64_t i = 0; i < r.width; ++i) {
            double sum = 0;
            choices.each_placed(t, [&](std::int64_t, const Choice&, std::int64_t place) {
                if (forward) b.dst[place + i] = b.src[0][t * r.width + i];
                if (!forward) sum += b.diff_dst[place + i];
            });
            if (!forward) b.diff_src[0][t * r.width + i] = static_cast<float>(sum);
        }
    }
}

void run(const CombineTokens& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const Routing& r = op.routing;
    const Choices choices{r, batch, b.src[1]};
    const bool forward = pass == Pass::forward;
    const bool slots = !forward && !b.diff_src[0].empty(), scores = !forward && !b.diff_src[1].empty();
    if (slots) fill_zero(b.diff_src[0]);
    if (scores) fill_zero(b.diff_src[1]);
    std::vector<double> of_weight(r.top);
    for (std::int64_t t = 0; t < batch * r.tokens; ++t) {
        std::fill(of_weight.begin(), of_weight.end(), 0.0);
        for (std::int64_t i = 0; i < r.width; ++i) {
            double sum = 0;
            choices.each_placed(t, [&](std::int64_t c, const Choice& choice, std::int64_t place) {
                sum += choice.weight * b.src[0][place + i];
                if (forward) return;
                const double diff = b.diff_dst[t * r.width + i];
                of_weight[c] += diff * b.src[0][place + i];
                if (slots) b.diff_src[0][place + i] = static_cast<float>(choice.weight * diff);
            });
            if (forward) b.dst[t * r.width + i] = static_cast<float>(sum);
        }
        if (scores) give_scores(r, choices, t, of_weight, b.diff_src[1]);
    }
}

void run(const GroupedMatMul& op, Pass pass, std::int64_t batch, const Buffers& b) {
    // Block after block, {experts, rows, .} each.
    const std::int64_t blocks = op.sources * batch / op.group;
    const std::int64_t bias = op.experts * op.k * op.n;
    const auto each_row = [&](std::int64_t expert, auto visit) {
        for (std::int64_t block = 0; block < blocks; ++block) {
            const std::int64_t first = (block * op.experts + expert) * op.rows;
            for (std::int64_t row = first; row < first + op.rows; ++row) visit(row);
        }
    };
    for (std::int64_t e = 0; e < op.experts; ++e) {
        const auto weight_at = [&](std::int64_t l, std::int64_t j) { return (e * op.k + l) * op.n + j; };
        for (std::int64_t j = 0; j < op.n && pass == Pass::forward; ++j) {
            each_row(e, [&](std::int64_t row) {
                double sum = op.bias ? b.weights[bias + e * op.n + j] : 0.0;
                for (std::int64_t l = 0; l < op.k; ++l)
                    sum += static_cast<double>(b.src[0][row * op.k + l]) * b.weights[weight_at(l, j)];
                b.dst[row * op.n + j] = static_cast<float>(sum);
            });
        }
        for (std::int64_t l = 0; l < op.k && pass == Pass::backward_data && !b.diff_src[0].empty(); ++l) {
            each_row(e, [&](std::int64_t row) {
                double sum = 0;
                for (std::int64_t j = 0; j < op.n; ++j)
                    sum += static_cast<double>(b.diff_dst[row * op.n + j]) * b.weights[weight_at(l, j)];
                b.diff_src[0][row * op.k + l] = static_cast<float>(sum);
            });
        }
        // The row of the bias is one whose inputs are all 1.
        const std::int64_t inputs = pass == Pass::backward_weights ? op.k + (op.bias ? 1 : 0) : 0;
        for (std::int64_t l = 0; l < inputs; ++l) {
            for (std::int64_t j = 0; j < op.n; ++j) {
                double sum = 0;
                each_row(e, [&](std::int64_t row) {
                    const double x = l < op.k ? b.src[0][row * op.k + l] : 1.0F;
                    sum += x * b.diff_dst[row * op.n + j];
                });
                b.diff_weights[l < op.k ? weight_at(l, j) : bias + e * op.n + j] = static_cast<float>(sum);
            }
        }
    }
}

}  // namespace rehearse::kernels::reference
