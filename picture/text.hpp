// SPDX-License-Identifier: Apache-2.0
// Room that a text takes, without a font library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::picture {

/// Advance widths of DejaVu Sans 2.37, in which pictures are set; a letter beyond ASCII counts as wide as a digit.
double text_width(std::string_view text, double size, bool bold = false);

/// The lines of a text in a room: broken at spaces, and within a word that is longer than the room.
std::vector<std::string> wrapped(std::string_view text, double size, double room);

/// From the baseline of a text to that of one centred on the same height: 0.36 of its size (half of the digits'
/// height).
inline double half_height(double size) { return 0.36 * size; }

}  // namespace rehearse::picture
