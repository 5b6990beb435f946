// SPDX-License-Identifier: Apache-2.0
#include "schedule/buckets.hpp"

#include <algorithm>

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

}  // namespace rehearse::schedule
