// SPDX-License-Identifier: Apache-2.0
// What a network's loss asks for of each sample, where that is labels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/network.hpp"

namespace rehearse::run {

struct Labels {
    Shape shape;  // of one sample's
    std::int64_t classes = 1;
    std::vector<std::int32_t> places{};  // elements of a sample in a file that are taken; none: all, as they lie
};

/// Nothing where the loss has none. InputError where the network has no loss.
std::optional<Labels> labels_of(const Network& network);

}  // namespace rehearse::run
