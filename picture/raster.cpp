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

// What one rank does in a pixel; at most 255 of 255 in all.
struct Shares {
    std::uint64_t of_each = 0;  // a byte an activity
    unsigned used = 0;
};

// What does not fit any more is hidden: communication behind computing is not seen.
void add(Shares& pixel, std::uint64_t shares) {
    if (shares == 0 || pixel.used == 255) return;
    const unsigned sum = sum_of(shares);
    if (pixel.used + sum <= 255) {
        pixel.of_each += shares;
        pixel.used += sum;
        return;
    }
    const auto more = std::bit_cast<Coverage>(shares);
    auto of_each = std::bit_cast<Coverage>(pixel.of_each);
    for (std::size_t a = 0; a < activity_count && pixel.used < 255; ++a) {
        const unsigned share = std::min<unsigned>(more[a], 255 - pixel.used);
        of_each[a] = static_cast<std::uint8_t>(of_each[a] + share);
        pixel.used += share;
    }
    pixel.of_each = std::bit_cast<std::uint64_t>(of_each);
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
    const double span = static_cast<double>(lanes.last - lanes.first);
    const double per_bin = span / static_cast<double>(level.size());
    const double step = (view.to - view.from) / static_cast<double>(width) / per_bin;
    const double begin = (view.from - static_cast<double>(lanes.first)) / per_bin + 0.5;
    const auto bins = static_cast<std::int64_t>(level.size());
    const auto bin = [&](std::int64_t i) {
        return i >= 0 && i < bins ? std::bit_cast<std::uint64_t>(level[static_cast<std::size_t>(i)]) : 0;
    };
    auto low = static_cast<std::int64_t>(std::floor(begin));
    for (std::size_t x = 0; x < width; ++x) {
        const auto next = static_cast<std::int64_t>(std::floor(begin + step * static_cast<double>(x + 1)));
        std::uint64_t shares = bin(low);
        for (std::int64_t b = low + 1; b < next; ++b) shares = mean(shares, bin(b));
        put(x, shares);
        low = next;
    }
}

void paint_bins(const std::vector<Coverage>& level, const Lanes& lanes, TimeView view, const PixelColors& colors,
                std::span<std::uint32_t> pixels) {
    std::uint64_t before = 0;
    std::uint32_t color = colors.of(before);
    each_pixel(level, lanes, view, pixels.size(), [&](std::size_t x, std::uint64_t shares) {
        if (shares != before) color = colors.of(before = shares);
        pixels[x] = color;
    });
}

// Calls `put(pixel, shares)` for each, from the events themselves: exact at every zoom, and as long as they are few.
template <typename Put>
void each_pixel_of_events(const Lane& lane, TimeView view, std::size_t pixels, Put put) {
    const auto width = static_cast<std::int64_t>(pixels);
    const Scale scale{view.from, (view.to - view.from) / static_cast<double>(width)};
    std::vector<std::array<float, activity_count>> shares(pixels, std::array<float, activity_count>{});
    std::size_t i = lane.first_after(static_cast<std::int64_t>(std::floor(view.from)));
    for (; i < lane.size() && static_cast<double>(lane.start(i)) < view.to; ++i) {
        const double left = std::max(scale.pixel(lane.start(i)), 0.0);
        const double right = std::min(scale.pixel(lane.end(i)), static_cast<double>(width));
        const auto end = std::min(static_cast<std::int64_t>(right), width - 1);
        const auto a = static_cast<std::size_t>(lane.activity(i));
        for (auto x = static_cast<std::int64_t>(left); x <= end; ++x) {
            const double low = std::max(left, static_cast<double>(x));
            const double high = std::min(right, static_cast<double>(x + 1));
            shares[static_cast<std::size_t>(x)][a] += static_cast<float>(std::max(high - low, 0.004));
        }
    }
    for (std::size_t x = 0; x < pixels; ++x) {
        Coverage coverage{};
        for (std::size_t a = 0; a < activity_count; ++a) {
            coverage[a] = static_cast<std::uint8_t>(std::min(shares[x][a] * 255 + 0.5F, 255.0F));
        }
        put(x, std::bit_cast<std::uint64_t>(coverage));
    }
}

void paint_events(const Lane& lane, TimeView view, const PixelColors& colors, bool boxes,
                  std::span<std::uint32_t> pixels) {
    each_pixel_of_events(lane, view, pixels.size(),
                         [&](std::size_t x, std::uint64_t shares) { pixels[x] = colors.of(shares); });
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
        paint_bins(*level, lanes, view, colors, pixels);
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
    std::vector<Shares> rank(pixels.size());
    for (const RankLanes& of_rank : group) {
        std::ranges::fill(rank, Shares{});
        for (const Lane* lane : of_rank) {
            const auto* level = level_for(*lane, span, per_pixel);
            const auto put = [&](std::size_t x, std::uint64_t shares) { add(rank[x], shares); };
            level != nullptr ? each_pixel(*level, lanes, view, pixels.size(), put)
                             : each_pixel_of_events(*lane, view, pixels.size(), put);
        }
        for (std::size_t x = 0; x < sums.size(); ++x) {
            const auto of_each = std::bit_cast<Coverage>(rank[x].of_each);
            for (std::size_t a = 0; a < activity_count; ++a) sums[x][a] += of_each[a];
        }
    }
    const auto count = static_cast<std::uint32_t>(group.size());
    for (std::size_t x = 0; x < pixels.size(); ++x) {
        pixels[x] = group.size() > 1 ? colors.of(mean(sums[x], count)) : colors.of(rank[x].of_each);
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
