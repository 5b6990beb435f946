// SPDX-License-Identifier: Apache-2.0
// Pixels of the timeline's parts.
#pragma once

namespace rehearse::gui::size {

inline constexpr int heads = 172, map = 30, ruler = 26;

}  // namespace rehearse::gui::size
