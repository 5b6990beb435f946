// SPDX-License-Identifier: Apache-2.0
// Colours as people with colour blindness see them, simulated by the matrices of Vienot, Brettel and Mollon (1999) in
// linear RGB for protanopia and deuteranopia, and for tritanopia by the first plane of Brettel et al. (1997);
// differences are CIE76's in Lab, of which 2.3 is just noticeable.
#include "picture/palette.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "picture/activity.hpp"

namespace rehearse::picture {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

constexpr Matrix normal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    protanopia{{{0.11238, 0.88762, 0}, {0.11238, 0.88762, 0}, {0.00401, -0.00401, 1}}},
    deuteranopia{{{0.29275, 0.70725, 0}, {0.29275, 0.70725, 0}, {-0.02234, 0.02234, 1}}},
    tritanopia{{{1.01277, 0.13548, -0.14826}, {-0.01243, 0.86812, 0.14431}, {0.07589, 0.80500, 0.11911}}};

Vector times(const Matrix& matrix, const Vector& vector) {
    Vector result{};
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) result[i] += matrix[i][j] * vector[j];
    return result;
}

Vector linear(Color color) {
    const auto of = [](std::uint8_t value) {
        const double share = value / 255.0;
        return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
    };
    return {of(color.r), of(color.g), of(color.b)};
}

Vector lab(const Vector& rgb) {
    constexpr Matrix to_xyz{{{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}};
    const Vector xyz = times(to_xyz, rgb);
    const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
    const double x = f(std::max(xyz[0], 0.0) / 0.95047), y = f(std::max(xyz[1], 0.0)),
                 z = f(std::max(xyz[2], 0.0) / 1.08883);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double difference(Color a, Color b, const Matrix& eye) {
    const Vector one = lab(times(eye, linear(a))), two = lab(times(eye, linear(b)));
    return std::hypot(one[0] - two[0], one[1] - two[1], one[2] - two[2]);
}

double contrast(Color a, Color b) {
    const auto luminance = [](Color c) {
        const Vector rgb = linear(c);
        return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    };
    const double one = luminance(a) + 0.05, two = luminance(b) + 0.05;
    return std::max(one, two) / std::min(one, two);
}

struct Eye {
    const char* name;
    const Matrix* matrix;
};
constexpr std::array eyes{Eye{"normal", &normal}, Eye{"protanopia", &protanopia}, Eye{"deuteranopia", &deuteranopia},
                          Eye{"tritanopia", &tritanopia}};

void expect_apart(const std::vector<Color>& colors, double least, const std::string& what) {
    for (const Eye& eye : eyes)
        for (std::size_t i = 0; i < colors.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                EXPECT_GT(difference(colors[i], colors[j], *eye.matrix), least)
                    << what << ", " << eye.name << ": colours " << j << " and " << i;
}

TEST(Simulation, LeavesGreysAndMakesRedAndGreenAlike) {
    for (const Eye& eye : eyes) EXPECT_LT(difference({120, 120, 120}, {120, 120, 120}, *eye.matrix), 1e-9);
    const Vector grey = times(deuteranopia, linear({120, 120, 120}));
    EXPECT_NEAR(grey[0], linear({120, 120, 120})[0], 1e-4);
    EXPECT_NEAR(grey[2], linear({120, 120, 120})[2], 1e-4);
    const Color red{200, 60, 40}, green{110, 125, 40};  // apart for most eyes, hardly for these
    EXPECT_GT(difference(red, green, normal), 50);
    EXPECT_LT(difference(red, green, deuteranopia), difference(red, green, normal) / 2);
}

// Of series: all eight are told apart by every eye; the first three, which most charts need, by far.
TEST(Palette, SeriesAreToldApartByEveryEye) {
    for (const Theme theme : {Theme::light, Theme::dark}) {
        const std::vector<Color>& all = palette(theme).series;
        ASSERT_EQ(all.size(), 8U);
        expect_apart(all, 8, "all series");
        expect_apart({all.begin(), all.begin() + 3}, 12, "the first three");
    }
}

// Of activities: what computes is told from what waits for others.
TEST(Palette, ComputingIsToldFromCommunicatingByEveryEye) {
    for (const Theme theme : {Theme::light, Theme::dark}) {
        std::vector<Color> all{idle_color(theme)};
        for (std::size_t i = 0; i < activity_count; ++i) all.push_back(color_of(static_cast<Activity>(i), theme));
        expect_apart(all, 5, "activities");
        for (const Eye& eye : eyes)
            for (const Activity one : {Activity::forward, Activity::backward_data, Activity::backward_weights})
                for (const Activity other : {Activity::collective, Activity::point_to_point})
                    EXPECT_GT(difference(color_of(one, theme), color_of(other, theme), *eye.matrix), 20)
                        << eye.name << ": " << to_string(one) << " and " << to_string(other);
    }
}

// Loads of links and lanes: from the ground over orange to dark red (light, on dark ground), told apart by lightness.
TEST(Palette, LoadsGrowDarkerForEveryEye) {
    const auto lightness = [](Color color, const Matrix& eye) { return lab(times(eye, linear(color)))[0]; };
    for (const Eye& eye : eyes) {
        EXPECT_GT(lightness({200, 204, 210}, *eye.matrix), lightness({230, 140, 60}, *eye.matrix) + 8) << eye.name;
        EXPECT_GT(lightness({230, 140, 60}, *eye.matrix), lightness({128, 16, 38}, *eye.matrix) + 8) << eye.name;
        EXPECT_LT(lightness({90, 96, 106}, *eye.matrix), lightness({230, 140, 60}, *eye.matrix) - 8) << eye.name;
        EXPECT_LT(lightness({230, 140, 60}, *eye.matrix), lightness({255, 226, 160}, *eye.matrix) - 8) << eye.name;
    }
}

TEST(Palette, TextAndLinesAreReadable) {
    for (const Theme theme : {Theme::light, Theme::dark}) {
        const Palette& colors = palette(theme);
        EXPECT_GE(contrast(colors.text, colors.background), 7);          // WCAG 2, AAA
        EXPECT_GE(contrast(colors.faint_text, colors.background), 4.5);  // AA
        EXPECT_GE(contrast(colors.axis, colors.background), 3);          // graphics
        for (const Color series : colors.series) EXPECT_GE(contrast(readable_on(series), series), 4.5);
    }
}

}  // namespace
}  // namespace rehearse::picture
