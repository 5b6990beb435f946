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

// Where the colour of a cell stands among the shades: of the activity with the largest share, the first of equal ones,
// as much as the cell is not idle.
std::size_t place_of(Shares shares) {
    unsigned most = 0;
    for (unsigned a = 0; a < activity_count; ++a)
        most = std::max(most, ((static_cast<unsigned>(shares >> (8 * a)) & 255U) << 3U) | (7 - a));
    return ((most & 7U) << 8U) | sum_of(shares);
}

#if defined(__SSE2__)
// Of two cells, in the low halves: the share that is not idle (means are rounded up, so that it may exceed a whole).
__m128i sums_of(__m128i cells) { return _mm_min_epi16(_mm_sad_epu8(cells, _mm_setzero_si128()), _mm_set1_epi64x(255)); }

// The same as place_of.
__m128i places_of(__m128i cells) {
    const __m128i zero = _mm_setzero_si128(), order = _mm_setr_epi16(7, 6, 5, 4, 3, 2, 1, 0);
    const __m128i a = _mm_or_si128(_mm_slli_epi16(_mm_unpacklo_epi8(cells, zero), 3), order);
    const __m128i b = _mm_or_si128(_mm_slli_epi16(_mm_unpackhi_epi8(cells, zero), 3), order);
    __m128i most = _mm_max_epi16(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
    most = _mm_max_epi16(most, _mm_srli_epi64(most, 32));
    most = _mm_max_epi16(most, _mm_srli_epi64(most, 16));
    most = _mm_slli_epi64(_mm_and_si128(most, _mm_set1_epi64x(7)), 8);
    return _mm_or_si128(most, sums_of(cells));
}
#endif

}  // namespace

// Colours of a share between 0 and 1: from idle ground through orange to dark red (one hue axis, growing darker, so
// that it is read without colour too).
Color heat(double share, Theme theme) {
    const Color ground = idle_color(theme);
    constexpr Color middle{230, 140, 60};
    const Color end = theme == Theme::dark ? Color{255, 226, 160} : Color{128, 16, 38};
    return share < 0.5 ? mixed(middle, ground, share * 2) : mixed(end, middle, share * 2 - 1);
}

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
            shades_[((7 - a) << 8U) | s] = pixel_of(mixed(color, ground, static_cast<double>(s) / 255));
        }
    }
    for (std::size_t s = 0; coloring != Coloring::activity && s < 256; ++s) {
        const std::size_t share = coloring == Coloring::waiting ? 255 - s : s;
        shades_[s] = pixel_of(heat(static_cast<double>(share) / 255, theme));
    }
}

std::uint32_t PixelColors::of(const Coverage& coverage) const {
    const Shares shares = shares_of(coverage);
    return shades_[coloring_ == Coloring::activity ? place_of(shares) : sum_of(shares & counted_)];
}

void PixelColors::paint(std::span<const Shares> shares, std::span<std::uint32_t> pixels) const {
    std::size_t x = 0;
#if defined(__SSE2__)
    const __m128i counted = _mm_set1_epi64x(static_cast<long long>(counted_));
    for (; x + 2 <= pixels.size(); x += 2) {
        const __m128i cells = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shares.data() + x));
        const __m128i places =
            coloring_ == Coloring::activity ? places_of(cells) : sums_of(_mm_and_si128(cells, counted));
        pixels[x] = shades_[static_cast<unsigned>(_mm_extract_epi16(places, 0))];
        pixels[x + 1] = shades_[static_cast<unsigned>(_mm_extract_epi16(places, 4))];
    }
#endif
    for (; x < pixels.size(); ++x) pixels[x] = of(coverage_of(shares[x]));
}

}  // namespace rehearse::picture
