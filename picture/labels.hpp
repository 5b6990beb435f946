// SPDX-License-Identifier: Apache-2.0
// Texts inside a chart, none over another.
#pragma once

#include "picture/plane.hpp"

namespace rehearse::picture {

/// None covers one of the `dots`. A label that finds no free place is left out.
void draw_labels(Picture& picture, const Plane& plane, const std::vector<Label>& labels, const std::vector<Point>& dots,
                 const Palette& colors);

}  // namespace rehearse::picture
