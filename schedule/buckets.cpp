// SPDX-License-Identifier: Apache-2.0
#include "schedule/buckets.hpp"

#include <algorithm>

namespace rehearse::schedule {

std::vector<Bucket> make_buckets(const Part& part, DataType wire, Bytes first, Bytes limit) {
    const Network& network = part.network;
    std::vector<Bucket> buckets;
    Bucket partial;
    bool open = false;
    for (std::size_t i = network.layers.size(); i-- > 0;) {
        const std::int64_t count = parameters(network.layers[i].op);
        if (count == 0) continue;
        if (part.origins[i].partial >= 0) {
            partial.layers.push_back(static_cast<int>(i));
            partial.elements += count;
            partial.partial = part.origins[i].partial;
            continue;
        }
        if (!open) buckets.push_back({});
        Bucket& bucket = buckets.back();
        bucket.layers.push_back(static_cast<int>(i));
        bucket.elements += count;
        const Bytes enough = buckets.size() == 1 ? std::min(first, limit) : limit;
        open = static_cast<double>(bucket.elements) * size_of(wire) < enough;
    }
    if (!partial.layers.empty()) buckets.push_back(std::move(partial));
    return buckets;
}

}  // namespace rehearse::schedule
