// SPDX-License-Identifier: Apache-2.0
// Which elements of its initializer a weight has that was moved on the way to its reader.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/op.hpp"

namespace rehearse::models {

/// For each element of a value, in its order, the number of an element of the initializer. Of weights that were only
/// turned they are worked out when somebody asks: many are turned that nobody reads so.
class Places {
public:
    explicit Places(std::vector<std::int32_t> all);
    /// Each element of the initializer once: in a tensor of `shape`, whose neighbours along each dimension lie so far
    /// apart in the initializer.
    Places(Shape shape, std::vector<std::int64_t> steps);

    std::int64_t size() const;
    const std::vector<std::int32_t>& all() const;
    bool in_order() const;
    bool each_once() const;
    /// The steps, where these are the places of a tensor of that shape and it was only turned.
    std::optional<std::vector<std::int64_t>> steps(const Shape& of) const;

private:
    Shape shape_;
    std::vector<std::int64_t> steps_;  // of what was turned, else empty
    mutable std::vector<std::int32_t> all_;
};

}  // namespace rehearse::models
