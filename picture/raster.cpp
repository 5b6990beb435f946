// SPDX-License-Identifier: Apache-2.0
#include "picture/raster.hpp"

#include <algorithm>
#include <cmath>

#include "picture/shares.hpp"

namespace rehearse::picture {

namespace {

struct Scale {
    double from, per_pixel;
    double pixel(std::int64_t ns) const { return (static_cast<double>(ns) - from) / per_pixel; }
};

using Sums = std::array<std::uint32_t, activity_count>;

// The finest level whose bins are not much finer than a pixel; nothing when even level 0 is more than `widest` pixels
// wide.
const std::vector<Coverage>* level_for(const Pyramid& levels, double span, double per_pixel, double widest = 1) {
    const std::vector<Coverage>* found = nullptr;
    for (const auto& level : levels) {
        const double bin = span / static_cast<double>(level.size());
        if (bin > (found == nullptr ? widest : 1) * per_pixel) break;
        found = &level;
        if (2 * bin > per_pixel) break;
    }
    return found;
}

Coverage mean_of(const Sums& sums, std::uint32_t count) {
    Coverage result{};
    for (std::size_t a = 0; a < activity_count; ++a) {
        result[a] = static_cast<std::uint8_t>((sums[a] + (sums[a] > 0 ? count - 1 : 0)) / count);
    }
    return result;
}

// Of a level that was chosen so that a pixel has half a bin to two: the mean of the first and the last that begin in
// it.
void sample(const std::vector<Coverage>& level, const Lanes& lanes, TimeView view, std::span<Shares> cells) {
    const double per_bin = static_cast<double>(lanes.last - lanes.first) / static_cast<double>(level.size());
    const auto width = static_cast<double>(cells.size());
    const double step = (view.to - view.from) / width / per_bin;
    const double begin = (view.from - static_cast<double>(lanes.first)) / per_bin + std::min(step, 1.0) / 2;
    std::ranges::fill(cells, 0);
    if (begin >= static_cast<double>(level.size()) || begin + step * width <= 0) return;
    // Counted in 2^-32 of a bin: there are at most 2^20 bins, and a view is at most a few times as long as all of them.
    const auto fixed = [](double bins) { return static_cast<std::int64_t>(bins * 4294967296.0); };
    const std::int64_t advance = std::max<std::int64_t>(fixed(step), 1), bins = std::ssize(level);
    std::int64_t at = fixed(begin);
    const std::int64_t outside = at < 0 ? (-at + advance - 1) / advance : 0;
    at += outside * advance;
    for (auto x = static_cast<std::size_t>(outside); x < cells.size() && at >> 32 < bins; ++x, at += advance) {
        const std::int64_t low = at >> 32, last = std::min(((at + advance) >> 32) - 1, bins - 1);
        cells[x] = mean(shares_of(level[static_cast<std::size_t>(low)]),
                        shares_of(level[static_cast<std::size_t>(std::max(low, last))]));
    }
}

double per_pixel(TimeView view, std::size_t width) { return (view.to - view.from) / static_cast<double>(width); }

// The first pixel of each box that is wide enough to have an edge.
void paint_edges(const Lane& lane, TimeView view, const PixelColors& colors, std::span<std::uint32_t> pixels) {
    const auto width = static_cast<double>(pixels.size());
    const Scale scale{view.from, (view.to - view.from) / width};
    std::size_t i = lane.first_after(static_cast<std::int64_t>(std::floor(view.from)));
    for (; i < lane.size() && static_cast<double>(lane.start(i)) < view.to; ++i) {
        const double left = scale.pixel(lane.start(i));
        if (scale.pixel(lane.end(i)) - left < 3 || left < 0) continue;
        pixels[static_cast<std::size_t>(std::min(left, width - 1))] = colors.edge(lane.activity(i));
    }
}

std::size_t events_in(const Lane& lane, TimeView view) {
    const std::size_t from = lane.first_after(static_cast<std::int64_t>(std::floor(view.from)));
    return lane.first_after(static_cast<std::int64_t>(std::ceil(view.to))) - from;
}

}  // namespace

void paint(const Lane& lane, const Lanes& lanes, TimeView view, const PixelColors& colors, bool boxes,
           std::span<std::uint32_t> pixels) {
    if (pixels.empty()) return;
    const double each = per_pixel(view, pixels.size());
    const auto* level = level_for(lane.levels(), static_cast<double>(lanes.last - lanes.first), each);
    std::vector<Shares> cells(pixels.size());
    // From the events themselves, exact at every zoom, as long as they are few.
    const bool from_events = level == nullptr || (boxes && events_in(lane, view) <= pixels.size() / 2);
    from_events ? add_events(lane, view.from, each, cells) : sample(*level, lanes, view, cells);
    colors.paint(cells, pixels);
    if (from_events && boxes && colors.coloring() == Coloring::activity) paint_edges(lane, view, colors, pixels);
}

namespace {

// Of a rank's lanes over each other.
void cells_of(const RankLanes& rank, const Lanes& lanes, TimeView view, double coarse, std::span<Shares> cells) {
    const Pyramid& levels = rank.size() == 1 ? rank[0]->levels() : lanes.levels_of(rank[0]->rank);
    const double each = per_pixel(view, cells.size());
    if (const auto* level = level_for(levels, static_cast<double>(lanes.last - lanes.first), each, coarse))
        return sample(*level, lanes, view, cells);
    std::ranges::fill(cells, 0);
    for (const Lane* lane : rank) add_events(*lane, view.from, each, cells);
}

}  // namespace

void paint(std::span<const RankLanes> group, const Lanes& lanes, TimeView view, const PixelColors& colors,
           std::span<std::uint32_t> pixels, double coarse) {
    if (pixels.empty()) return;
    std::vector<Shares> cells(pixels.size());
    std::vector<Sums> sums(group.size() > 1 ? pixels.size() : 0, Sums{});
    for (const RankLanes& rank : group) {
        cells_of(rank, lanes, view, coarse, cells);
        for (std::size_t x = 0; x < sums.size(); ++x) {
            const Coverage of_each = coverage_of(cells[x]);
            for (std::size_t a = 0; a < activity_count; ++a) sums[x][a] += of_each[a];
        }
    }
    const auto count = static_cast<std::uint32_t>(group.size());
    for (std::size_t x = 0; x < sums.size(); ++x) cells[x] = shares_of(mean_of(sums[x], count));
    colors.paint(cells, pixels);
}

std::vector<NamedBox> named_boxes(const Lane& lane, TimeView view, std::size_t width, double least) {
    std::vector<NamedBox> boxes;
    if (events_in(lane, view) > width) return boxes;
    const Scale scale{view.from, (view.to - view.from) / static_cast<double>(width)};
    std::size_t i = lane.first_after(static_cast<std::int64_t>(std::floor(view.from)));
    for (; i < lane.size() && static_cast<double>(lane.start(i)) < view.to; ++i) {
        const double left = std::max(scale.pixel(lane.start(i)), 0.0);
        const double right = std::min(scale.pixel(lane.end(i)), static_cast<double>(width));
        if (right - left >= least) boxes.push_back({i, left, right});
    }
    return boxes;
}

}  // namespace rehearse::picture
