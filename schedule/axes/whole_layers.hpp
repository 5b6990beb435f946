// SPDX-License-Identifier: Apache-2.0
// What every rank along an axis that cuts layers computes as it is, though it is large: a part says so in a note.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/network.hpp"

namespace rehearse::schedule {

/// Products, convolutions, attention and tables: what ranks have to share.
bool is_worth_sharing(const Op& op);

/// The ranks along an axis, and whether they share weights, or operations alone.
struct Sharing {
    std::string axis;
    std::int64_t parts = 1;
    bool of_weights = false;
};
/// Names these layers of a network where they are more than a hundredth of its operations or weights; else nothing.
std::vector<std::string> notes_of_whole(const Network& network, std::span<const std::size_t> layers,
                                        const Sharing& sharing);

}  // namespace rehearse::schedule
