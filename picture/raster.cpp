// SPDX-License-Identifier: Apache-2.0
#include "picture/raster.hpp"

#include <algorithm>
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

// The mean of the bins that a pixel covers, whole bins only: at most 3.
void add_bins(const std::vector<Coverage>& level, double origin, double span, TimeView view, std::size_t width,
              std::span<Sums> sums, std::span<std::uint32_t> counts) {
    const double per_bin = span / static_cast<double>(level.size());
    const double step = (view.to - view.from) / static_cast<double>(width) / per_bin;
    double from = (view.from - origin) / per_bin;
    const auto bins = static_cast<std::int64_t>(level.size());
    for (std::size_t x = 0; x < width; ++x, from += step) {
        const auto low = static_cast<std::int64_t>(std::floor(from + 0.5));
        const auto high = std::max(low + 1, static_cast<std::int64_t>(std::floor(from + step + 0.5)));
        for (std::int64_t b = low; b < high; ++b) {
            ++counts[x];
            if (b < 0 || b >= bins) continue;
            const Coverage& bin = level[static_cast<std::size_t>(b)];
            for (std::size_t a = 0; a < activity_count; ++a) sums[x][a] += bin[a];
        }
    }
}

Coverage mean(const Sums& sums, std::uint32_t count) {
    Coverage result{};
    for (std::size_t a = 0; a < activity_count; ++a) {
        result[a] = static_cast<std::uint8_t>((sums[a] + (sums[a] > 0 ? count - 1 : 0)) / count);
    }
    return result;
}

// From the bins of one lane, without a sum where a pixel has one bin.
void paint_bins(const std::vector<Coverage>& level, const Lanes& lanes, TimeView view, const PixelColors& colors,
                std::span<std::uint32_t> pixels) {
    const double span = static_cast<double>(lanes.last - lanes.first);
    const double per_bin = span / static_cast<double>(level.size());
    const double step = (view.to - view.from) / static_cast<double>(pixels.size()) / per_bin;
    double from = (view.from - static_cast<double>(lanes.first)) / per_bin + 0.5;
    const auto bins = static_cast<std::int64_t>(level.size());
    auto low = static_cast<std::int64_t>(std::floor(from));
    for (std::uint32_t& pixel : pixels) {
        from += step;
        const auto next = static_cast<std::int64_t>(std::floor(from));
        const std::int64_t high = std::max(low + 1, next);
        Sums sums{};
        const auto last = std::min(high, bins);
        for (std::int64_t b = std::max<std::int64_t>(low, 0); b < last; ++b) {
            const Coverage& bin = level[static_cast<std::size_t>(b)];
            for (std::size_t a = 0; a < activity_count; ++a) sums[a] += bin[a];
        }
        pixel = colors.of(mean(sums, static_cast<std::uint32_t>(high - low)));
        low = next;
    }
}

// From the events themselves: each pixel's time is counted, and the events that lie wholly in one pixel are skipped
// over when they are many.
void paint_events(const Lane& lane, TimeView view, const PixelColors& colors, bool boxes,
                  std::span<std::uint32_t> pixels) {
    const auto width = static_cast<std::int64_t>(pixels.size());
    const Scale scale{view.from, (view.to - view.from) / static_cast<double>(width)};
    std::vector<std::array<float, activity_count>> shares(pixels.size(), std::array<float, activity_count>{});
    std::size_t i = lane.first_after(static_cast<std::int64_t>(std::floor(view.from)));
    const std::size_t first = i;
    for (; i < lane.size() && static_cast<double>(lane.start(i)) < view.to; ++i) {
        const double left = std::max(scale.pixel(lane.start(i)), 0.0);
        const double right = std::min(scale.pixel(lane.end(i)), static_cast<double>(width));
        const auto begin = static_cast<std::int64_t>(left);
        const auto end = std::min(static_cast<std::int64_t>(right), width - 1);
        const auto a = static_cast<std::size_t>(lane.activity(i));
        for (std::int64_t x = begin; x <= end; ++x) {
            const double low = std::max(left, static_cast<double>(x));
            const double high = std::min(right, static_cast<double>(x + 1));
            shares[static_cast<std::size_t>(x)][a] += static_cast<float>(std::max(high - low, 0.004));
        }
    }
    for (std::size_t x = 0; x < pixels.size(); ++x) {
        Coverage coverage{};
        for (std::size_t a = 0; a < activity_count; ++a) {
            coverage[a] = static_cast<std::uint8_t>(std::min(shares[x][a] * 255 + 0.5F, 255.0F));
        }
        pixels[x] = colors.of(coverage);
    }
    if (!boxes || colors.coloring() != Coloring::activity) return;
    for (i = first; i < lane.size() && static_cast<double>(lane.start(i)) < view.to; ++i) {
        const double left = scale.pixel(lane.start(i));
        if (scale.pixel(lane.end(i)) - left < 3 || left < 0) continue;
        pixels[static_cast<std::size_t>(std::min(left, static_cast<double>(width - 1)))] =
            colors.edge(lane.activity(i));
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

std::uint32_t PixelColors::of(const Coverage& coverage) const {
    if (coloring_ != Coloring::activity) {
        const bool wait = coloring_ == Coloring::waiting;
        unsigned sum = 0;
        for (std::size_t a = 0; a < activity_count; ++a) {
            const auto activity = static_cast<Activity>(a);
            if (wait ? computes(activity) || activity == Activity::other : communicates(activity)) sum += coverage[a];
        }
        sum = std::min(sum, 255U);
        return heat_[wait ? 255 - sum : sum];
    }
    unsigned sum = 0;
    std::size_t most = 0;
    for (std::size_t a = 0; a < activity_count; ++a) {
        sum += coverage[a];
        if (coverage[a] > coverage[most]) most = a;
    }
    return shades_[most][std::min(sum, 255U)];
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

void paint(std::span<const Lane* const> group, const Lanes& lanes, TimeView view, const PixelColors& colors,
           std::span<std::uint32_t> pixels) {
    if (group.size() == 1) return paint(*group[0], lanes, view, colors, false, pixels);
    const double span = static_cast<double>(lanes.last - lanes.first);
    const double per_pixel = (view.to - view.from) / static_cast<double>(std::max<std::size_t>(pixels.size(), 1));
    std::vector<Sums> sums(pixels.size(), Sums{});
    std::vector<std::uint32_t> counts(pixels.size(), 0);
    for (const Lane* lane : group) {
        const auto* level = level_for(*lane, span, per_pixel);
        if (level == nullptr) level = &lane->levels().front();
        add_bins(*level, static_cast<double>(lanes.first), span, view, pixels.size(), sums, counts);
    }
    for (std::size_t x = 0; x < pixels.size(); ++x) pixels[x] = colors.of(mean(sums[x], counts[x]));
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
