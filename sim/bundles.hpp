// SPDX-License-Identifier: Apache-2.0
// Messages that all ranks of a class send at once, and how such bundles share links with each other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/rounds.hpp"
#include "sim/wiring.hpp"

namespace rehearse::sim {

/// All flows of a bundle have one size and go at one pace, that of its slowest: a link that n of them cross gives each
/// the same share, and links that several bundles cross are shared max-min between them (Bertsekas and Gallager 1992,
/// section 6.5), a bundle with weight n.
class Bundles {
public:
    explicit Bundles(const Wiring& wiring) : wiring_(wiring) {}

    /// Its number. All bundles are added before the first rates are asked for.
    int add(std::span<const Flow> flows);
    /// From when the last of a message's bytes has left until it is there.
    Seconds latency(int bundle, Bytes bytes) const;
    /// Bytes a second of each flow of each of these bundles, when they go on together; one may be named twice.
    std::vector<double> rates(std::span<const int> bundles);

private:
    /// A kind of link: seconds a byte of every flow, and how many flows of each bundle cross it.
    struct Share {
        double cost = 0;
        std::vector<std::pair<int, std::int32_t>> flows;  // bundle, count
        auto operator<=>(const Share&) const = default;
    };
    void reduce();

    struct Way {
        Seconds latency;
        PerByte alone;  // on its slowest hop
        bool across = false;
    };
    const Wiring& wiring_;
    std::vector<Way> ways_;                // the longest of each bundle
    std::map<std::int64_t, Share> links_;  // until reduced
    std::vector<Share> kinds_;             // links that the same flows cross, at the same cost, are one
    std::map<std::vector<int>, std::vector<double>> known_;
};

}  // namespace rehearse::sim
