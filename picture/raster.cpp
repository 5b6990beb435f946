// SPDX-License-Identifier: Apache-2.0
#include "picture/raster.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rehearse::picture {

namespace {

// Colours of a share between 0 and 1: from idle ground through orange to dark red (one hue axis, growing darker, so
// that it is read without colour too).
Color heat(double share, Theme theme) {
    const Color ground = idle_color(theme);
    constexpr Color middle{230, 140, 60};
    const Color end = theme == Theme::dark ? Color{255, 226, 160} : Color{128, 16, 38};
    return share < 0.5 ? mixed(middle, ground, share * 2) : mixed(end, middle, share * 2 - 1);
}

struct Scale {
    double from, per_pixel;
    double pixel(std::int64_t ns) const { return (static_cast<double>(ns) - from) / per_pixel; }
};

using Sums = std::array<std::uint32_t, activity_count>;

// The finest level whose bins are not much finer than a pixel; nothing when even level 0 is coarser.
const std::vector<Coverage>* level_for(const Lane& lane, double span, double per_pixel) {
    const std::vector<Coverage>* found = nullptr;
    for (const auto& level : lane.levels()) {
        const double bin = span / static_cast<double>(level.size());
        if (bin > per_pixel) break;
        found = &level;
        if (2 * bin > per_pixel) break;
    }
    return found;
}

// Of eight bytes, at most 255.
unsigned sum_of(std::uint64_t shares) {
    constexpr std::uint64_t even = 0x00FF00FF00FF00FFULL;
    const std::uint64_t pairs = (shares & even) + ((shares >> 8U) & even);
    return std::min(static_cast<unsigned>((pairs * 0x0001000100010001ULL) >> 48U), 255U);
}

// Of each of eight bytes the mean, rounded up.
std::uint64_t mean(std::uint64_t a, std::uint64_t b) { return (a | b) - (((a ^ b) >> 1U) & 0x7F7F7F7F7F7F7F7FULL); }

// What a lane does in a pixel, and below it another: what does not fit into 255 any more is hidden, as communication
// behind computing is not seen.
std::uint64_t over(std::uint64_t above, std::uint64_t below) {
    if (above == 0 || below == 0) return above | below;
    const unsigned used = sum_of(above);
    if (used == 255) return above;
    if (used + sum_of(below) <= 255) return above + below;
    const auto more = std::bit_cast<Coverage>(below);
    auto of_each = std::bit_cast<Coverage>(above);
    unsigned room = 255 - used;
    for (std::size_t a = 0; a < activity_count && room > 0; ++a) {
        const unsigned share = std::min<unsigned>(more[a], room);
        of_each[a] = static_cast<std::uint8_t>(of_each[a] + share);
        room -= share;
    }
    return std::bit_cast<std::uint64_t>(of_each);
}

Coverage mean(const Sums& sums, std::uint32_t count) {
    Coverage result{};
    for (std::size_t a = 0; a < activity_count; ++a) {
        result[a] = static_cast<std::uint8_t>((sums[a] + (sums[a] > 0 ? count - 1 : 0)) / count);
    }
    return result;
}

// Calls `put(pixel, shares)` for each: of a level that was chosen so that a pixel has one or two bins.
template <typename Put>
void each_pixel(const std::vector<Coverage>& level, const Lanes& lanes, TimeView view, std::size_t width, Put put) {
    const double per_bin = static_cast<double>(lanes.last - lanes.first) / static_cast<double>(level.size());
    const double step = (view.to - view.from) / static_cast<double>(width) / per_bin;
    const double begin = (view.from - static_cast<double>(lanes.first)) / per_bin + 0.5;
    // Counted in 2^-32 of a bin: there are at most 2^20 bins, and a view is at most a few times as long as all of them.
    const auto fixed = [](double bins) { return static_cast<std::int64_t>(bins * 4294967296.0); };
    const std::int64_t advance = fixed(step);
    std::int64_t at = fixed(begin);
    const auto bins = static_cast<std::int64_t>(level.size());
    const auto bin = [&](std::int64_t i) {
        return static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(bins)
                   ? std::bit_cast<std::uint64_t>(level[static_cast<std::size_t>(i)])
                   : 0;
    };
    for (std::size_t x = 0; x < width; ++x) {
        const std::int64_t low = at >> 32;
        at += advance;
        std::uint64_t shares = bin(low);
        for (std::int64_t b = low + 1; b < at >> 32; ++b) shares = mean(shares, bin(b));
        put(x, shares);
    }
}

// Neighbours are often alike.
class Brush {
public:
    explicit Brush(const PixelColors& colors) : colors_(colors), color_(colors.of(std::uint64_t{0})) {}
    std::uint32_t of(std::uint64_t shares) {
        if (shares != before_) color_ = colors_.of(before_ = shares);
        return color_;
    }

private:
    const PixelColors& colors_;
    std::uint64_t before_ = 0;
    std::uint32_t color_;
};

// The shares of activities in one pixel, while events pass through it.
class PixelSum {
public:
    // What is there at all is seen: at least 1 of 255.
    void add(Activity activity, double share) {
        parts_[static_cast<std::size_t>(activity)] += static_cast<float>(std::max(share, 0.004));
        any_ = true;
    }
    // What was added, and nothing again.
    std::uint64_t take() {
        if (!any_) return 0;
        Coverage coverage{};
        for (std::size_t a = 0; a < activity_count; ++a)
            coverage[a] = static_cast<std::uint8_t>(std::min(parts_[a] * 255 + 0.5F, 255.0F));
        parts_ = {};
        any_ = false;
        return std::bit_cast<std::uint64_t>(coverage);
    }

private:
    std::array<float, activity_count> parts_{};
    bool any_ = false;
};

// Calls `put(pixel, shares)` for each, from the events themselves: exact at every zoom, and as long as they are few.
template <typename Put>
void each_pixel_of_events(const Lane& lane, TimeView view, std::size_t pixels, Put put) {
    const auto width = static_cast<std::int64_t>(pixels);
    const Scale scale{view.from, (view.to - view.from) / static_cast<double>(width)};
    PixelSum sum;
    std::int64_t x = 0;  // the pixel that `sum` is of
    const auto move_to = [&](std::int64_t next) {
        if (x >= next) return;
        put(static_cast<std::size_t>(x++), sum.take());
        for (; x < next; ++x) put(static_cast<std::size_t>(x), 0);
    };
    std::size_t i = lane.first_after(static_cast<std::int64_t>(std::floor(view.from)));
    for (; i < lane.size() && static_cast<double>(lane.start(i)) < view.to; ++i) {
        const double left = std::max(scale.pixel(lane.start(i)), 0.0);
        const double right = std::min(scale.pixel(lane.end(i)), static_cast<double>(width));
        const auto first = std::min(static_cast<std::int64_t>(left), width - 1);
        const auto last = std::min(static_cast<std::int64_t>(right), width - 1);
        move_to(first);
        if (first == last) {
            sum.add(lane.activity(i), right - left);
            continue;
        }
        sum.add(lane.activity(i), static_cast<double>(first + 1) - left);
        move_to(first + 1);
        Coverage whole{};
        whole[static_cast<std::size_t>(lane.activity(i))] = 255;
        for (; x < last; ++x) put(static_cast<std::size_t>(x), std::bit_cast<std::uint64_t>(whole));
        sum.add(lane.activity(i), right - static_cast<double>(last));
    }
    move_to(width);
}

void paint_events(const Lane& lane, TimeView view, const PixelColors& colors, bool boxes,
                  std::span<std::uint32_t> pixels) {
    Brush brush(colors);
    each_pixel_of_events(lane, view, pixels.size(),
                         [&](std::size_t x, std::uint64_t shares) { pixels[x] = brush.of(shares); });
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

std::string_view to_string(Coloring coloring) {
    constexpr std::array<std::string_view, 3> names{"activity", "waiting", "network"};
    return names[static_cast<std::size_t>(coloring) % names.size()];
}

std::uint32_t pixel_of(Color color) {
    return 0xFF000000U | (static_cast<std::uint32_t>(color.r) << 16U) | (static_cast<std::uint32_t>(color.g) << 8U) |
           color.b;
}

PixelColors::PixelColors(Theme theme, Coloring coloring) : coloring_(coloring), idle_(pixel_of(idle_color(theme))) {
    Coverage counted{};
    for (std::size_t a = 0; a < activity_count; ++a) {
        const auto activity = static_cast<Activity>(a);
        const bool busy = computes(activity) || activity == Activity::other;
        if (coloring == Coloring::waiting ? busy : communicates(activity)) counted[a] = 255;
    }
    counted_ = std::bit_cast<std::uint64_t>(counted);
    const Color ground = idle_color(theme);
    for (std::size_t a = 0; a < activity_count; ++a) {
        const Color color = color_of(static_cast<Activity>(a), theme);
        full_[a] = pixel_of(color);
        edge_[a] = pixel_of(mixed({0, 0, 0}, color, 0.4));
        for (std::size_t s = 0; s < 256; ++s) {
            shades_[a][s] = pixel_of(mixed(color, ground, static_cast<double>(s) / 255));
        }
    }
    for (std::size_t s = 0; s < 256; ++s) heat_[s] = pixel_of(heat(static_cast<double>(s) / 255, theme));
}

std::uint32_t PixelColors::of(const Coverage& coverage) const { return of(std::bit_cast<std::uint64_t>(coverage)); }

std::uint32_t PixelColors::of(std::uint64_t shares) const {
    if (coloring_ != Coloring::activity) {
        const unsigned sum = sum_of(shares & counted_);
        return heat_[coloring_ == Coloring::waiting ? 255 - sum : sum];
    }
    if (shares == 0) return idle_;
    const auto coverage = std::bit_cast<Coverage>(shares);
    unsigned most = 0;  // the share, and below it which
    for (unsigned a = 0; a < activity_count; ++a) most = std::max(most, (coverage[a] << 3U) | (7 - a));
    return shades_[7 - (most & 7U)][sum_of(shares)];
}

void paint(const Lane& lane, const Lanes& lanes, TimeView view, const PixelColors& colors, bool boxes,
           std::span<std::uint32_t> pixels) {
    if (pixels.empty()) return;
    const double per_pixel = (view.to - view.from) / static_cast<double>(pixels.size());
    const auto* level = level_for(lane, static_cast<double>(lanes.last - lanes.first), per_pixel);
    if (level != nullptr && (!boxes || events_in(lane, view) > pixels.size() / 2)) {
        Brush brush(colors);
        each_pixel(*level, lanes, view, pixels.size(),
                   [&](std::size_t x, std::uint64_t shares) { pixels[x] = brush.of(shares); });
    } else {
        paint_events(lane, view, colors, boxes, pixels);
    }
}

void paint(std::span<const RankLanes> group, const Lanes& lanes, TimeView view, const PixelColors& colors,
           std::span<std::uint32_t> pixels) {
    if (group.size() == 1 && group[0].size() == 1) return paint(*group[0][0], lanes, view, colors, false, pixels);
    const double span = static_cast<double>(lanes.last - lanes.first);
    const double per_pixel = (view.to - view.from) / static_cast<double>(std::max<std::size_t>(pixels.size(), 1));
    std::vector<Sums> sums(group.size() > 1 ? pixels.size() : 0, Sums{});
    std::vector<std::uint64_t> rank(pixels.size());
    for (const RankLanes& of_rank : group) {
        std::ranges::fill(rank, 0);
        for (const Lane* lane : of_rank) {
            const auto* level = level_for(*lane, span, per_pixel);
            const auto put = [&](std::size_t x, std::uint64_t shares) { rank[x] = over(rank[x], shares); };
            level != nullptr ? each_pixel(*level, lanes, view, pixels.size(), put)
                             : each_pixel_of_events(*lane, view, pixels.size(), put);
        }
        for (std::size_t x = 0; x < sums.size(); ++x) {
            const auto of_each = std::bit_cast<Coverage>(rank[x]);
            for (std::size_t a = 0; a < activity_count; ++a) sums[x][a] += of_each[a];
        }
    }
    const auto count = static_cast<std::uint32_t>(group.size());
    Brush brush(colors);
    for (std::size_t x = 0; x < pixels.size(); ++x) {
        pixels[x] = brush.of(group.size() > 1 ? std::bit_cast<std::uint64_t>(mean(sums[x], count)) : rank[x]);
    }
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
