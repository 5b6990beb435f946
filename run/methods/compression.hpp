// SPDX-License-Identifier: Apache-2.0
// Gradients in fewer bits, with error feedback: what is left out waits for the next step.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/methods/compression.hpp"
#include "run/methods/method.hpp"

namespace rehearse::run {

/// `values` are gradients and what was left out before; afterwards what is left out now. `words` get
/// compressed_words of them:
/// - top: the indices of the largest magnitudes (of equal ones the first), in their order, then their values (Aji and
///   Heafield 2017, Stich et al. 2018);
/// - one_bit: the mean of the values that are 0 or more, that of the others, and a bit for each value, set where it is
///   below 0 (Seide et al. 2014).
void compress(const Compression& compression, std::span<float> values, std::span<float> words);

/// Adds to `sum` what the words stand for.
void add_compressed(const Compression& compression, std::span<const float> words, std::span<float> sum);

/// All-gathers of what each rank sends of a bucket. All ranks update by the sum of what those words stand for.
class CompressionMethod : public Method {
public:
    explicit CompressionMethod(RankContext& rank) : rank_(rank) {}
    bool prepare(ReadyStep& ready) override;
    void visit_state(const UseNumbers& use) override;
    void write_down(SentWords& sent) override { sent_ = &sent; }

private:
    RankContext& rank_;
    SentWords* sent_ = nullptr;
    std::map<int, std::vector<float>> left_out_, words_;  // by bucket: what waits for the next step, what is sent
};

}  // namespace rehearse::run
