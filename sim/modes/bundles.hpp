// SPDX-License-Identifier: Apache-2.0
// Messages that all ranks of a class send at once, and how such bundles share links with each other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collective/rounds.hpp"
#include "sim/host/cores.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// All flows of a bundle have one size and go at one pace, that of its slowest: a link that n of them cross gives each
/// the same share, and links that several bundles cross are shared max-min between them (Bertsekas and Gallager 1992,
/// section 6.5), a bundle with weight n.
class Bundles {
public:
    explicit Bundles(const Wiring& wiring) : wiring_(wiring) {}

    /// Its number. All bundles are added before the first rates are asked for.
    int add(std::span<const Flow> flows);
    /// Of ranks that compute, whose bytes are seconds on a core of their own. Its number.
    int add_work(const Cores& cores, std::span<const std::int64_t> ranks);
    /// Of what fills a link that all such bundles share: its bytes are the seconds that it takes by itself. Its number.
    int add_filling();
    /// From when the last of a message's bytes has left until it is there.
    Seconds latency(int bundle, Bytes bytes) const;
    /// Whether one could slow the other down.
    bool meet(int a, int b);
    /// Bytes a second of each flow of each of these bundles, in ascending order, when they go on together; one may be
    /// named twice. Solved once for each set.
    const std::vector<double>& rates(const std::vector<int>& bundles);

private:
    /// Of a bundle on a kind of link: seconds a byte of each of its flows, were it alone there.
    struct Weight {
        int bundle = 0;
        double cost = 0;
        auto operator<=>(const Weight&) const = default;
    };
    using Share = std::vector<Weight>;  // a kind of link, by bundle: links with the same weights are one
    struct Hash {
        std::size_t operator()(const std::vector<int>& bundles) const;
    };
    void reduce();
    void drop_lighter();
    std::vector<double> solve(const std::vector<int>& bundles) const;

    /// The longest of a bundle.
    struct Way {
        Seconds latency;
        PerByte alone;  // on its slowest hop
        bool across = false;
    };
    const Wiring& wiring_;
    std::vector<Way> ways_;
    std::unordered_map<std::int64_t, Share> links_;  // until reduced
    std::vector<Share> kinds_;
    std::vector<std::vector<int>> kinds_of_;  // by bundle
    std::vector<bool> meet_;                  // by pair
    std::unordered_map<std::vector<int>, std::vector<double>, Hash> known_;
};

}  // namespace rehearse::sim
