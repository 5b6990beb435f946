// SPDX-License-Identifier: Apache-2.0
#include "search/finalists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rehearse::search {

namespace {

double doublings(std::int64_t a, std::int64_t b) {
    return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

}  // namespace

double distance(const Choices& a, const Choices& b) {
    const Shape &s = a.shape, &t = b.shape;
    return doublings(s.data, t.data) + doublings(s.tensor, t.tensor) + doublings(s.pipe, t.pipe) +
           doublings(s.expert, t.expert) + doublings(s.context, t.context) + doublings(a.micro_batch, b.micro_batch) +
           doublings(a.chunks, b.chunks) + (a.zero != b.zero ? 1 : 0) + (a.recompute != b.recompute ? 1 : 0) +
           (a.sequence != b.sequence ? 1 : 0) + (a.ring != b.ring ? 1 : 0) +
           (s.data_outside != t.data_outside ? 2 : 0) + (a.overlap != b.overlap ? 2 : 0);
}

Finalists::Finalists(const std::vector<Candidate>& candidates, std::vector<double> scores)
    : candidates_(candidates),
      scores_(std::move(scores)),
      floors_(candidates.size(), -std::numeric_limits<double>::infinity()),
      given_(candidates.size()),
      least_(std::log(shortest)) {}

double Finalists::bound(std::size_t i) const { return scores_[i] * std::exp(std::max(least_, floors_[i])); }

std::vector<std::size_t> Finalists::next(std::size_t count, double best) {
    std::vector<std::pair<double, std::size_t>> open;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
        if (const double least = bound(i); !given_[i] && least < best) open.emplace_back(least, i);
    }
    count = std::min(count, open.size());
    std::partial_sort(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(count), open.end());
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < count; ++i) {
        chosen.push_back(open[i].second);
        given_[open[i].second] = true;
    }
    return chosen;
}

void Finalists::learn(std::size_t candidate, double ratio) {
    const double seen = std::log(ratio);
    least_ = std::min(least_, seen);
    for (std::size_t i = 0; i < scores_.size(); ++i) {
        if (given_[i]) continue;
        const double floor = seen - steepest * distance(candidates_[candidate].choices, candidates_[i].choices);
        floors_[i] = std::max(floors_[i], floor);
    }
}

std::size_t Finalists::left(double best) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < scores_.size(); ++i) count += !given_[i] && bound(i) < best ? 1 : 0;
    return count;
}

}  // namespace rehearse::search
