// SPDX-License-Identifier: Apache-2.0
// From the shares of activities in a pixel to its colour.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>

#include "picture/raster.hpp"
#include "picture/shares.hpp"

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

// The largest of the eight bytes, and below it 7 minus which it is, the first of equal ones: byte * 8 + 7 - place.
unsigned largest(Shares shares) {
#if defined(__SSE2__)
    const __m128i bytes = _mm_unpacklo_epi8(_mm_cvtsi64_si128(static_cast<long long>(shares)), _mm_setzero_si128());
    __m128i each = _mm_or_si128(_mm_slli_epi16(bytes, 3), _mm_setr_epi16(7, 6, 5, 4, 3, 2, 1, 0));
    each = _mm_max_epi16(each, _mm_srli_si128(each, 8));
    each = _mm_max_epi16(each, _mm_srli_si128(each, 4));
    each = _mm_max_epi16(each, _mm_srli_si128(each, 2));
    return static_cast<unsigned>(_mm_extract_epi16(each, 0));
#else
    unsigned most = 0;
    for (unsigned a = 0; a < activity_count; ++a)
        most = std::max(most, (static_cast<unsigned>((shares >> (8 * a)) & 255U) << 3U) | (7 - a));
    return most;
#endif
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
    counted_ = shares_of(counted);
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

std::uint32_t PixelColors::of(const Coverage& coverage) const { return of(shares_of(coverage)); }

std::uint32_t PixelColors::of(std::uint64_t shares) const {
    if (coloring_ != Coloring::activity) {
        const unsigned sum = sum_of(shares & counted_);
        return heat_[coloring_ == Coloring::waiting ? 255 - sum : sum];
    }
    if (shares == 0) return idle_;
    const unsigned most = largest(shares);
    return shades_[7 - (most & 7U)][sum_of(shares)];
}

}  // namespace rehearse::picture
