// SPDX-License-Identifier: Apache-2.0
// The groups of ranks along one axis of a mesh, all of which take part in a collective at the same time.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/collectives/collective.hpp"
#include "core/mesh.hpp"
#include "core/schedule.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

struct Groups {
    std::int64_t count = 1;   // of groups
    std::int64_t stride = 1;  // in ranks, between members
    Group shape;
    // Ranks lie in blocks of `block`, and each block has `begins` groups, whose first members follow on each other from
    // `first` on. Of a whole axis, block = stride * size, begins = stride and first = 0; of a pair, less of each block.
    std::int64_t block = 1, begins = 1, first = 0;
    std::shared_ptr<const std::vector<RankIndex>> members{};  // of the only group, where they lie on no axis
    bool posts_together = false;  // all messages of an all-to-all by pairs are under way at once

    RankIndex rank(std::int64_t group, std::int64_t member) const {
        if (members != nullptr) return (*members)[static_cast<std::size_t>(member)];
        return RankIndex{group / begins * block + first + group % begins + member * stride};
    }
    /// Of a rank that is in one.
    std::int64_t group_of(RankIndex rank) const {
        return members != nullptr ? 0 : rank / block * begins + (rank % block - first) % stride;
    }
    std::int64_t member_of(RankIndex rank) const {
        return members != nullptr ? std::ranges::find(*members, rank) - members->begin()
                                  : (rank % block - first) / stride;
    }
};

/// A collective along an axis, by all its groups at once.
struct Call {
    CollectiveKind kind = CollectiveKind::all_reduce;
    int axis = 0;
    std::int64_t elements = 0;
    DataType type = DataType::f32;
    Algorithm algorithm{};
    std::int64_t root = 0;  // of a broadcast
};
inline Call call_of(const Communicate& communicate) {
    return {communicate.kind, communicate.axis,      communicate.elements,
            communicate.type, communicate.algorithm, communicate.root};
}

/// Rank r sits on device r. A hierarchical algorithm needs the same number of consecutive members on every node they
/// touch: InputError otherwise.
Groups groups_along(const Mesh& mesh, int axis, const Algorithm& algorithm, const Wiring& wiring);
/// The same of one group of any ranks, in the order of their places in it.
Groups groups_among(std::vector<RankIndex> members, const Algorithm& algorithm, const Wiring& wiring);
/// Whether the first per_node members of each group are on one node, the next on another, and so on; those on the last
/// one may be fewer.
bool fills_nodes(const Groups& groups, const Wiring& wiring);

/// Smaller buffers go by one ring, as parts of a chunk would be a few elements.
inline constexpr std::int64_t fewest_for_rings = 4096;
/// A group as this call goes through it.
Group shape_for(const Call& call, const Groups& groups);
/// What each of these groups runs.
Collective rounds_of(const Call& call, const Groups& groups);
/// Its rounds, alike ones together. A buffer of fewer elements than ranks leaves some of these out, others in each
/// round of a ring: there rounds are alike only where the same ranks send. Of more than `most_apart` messages of all
/// groups they are not looked at one by one, and the first of a phase stands for all.
std::vector<Phase> phases_of(const Collective& rounds, const Groups& groups);
inline constexpr std::int64_t most_apart = 1 << 16;  // a ring of 181 ranks
/// Whether the messages of one of its rounds are of one size but for rounding.
bool equal_sizes(const std::vector<Message>& messages, const Group& group);
Bytes bytes_of(const Message& message, DataType type);

}  // namespace rehearse::sim
