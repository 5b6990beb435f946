// SPDX-License-Identifier: Apache-2.0
// A counter of a timeline as a curve.
#pragma once

#include "core/timeline.hpp"
#include "picture/chart.hpp"

namespace rehearse::picture {

/// The counter's values in multiples of `unit`, each until the next one. Where there are more of them than a picture is
/// wide, groups of neighbours are drawn as the largest of them, so that no peak is lost.
std::vector<Point> stairs_of(const Counter& counter, double unit = 1);

}  // namespace rehearse::picture
