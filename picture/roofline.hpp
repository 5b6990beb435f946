// SPDX-License-Identifier: Apache-2.0
// The roofline of Williams, Waterman and Patterson (2009): what no kernel can exceed, above the rates that were
// measured.
#pragma once

#include <span>
#include <string>

#include "picture/chart.hpp"

namespace rehearse::picture {

struct Roof {
    std::string name;  // "f32", "memory"
    double rate = 0;   // bytes a second of a slope, operations a second of a flat
    bool is_slope = false;
    bool is_used = true;  // a flat of a type that nothing has is dashed
};

/// Axes, slopes and flats with their names, about a chart whose series are dots: operations a byte, operations a
/// second.
void add_roofs(Chart& chart, std::span<const Roof> roofs, const Palette& colors);

}  // namespace rehearse::picture
