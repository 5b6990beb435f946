// SPDX-License-Identifier: Apache-2.0
// Which of the screened plans are simulated: those that may still be better than the best one known.
#pragma once

#include <cstddef>
#include <vector>

#include "search/search.hpp"

namespace rehearse::search {

/// How unlike two plans are: 1 for each axis or number that is doubled or halved, and for each choice that differs; 2
/// for placement and overlap, which change what waits for what.
double distance(const Choices& a, const Choices& b);

/// How far estimates are trusted, held to every plan of three small spaces by tests/search/regret_test.cpp: nine tenths
/// of all pairs of plans keep to `steepest`, the change of the logarithm of simulated over estimated time a unit of
/// distance, and nine tenths of all plans take at least `shortest` times their estimate.
constexpr double steepest = 0.25, shortest = 0.6;

/// The bound of Shubert (1972) and Piyavskii (1972) for functions that are not steeper than a constant. A plan takes at
/// least `shortest` times its estimate (less where less has been seen), and at least its estimate times
/// exp(r - steepest d) for each plan at distance d that was simulated to take exp(r) times its own estimate.
class Finalists {
public:
    /// `scores`: estimates of the candidates, lower is better; `candidates` outlive this.
    Finalists(const std::vector<Candidate>& candidates, std::vector<double> scores);

    /// The most promising ones that were not given out yet, the least bound first: at most `count`, none whose bound is
    /// `best` or more.
    std::vector<std::size_t> next(std::size_t count, double best);
    /// What was simulated takes so many times its estimate.
    void learn(std::size_t candidate, double ratio);

    /// Those that `next` could still give.
    std::size_t left(double best) const;

private:
    double bound(std::size_t i) const;

    const std::vector<Candidate>& candidates_;
    std::vector<double> scores_, floors_;  // of the logarithm of the ratio
    std::vector<bool> given_;
    double least_;
};

}  // namespace rehearse::search
