// SPDX-License-Identifier: Apache-2.0
#include "schedule/methods/servers.hpp"

#include <algorithm>
#include <numeric>

namespace rehearse::schedule {

std::vector<int> servers_of(const std::vector<Bucket>& buckets, std::int64_t servers) {
    std::vector<std::size_t> order(buckets.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return buckets[a].elements > buckets[b].elements; });
    std::vector<std::int64_t> load(static_cast<std::size_t>(servers));
    std::vector<int> server_of(buckets.size());
    for (const std::size_t bucket : order) {
        const auto least = std::ranges::min_element(load);
        *least += buckets[bucket].elements;
        server_of[bucket] = static_cast<int>(least - load.begin());
    }
    return server_of;
}

bool sends_vectors(const Op& op, std::int64_t samples) {
    const auto* dense = std::get_if<MatMul>(&op);
    return dense != nullptr && !dense->tied && samples * dense->m * (dense->n + dense->k) < parameters(op);
}

std::vector<int> alone_in_buckets(const Network& network, std::int64_t samples) {
    std::vector<int> begins;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        if (!sends_vectors(network.layers[i].op, samples)) continue;
        begins.push_back(static_cast<int>(i));
        begins.push_back(static_cast<int>(i) + 1);
    }
    return begins;
}

std::vector<bool> with_vectors(bool wanted, const Part& part, std::int64_t samples) {
    std::vector<bool> result;
    for (const Bucket& bucket : part.buckets) {
        const Op& op = part.network.layers[static_cast<std::size_t>(bucket.layers.front())].op;
        result.push_back(wanted && bucket.layers.size() == 1 && sends_vectors(op, samples));
    }
    return result;
}

}  // namespace rehearse::schedule
