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

// Calls `put(pixel, shares)` for each: of a level that was chosen so that a pixel has half a bin to two.
template <typename Put>
void each_pixel(const std::vector<Coverage>& level, const Lanes& lanes, TimeView view, std::size_t width, Put put) {
    const double per_bin = static_cast<double>(lanes.last - lanes.first) / static_cast<double>(level.size());
    const double step = (view.to - view.from) / static_cast<double>(width) / per_bin;
    const double begin = (view.from - static_cast<double>(lanes.first)) / per_bin + std::min(step, 1.0) / 2;
    // Counted in 2^-32 of a bin: there are at most 2^20 bins, and a view is at most a few times as long as all of them.
    const auto fixed = [](double bins) { return static_cast<std::int64_t>(bins * 4294967296.0); };
    const std::int64_t advance = fixed(step);
    std::int64_t at = fixed(begin);
    const auto bins = static_cast<std::int64_t>(level.size());
    const auto bin = [&](std::int64_t i) {
        return static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(bins)
                   ? shares_of(level[static_cast<std::size_t>(i)])
                   : 0;
    };
    for (std::size_t x = 0; x < width; ++x) {
        const std::int64_t low = at >> 32;
        at += advance;
        Shares shares = bin(low);
        for (std::int64_t b = low + 1; b < at >> 32; ++b) shares = mean(shares, bin(b));
        put(x, shares);
    }
}

// Neighbours are often alike.
class Brush {
public:
    explicit Brush(const PixelColors& colors) : colors_(colors), color_(colors.of(Shares{0})) {}
    std::uint32_t of(Shares shares) {
        if (shares != before_) color_ = colors_.of(before_ = shares);
        return color_;
    }

private:
    const PixelColors& colors_;
    Shares before_ = 0;
    std::uint32_t color_;
};

double per_pixel(TimeView view, std::size_t width) { return (view.to - view.from) / static_cast<double>(width); }

// From the events themselves: exact at every zoom, and as long as they are few.
void paint_events(const Lane& lane, TimeView view, const PixelColors& colors, bool boxes,
                  std::span<std::uint32_t> pixels) {
    std::vector<Shares> shares(pixels.size());
    add_events(lane, view.from, per_pixel(view, pixels.size()), shares);
    Brush brush(colors);
    std::ranges::transform(shares, pixels.begin(), [&](Shares s) { return brush.of(s); });
    if (!boxes || colors.coloring() != Coloring::activity) return;
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
    const auto* level =
        level_for(lane.levels(), static_cast<double>(lanes.last - lanes.first), per_pixel(view, pixels.size()));
    if (level != nullptr && (!boxes || events_in(lane, view) > pixels.size() / 2)) {
        Brush brush(colors);
        each_pixel(*level, lanes, view, pixels.size(), [&](std::size_t x, Shares s) { pixels[x] = brush.of(s); });
    } else {
        paint_events(lane, view, colors, boxes, pixels);
    }
}

namespace {

// Calls `put(pixel, shares)` for each, of a rank's lanes over each other.
template <typename Put>
void each_pixel_of_rank(const RankLanes& rank, const Lanes& lanes, TimeView view, std::span<Shares> room, Put put) {
    const Pyramid& levels = rank.size() == 1 ? rank[0]->levels() : lanes.levels_of(rank[0]->rank);
    const double each = per_pixel(view, room.size());
    // A row of a rank is low: what is two pixels wide in it need not be told from what is one.
    if (const auto* level = level_for(levels, static_cast<double>(lanes.last - lanes.first), each, 2))
        return each_pixel(*level, lanes, view, room.size(), put);
    std::ranges::fill(room, 0);
    for (const Lane* lane : rank) add_events(*lane, view.from, each, room);
    for (std::size_t x = 0; x < room.size(); ++x) put(x, room[x]);
}

}  // namespace

void paint(std::span<const RankLanes> group, const Lanes& lanes, TimeView view, const PixelColors& colors,
           std::span<std::uint32_t> pixels) {
    if (pixels.empty()) return;
    std::vector<Shares> room(pixels.size());
    Brush brush(colors);
    if (group.size() == 1) {
        return each_pixel_of_rank(group[0], lanes, view, room,
                                  [&](std::size_t x, Shares s) { pixels[x] = brush.of(s); });
    }
    std::vector<Sums> sums(pixels.size(), Sums{});
    for (const RankLanes& rank : group) {
        each_pixel_of_rank(rank, lanes, view, room, [&](std::size_t x, Shares s) {
            const Coverage of_each = coverage_of(s);
            for (std::size_t a = 0; a < activity_count; ++a) sums[x][a] += of_each[a];
        });
    }
    const auto count = static_cast<std::uint32_t>(group.size());
    for (std::size_t x = 0; x < pixels.size(); ++x) pixels[x] = brush.of(shares_of(mean_of(sums[x], count)));
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
