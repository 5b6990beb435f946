// SPDX-License-Identifier: Apache-2.0
// The colours of a picture.
#pragma once

#include <cstddef>

#include "picture/picture.hpp"

namespace rehearse::picture {

enum class Theme { light, dark };

struct Palette {
    Color background, text, faint_text, axis, grid;
    std::vector<Color> series;
};

/// Colours of Okabe and Ito (2008), which people with any common colour blindness tell apart; yellow, which is weak on
/// white, comes late on light ground, and black is replaced by grey.
const Palette& palette(Theme theme);

/// The colour of the i-th series; they repeat.
Color series_color(const Palette& colors, std::size_t index);

/// `color` at `share` over `ground`: opaque, so that every writer gives the same.
Color mixed(Color color, Color ground, double share);

/// Black or white, whichever is read better on `ground` (WCAG 2 relative luminance).
Color readable_on(Color ground);

}  // namespace rehearse::picture
