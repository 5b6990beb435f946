// SPDX-License-Identifier: Apache-2.0
#include "schedule/buckets.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::schedule {

std::vector<Bucket> make_buckets(const Network& network, DataType wire, Bytes first, Bytes limit) {
    std::vector<Bucket> buckets;
    bool open = false;
    for (std::size_t i = network.layers.size(); i-- > 0;) {
        const std::int64_t count = parameters(network.layers[i].op);
        if (count == 0) continue;
        if (!open) buckets.push_back({});
        Bucket& bucket = buckets.back();
        bucket.layers.push_back(static_cast<int>(i));
        bucket.elements += count;
        const Bytes enough = buckets.size() == 1 ? std::min(first, limit) : limit;
        open = static_cast<double>(bucket.elements) * size_of(wire) < enough;
    }
    return buckets;
}

std::vector<Bucket> make_cycled_buckets(const Network& network, DataType wire, Bytes limit, Seconds cycle,
                                        const std::vector<double>& backward) {
    std::vector<Bucket> buckets;
    double now = 0;
    std::int64_t open_at = -1;  // the wake-up that sends the last bucket
    for (std::size_t i = network.layers.size(); i-- > 0;) {
        now += backward.at(i);
        const std::int64_t count = parameters(network.layers[i].op);
        if (count == 0) continue;
        const auto sent_at = static_cast<std::int64_t>(std::ceil(now / cycle.value));
        const bool full = !buckets.empty() &&
                          static_cast<double>(buckets.back().elements + count) * size_of(wire) > limit;
        if (sent_at != open_at || full) buckets.push_back({});
        open_at = sent_at;
        buckets.back().layers.push_back(static_cast<int>(i));
        buckets.back().elements += count;
    }
    return buckets;
}

}  // namespace rehearse::schedule
