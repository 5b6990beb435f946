// SPDX-License-Identifier: Apache-2.0
// Where the pixels of an image lie when attention looks at windows of it (Liu et al. 2021, section 3.2), for who runs
// the network. An image of `side` x `side` rows of `width` numbers is filled up with zeros to whole windows.
#pragma once

#include <cstdint>
#include <memory>

#include "core/network.hpp"

namespace rehearse::models::huggingface {

struct Windows {
    std::int64_t side = 1, window = 1, shift = 0;  // all windows lie `shift` pixels down and right, around the border
    std::int64_t along() const { return (side + window - 1) / window; }

    using Told = std::shared_ptr<const Given>;
    /// Of each pixel of each window, where it comes from in the image; and back.
    Told cut(std::int64_t width) const;
    Told joined(std::int64_t width) const;
    /// {windows, 1, window^2, window^2}: pixels that the shift alone brought together do not see each other.
    Told mask() const;
    /// Of a table {(2 window - 1)^2, heads}, the row of each distance between two pixels of a window.
    Told distances(std::int64_t heads) const;
    /// Four neighbours side by side, of an image whose odd side is filled up.
    Told neighbours(std::int64_t width) const;
};

}  // namespace rehearse::models::huggingface
