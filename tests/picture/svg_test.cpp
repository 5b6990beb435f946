// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "picture/palette.hpp"
#include "picture/write.hpp"

namespace rehearse::picture {
namespace {

constexpr Color red{255, 0, 0}, clear_blue{0, 0, 255, 0.5};

TEST(Svg, OfEveryMarkIsWrittenOutByHand) {
    const Picture picture{60,
                          40.5,
                          "a <b>",
                          {{Rectangle{{1, 2}, 10, 20}, red, {}, "tip & \"top\""},
                           {Rectangle{{0, 0}, 5, 5, 2}, {}, Stroke{red, 1, {}}, ""},
                           {Path{{{0, 0}, {1.005, -0.001}, {3.14159, 2}}}, {}, Stroke{clear_blue, 2.5, {4, 2}}, ""},
                           {Path{{{0, 0}, {1, 0}, {1, 1}}, true}, clear_blue, {}, ""},
                           {Circle{{5, 6}, 0.25}, red, Stroke{clear_blue, 0.5, {}}, ""},
                           {Text{{7, 8}, "5 > 4", 11}, red, {}, ""},
                           {Text{{7, 8}, "µ", 9.5, Anchor::end, -90, true}, red, {}, ""},
                           {Text{{1, 1}, "m", 11, Anchor::middle}, red, {}, ""}}};
    EXPECT_EQ(to_svg(picture),
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"40.5\" viewBox=\"0 0 60 40.5\" "
              "font-family=\"DejaVu Sans, Verdana, sans-serif\" stroke-linejoin=\"round\">\n"
              "<title>a &lt;b&gt;</title>\n"
              "<rect x=\"1\" y=\"2\" width=\"10\" height=\"20\" fill=\"#ff0000\"><title>tip &amp; "
              "&quot;top&quot;</title></rect>\n"
              "<rect x=\"0\" y=\"0\" width=\"5\" height=\"5\" rx=\"2\" fill=\"none\" stroke=\"#ff0000\"/>\n"
              "<polyline points=\"0,0 1,0 3.14,2\" fill=\"none\" stroke=\"#0000ff\" stroke-opacity=\"0.5\" "
              "stroke-width=\"2.5\" stroke-dasharray=\"4 2\"/>\n"
              "<polygon points=\"0,0 1,0 1,1\" fill=\"#0000ff\" fill-opacity=\"0.5\"/>\n"
              "<circle cx=\"5\" cy=\"6\" r=\"0.25\" fill=\"#ff0000\" stroke=\"#0000ff\" stroke-opacity=\"0.5\" "
              "stroke-width=\"0.5\"/>\n"
              "<text x=\"7\" y=\"8\" font-size=\"11\" fill=\"#ff0000\">5 &gt; 4</text>\n"
              "<text x=\"7\" y=\"8\" font-size=\"9.5\" text-anchor=\"end\" font-weight=\"bold\" "
              "transform=\"rotate(-90 7 8)\" fill=\"#ff0000\">µ</text>\n"
              "<text x=\"1\" y=\"1\" font-size=\"11\" text-anchor=\"middle\" fill=\"#ff0000\">m</text>\n"
              "</svg>\n");
}

TEST(Write, ChoosesTheFormatByTheSuffix) {
    const Picture picture{10, 10, "", {}};
    EXPECT_EQ(encoded(picture, "a/b.svg"), to_svg(picture));
    EXPECT_THROW(check_suffix("picture.jpg"), InputError);
    EXPECT_THROW(encoded(picture, "svg"), InputError);
}

TEST(PaletteOnPaper, TextIsReadableOnEverySeriesColor) {
    EXPECT_EQ(readable_on({255, 255, 255}), (Color{0, 0, 0}));
    EXPECT_EQ(readable_on({240, 228, 66}), (Color{0, 0, 0}));
    EXPECT_EQ(readable_on({0, 0, 90}), (Color{255, 255, 255}));
    EXPECT_EQ(mixed({200, 100, 0}, {0, 0, 0}, 0.5), (Color{100, 50, 0}));
}

}  // namespace
}  // namespace rehearse::picture
