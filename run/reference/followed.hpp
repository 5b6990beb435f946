// SPDX-License-Identifier: Apache-2.0
// Bits that rounding decides. A rank sends the sign of a gradient, or the largest of many; where the plan cuts layers,
// or gradients are multiplied with inverses, its gradients are those of one rank but for rounding, and what is within
// rounding of the place where it turns goes one way or the other. There the reference takes what the rank sent;
// everywhere else it decides by itself.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/methods/compression.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/methods/method.hpp"

namespace rehearse::run {

/// By rank and bucket: the words of each time.
using AllSent = std::map<std::pair<RankIndex, int>, std::vector<std::vector<float>>>;
/// Collective: what each rank has sent, at all of them.
AllSent share_sent(const kernels::Communicator& world, const SentWords& own);

/// Moves values to the other side of 0, by `reach` at most, where `below` says so of the sign that was sent: a bit a
/// value, 32 in a word, set where it was below 0.
void follow_signs(std::span<float> values, std::span<const float> below, std::span<const float> reach);
/// Moves values across the smallest magnitude that is sent, by `reach` at most, where `words` (compressed_words of
/// `top`) have others than the largest.
void follow_largest(std::span<float> values, std::span<const float> words, std::span<const float> reach);

/// The signs of `values`, as follow_signs has them.
std::vector<float> signs_of(std::span<const float> values);

/// What is followed, and how far. The reference follows what ranks have sent, within reach, and writes down what it
/// then decided; trainings from changed weights, which say what rounding does to the rest, decide the very same.
class Followed {
public:
    /// `sent` and `decided` outlive it.
    Followed(const AllSent& sent, AllSent& decided, int perturbation)
        : all_(perturbation > 0 ? decided : sent), decided_(decided), always_(perturbation > 0) {}
    /// The words of `rank` for its bucket that come next; nothing where none were written down.
    std::span<const float> next(RankIndex rank, int bucket);
    /// `measured`, or no end of it.
    std::vector<float> reach(std::span<const float> measured) const;
    void decide(RankIndex rank, int bucket, std::vector<float> words);

private:
    const AllSent& all_;
    AllSent& decided_;
    bool always_;
    std::map<std::pair<RankIndex, int>, std::size_t> times_;
};

}  // namespace rehearse::run
