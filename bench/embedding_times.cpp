// SPDX-License-Identifier: Apache-2.0
// The ways of bench/embedding.hpp, held to each other and timed.
#include <fmt/format.h>

#include <algorithm>

#include "bench/embedding.hpp"
#include "calibrate/fit.hpp"
#include "core/error.hpp"

namespace rehearse::bench {

namespace {

// One update of each way changes every weight that was picked as much as the first way's did: whole quarters.
void check_ways(EmbeddingTables& tables, const EmbeddingWorkload& workload) {
    const std::int64_t numbers = workload.op.tables * workload.op.vocabulary * workload.op.width;
    const std::int64_t every = std::max<std::int64_t>(1, numbers / 1'000'003);
    std::vector<float> before, change;
    for (const EmbeddingWay way : embedding_ways()) {
        before.clear();
        for (std::int64_t i = 0; i < numbers; i += every) before.push_back(tables.weight(way, i));
        tables.update(way);
        for (std::size_t k = 0; k < before.size(); ++k) {
            const float changed = tables.weight(way, static_cast<std::int64_t>(k) * every) - before[k];
            if (way == embedding_ways().front()) {
                change.push_back(changed);
            } else if (change[k] != changed) {
                throw BackendError(fmt::format("embedding: {} changed weight {} by {}, {} by {}", to_string(way),
                                               static_cast<std::int64_t>(k) * every, changed,
                                               to_string(embedding_ways().front()), change[k]));
            }
        }
    }
}

}  // namespace

std::vector<EmbeddingSample> measure_embedding(const EmbeddingWorkload& workload, int threads, const Rounds& rounds) {
    EmbeddingTables tables{workload, threads};
    check_ways(tables, workload);
    std::vector<Case> cases;
    const Bytes row = Bytes{4.0 * static_cast<double>(workload.op.width)};
    const Bytes moved = row * static_cast<double>(workload.batch * workload.op.tables * workload.op.lookups);
    for (const EmbeddingWay way : embedding_ways()) {
        cases.push_back({.name = fmt::format("embedding/{}/forward", to_string(way)),
                         .flops = {},
                         .bytes = moved,
                         .run = [&tables, way] { tables.forward(way); }});
        cases.push_back({.name = fmt::format("embedding/{}/update", to_string(way)),
                         .flops = {},
                         .bytes = 2 * moved,
                         .run = [&tables, way] { tables.update(way); }});
    }
    const Times times = time(cases, rounds, Team{});
    std::vector<EmbeddingSample> samples;
    for (std::size_t w = 0; w < embedding_ways().size(); ++w) {
        const std::vector<double>&forward = times.seconds[2 * w], &update = times.seconds[2 * w + 1];
        std::vector<double> both;
        for (std::size_t r = 0; r < std::min(forward.size(), update.size()); ++r)
            both.push_back(forward[r] + update[r]);
        if (both.empty()) break;
        samples.push_back({embedding_ways()[w], Seconds{calibrate::median(forward)}, Seconds{calibrate::median(update)},
                           calibrate::robust_deviation(both) / calibrate::median(both)});
    }
    return samples;
}

}  // namespace rehearse::bench
