// SPDX-License-Identifier: Apache-2.0
// Which ranks of a class folded mode follows as one, and their steps.
#pragma once

#include <span>
#include <vector>

#include "sim/steps.hpp"

namespace rehearse::sim {

/// Ranks of one class are of one kind where their messages to ranks of other kinds, and those that come from there,
/// take as long, and where these other ranks are of the same kinds. Replicas of a pipeline whose messages take the same
/// ways are alike so.
struct Kinds {
    std::vector<int> rank_class;                // by kind, in order
    std::vector<std::vector<RankIndex>> ranks;  // by kind; empty where each class is one kind
    std::vector<int> of_rank;                   // by rank; empty where each class is one kind
};

/// Tells kinds apart where that can matter: where messages between the ranks of two classes differ by more than a
/// thousandth of what a class computes. Where there would be too many kinds, ways that differ inside nodes only, or
/// between them only, count as the same, and then all ways.
Kinds kinds_of(const Steps& steps, const Wiring& wiring);

/// The steps of each kind of ranks, as Steps has those of each class.
class KindSteps {
public:
    /// Keeps references.
    KindSteps(const Steps& steps, const Kinds& kinds, const Wiring& wiring);

    const Schedule& schedule() const { return steps_.schedule(); }
    const Steps& of_classes() const { return steps_; }
    const Cores& cores() const { return steps_.cores(); }
    std::int64_t ranks() const { return steps_.ranks(); }

    std::size_t count() const { return kinds_.rank_class.size(); }
    int class_of_kind(int kind) const { return kinds_.rank_class[static_cast<std::size_t>(kind)]; }
    const std::vector<Step>& program(int kind) const;
    const std::vector<RankIndex>& ranks_of(int kind) const;
    RankIndex first_rank(int kind) const { return ranks_of(kind).front(); }
    int kind_of(RankIndex rank) const;

    /// How long the step takes on the slowest rank of the kind.
    Seconds slowest(int kind, int step) const;
    Seconds extra(int kind, int step) const { return steps_.extra(class_of_kind(kind), step); }
    Event event(int kind, int step) const { return steps_.event(class_of_kind(kind), step); }

private:
    const Steps& steps_;
    const Kinds& kinds_;
    std::vector<std::vector<RankIndex>> slowest_;  // by kind: of each class of devices the slowest rank
};

}  // namespace rehearse::sim
