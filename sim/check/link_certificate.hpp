// SPDX-License-Identifier: Apache-2.0
// What links of a timeline may have carried. Included by this folder's sources only.
#pragma once

#include "core/timeline.hpp"

namespace rehearse::sim {

/// Throws logic_error unless as many bytes come out of NICs as go in, and no link carries more than it can.
void certify_links(const Timeline& timeline);

}  // namespace rehearse::sim
