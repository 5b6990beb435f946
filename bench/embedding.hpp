// SPDX-License-Identifier: Apache-2.0
// Rows of embedding tables summed into bags, and updated by plain SGD, in each of the ways that Kalamkar et al. 2020
// ("Optimizing Deep Learning Recommender Systems' Training on CPU Cluster Architectures", section III) compare.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/rounds.hpp"
#include "core/op.hpp"

namespace rehearse::bench {

/// How rows that several bags picked lose their gradients.
enum class EmbeddingWay {
    reference,  ///< as PyTorch's sparse EmbeddingBag of 2019: one thread writes a gradient row a lookup, then adds them
    atomic,     ///< threads share the lookups; each number by compare and exchange
    lock,       ///< threads share the lookups; a spin lock for each row that is touched
    race_free,  ///< threads share the rows; each goes through all lookups and takes those of its own rows
    fused,      ///< race-free, from the bags' gradients: no gradient row is written out
    split_bf16  ///< fused, weights in two halves: forward reads the upper 16 bits, a bf16, alone (split SGD)
};
std::span<const EmbeddingWay> embedding_ways();
std::string_view to_string(EmbeddingWay way);

struct EmbeddingWorkload {
    EmbeddingBag op;         // `samples` and `direct` are not looked at
    std::int64_t batch = 1;  // samples
    double skew = 0;         // row number r (from 1) of a table is picked in proportion to r^-skew; 0: all alike
    std::uint64_t seed = 1;  // of the rows picked
};

/// Row ids in [0, vocabulary), `count` of them, by Zipf's law; popular rows lie anywhere. InputError for a skew below
/// 0.
std::vector<std::int32_t> zipf_rows(std::int64_t vocabulary, double skew, std::int64_t count, std::uint64_t seed);

/// Tables with whole numbers for weights and gradients, so that every sum is exact in any order.
class EmbeddingTables {
public:
    /// InputError where a size is below 1. Needs twice the tables' memory: split weights lie apart.
    EmbeddingTables(const EmbeddingWorkload& workload, int threads);
    ~EmbeddingTables();

    /// The bags of all samples, by tables; `bags` has them then.
    void forward(EmbeddingWay way);
    /// weights -= rate * gradient of each row that was picked, as often as it was.
    void update(EmbeddingWay way);

    std::span<const float> bags() const;
    /// All 32 bits of a weight, as this way keeps it.
    float weight(EmbeddingWay way, std::int64_t index) const;
    std::span<const std::int32_t> rows() const;
    /// Of bag `bag`.
    std::span<const float> gradient(std::int64_t bag) const;
    static constexpr float rate = 0.25F;

private:
    struct State;
    std::unique_ptr<State> state_;
};

struct EmbeddingSample {
    EmbeddingWay way = EmbeddingWay::reference;
    Seconds forward, update;  // medians of the rounds; update: gradient rows, where there are some, and weights
    double error = 0;         // robust standard deviation of both together between the rounds, relative
};
/// Each way on so many threads. BackendError where a way's weights differ from those of the first after one update.
std::vector<EmbeddingSample> measure_embedding(const EmbeddingWorkload& workload, int threads, const Rounds& rounds);

}  // namespace rehearse::bench
