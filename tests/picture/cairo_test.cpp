// SPDX-License-Identifier: Apache-2.0
// What cairo wrote, decoded again by libpng (through cairo) and looked at pixel by pixel.
#include <cairo.h>
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <memory>

#include "picture/text.hpp"
#include "picture/write.hpp"

namespace rehearse::picture {
namespace {

struct Reading {
    std::string_view rest;
};

cairo_status_t take(void* from, unsigned char* data, unsigned int length) {
    auto& reading = *static_cast<Reading*>(from);
    if (reading.rest.size() < length) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(data, reading.rest.data(), length);
    reading.rest.remove_prefix(length);
    return CAIRO_STATUS_SUCCESS;
}

class Png {
public:
    explicit Png(std::string_view bytes) : reading_{bytes} {
        surface_.reset(cairo_image_surface_create_from_png_stream(take, &reading_));
        cairo_surface_flush(surface_.get());
    }
    bool good() const { return cairo_surface_status(surface_.get()) == CAIRO_STATUS_SUCCESS; }
    int width() const { return cairo_image_surface_get_width(surface_.get()); }
    int height() const { return cairo_image_surface_get_height(surface_.get()); }
    Color at(int x, int y) const {
        const unsigned char* row =
            cairo_image_surface_get_data(surface_.get()) + y * cairo_image_surface_get_stride(surface_.get());
        std::uint32_t pixel = 0;
        std::memcpy(&pixel, row + 4 * x, sizeof pixel);
        return {static_cast<std::uint8_t>(pixel >> 16U), static_cast<std::uint8_t>(pixel >> 8U),
                static_cast<std::uint8_t>(pixel)};
    }

private:
    Reading reading_;
    std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface_{nullptr, cairo_surface_destroy};
};

constexpr Color white{255, 255, 255}, red{255, 0, 0}, blue{0, 0, 255};

Picture flag() {
    return {20,
            10,
            "flag",
            {{Rectangle{{0, 0}, 20, 10}, white, {}, ""},
             {Rectangle{{0, 0}, 10, 10}, red, {}, ""},
             {Circle{{15, 5}, 3}, blue, {}, ""},
             {Path{{{10, 1}, {20, 1}}}, {}, Stroke{{0, 0, 0}, 2, {}}, ""}}};
}

TEST(Png, HasTheSizeAndTheColours) {
    const std::string bytes = to_png(flag(), 2);
    const Png png(bytes);
    ASSERT_TRUE(png.good());
    EXPECT_EQ(png.width(), 40);
    EXPECT_EQ(png.height(), 20);
    EXPECT_EQ(png.at(10, 10), red);
    EXPECT_EQ(png.at(30, 10), blue);
    EXPECT_EQ(png.at(38, 18), white);
    EXPECT_EQ(png.at(30, 1), (Color{0, 0, 0}));
    EXPECT_EQ(Png(to_png(flag(), 1)).width(), 20);
}

TEST(Png, HasTextWhereItsAnchorSays) {
    Picture picture{100, 20, "", {{Rectangle{{0, 0}, 100, 20}, white, {}, ""}}};
    picture.marks.push_back({Text{{100, 15}, "HHHH", 12, Anchor::end}, blue, {}, ""});
    const Png png(to_png(picture, 1));
    const auto inked = [&](int from, int to) {
        int count = 0;
        for (int x = from; x < to; ++x) {
            for (int y = 0; y < 20; ++y) count += png.at(x, y) == white ? 0 : 1;
        }
        return count;
    };
    EXPECT_GT(inked(60, 100), 50);
    EXPECT_EQ(inked(0, 60), 0);  // four letters of 9.02 points end at 100
}

TEST(Pdf, IsOnePageOfThePicturesSize) {
    const std::string pdf = to_pdf(flag());
    EXPECT_TRUE(pdf.starts_with("%PDF-1."));
    EXPECT_THAT(pdf, testing::HasSubstr("/MediaBox [ 0 0 15 7.5 ]"));  // 72 of PDF's points are 96 of ours
}

TEST(TextWidth, IsThatOfTheFont) {
    const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface{
        cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1), cairo_surface_destroy};
    const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> context{cairo_create(surface.get()), cairo_destroy};
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(context.get(), options);
    cairo_font_options_destroy(options);
    cairo_set_font_size(context.get(), 2048);
    for (const bool bold : {false, true}) {
        cairo_select_font_face(context.get(), "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                               bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
        cairo_text_extents_t extents;
        cairo_text_extents(context.get(), "M", &extents);
        if (extents.x_advance != (bold ? 2038 : 1767)) GTEST_SKIP() << "DejaVu Sans is not installed";
        for (char c = ' '; c <= '~'; ++c) {
            const std::array<char, 2> text{c, 0};
            cairo_text_extents(context.get(), text.data(), &extents);
            EXPECT_EQ(text_width(text.data(), 2048, bold), extents.x_advance) << c;
        }
    }
    EXPECT_EQ(text_width("\u00b5", 2048), text_width("0", 2048));
}

}  // namespace
}  // namespace rehearse::picture
