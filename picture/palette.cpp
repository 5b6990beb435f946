// SPDX-License-Identifier: Apache-2.0
#include "picture/palette.hpp"

#include <cmath>

namespace rehearse::picture {

namespace {

constexpr Color orange{230, 159, 0}, sky_blue{86, 180, 233}, green{0, 158, 115}, yellow{240, 228, 66},
    blue{0, 114, 178}, vermillion{213, 94, 0}, purple{204, 121, 167}, grey{120, 120, 120};

double luminance(Color color) {
    const auto linear = [](std::uint8_t value) {
        const double share = value / 255.0;
        return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

}  // namespace

const Palette& palette(Theme theme) {
    static const Palette light{{255, 255, 255}, {34, 34, 34},
                               {102, 102, 102}, {136, 136, 136},
                               {230, 230, 230}, {blue, vermillion, green, purple, orange, sky_blue, grey, yellow}};
    static const Palette dark{{27, 30, 36},    {232, 232, 232},
                              {170, 170, 170}, {130, 134, 142},
                              {54, 58, 66},    {sky_blue, orange, green, purple, yellow, vermillion, grey, blue}};
    return theme == Theme::dark ? dark : light;
}

Color series_color(const Palette& colors, std::size_t index) { return colors.series[index % colors.series.size()]; }

Color mixed(Color color, Color ground, double share) {
    const auto mix = [share](std::uint8_t a, std::uint8_t b) {
        return static_cast<std::uint8_t>(std::lround(share * a + (1 - share) * b));
    };
    return {mix(color.r, ground.r), mix(color.g, ground.g), mix(color.b, ground.b), 1};
}

Color readable_on(Color ground) {
    constexpr Color black{0, 0, 0}, white{255, 255, 255};
    // Contrast is (a + 0.05) / (b + 0.05); against black and against white it is equal at 0.179.
    return luminance(ground) > 0.179 ? black : white;
}

}  // namespace rehearse::picture
