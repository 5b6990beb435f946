// SPDX-License-Identifier: Apache-2.0
// Lanes into pixels, as fast as a screen is redrawn: below the pyramid's finest level from the events themselves, above
// it from the bins. The colour of a pixel is that of the activity that takes most of its time, the paler the more of
// it is idle: a mean of colours would be mud, the nearest bin a moire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "picture/lanes.hpp"

namespace rehearse::picture {

enum class Coloring {
    activity,  // what takes most of the time
    waiting,   // the share of time that is not computing
    network    // the share of time that communication takes
};
std::string_view to_string(Coloring coloring);

/// 0xFFRRGGBB, as QImage::Format_RGB32 and cairo's RGB24.
std::uint32_t pixel_of(Color color);

/// The colour of a share between 0 and 1 of what is not wanted.
Color heat(double share, Theme theme);

/// Everything that a pixel's colour depends on, made once a theme and colouring.
class PixelColors {
public:
    PixelColors(Theme theme, Coloring coloring);
    std::uint32_t of(const Coverage& coverage) const;
    /// Of each cell's eight shares, side by side in one number (shares.hpp).
    void paint(std::span<const std::uint64_t> shares, std::span<std::uint32_t> pixels) const;
    std::uint32_t of(Activity activity) const { return full_[static_cast<std::size_t>(activity)]; }
    std::uint32_t edge(Activity activity) const { return edge_[static_cast<std::size_t>(activity)]; }
    std::uint32_t idle() const { return idle_; }
    Coloring coloring() const { return coloring_; }

private:
    Coloring coloring_;
    // Of the last activity first, each from nothing to all of a pixel; in the other colourings only the first is used.
    std::array<std::uint32_t, 256 * activity_count> shades_{};
    std::array<std::uint32_t, activity_count> full_{}, edge_{};
    std::uint32_t idle_ = 0;
    std::uint64_t counted_ = 0;  // a byte of ones for each activity that the heat counts
};

/// Part of the time axis, in ns since the origin; a fraction of a nanosecond is not lost.
struct TimeView {
    double from = 0, to = 1;
};

/// One lane's row of pixels. `boxes`: as Gantt boxes with an edge each, where they are wide enough.
void paint(const Lane& lane, const Lanes& lanes, TimeView view, const PixelColors& colors, bool boxes,
           std::span<std::uint32_t> pixels);

/// All lanes of a rank in one row: what it computes, and of the rest of the time what it waits for; the mean over the
/// ranks of a group, for views with more ranks than pixels. What is up to `coarse` pixels wide need not be told apart:
/// more than one in a row that is low itself.
using RankLanes = std::vector<const Lane*>;
void paint(std::span<const RankLanes> group, const Lanes& lanes, TimeView view, const PixelColors& colors,
           std::span<std::uint32_t> pixels, double coarse = 2);

/// A box that is wide enough for a name.
struct NamedBox {
    std::size_t event = 0;
    double left = 0, right = 0;  // pixels, cut to the row
};
std::vector<NamedBox> named_boxes(const Lane& lane, TimeView view, std::size_t width, double least);

}  // namespace rehearse::picture
