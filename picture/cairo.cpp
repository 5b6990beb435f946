// SPDX-License-Identifier: Apache-2.0
// PNG and PDF: the list of marks replayed on a cairo surface.
#include <cairo-pdf.h>
#include <cairo.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>

#include "core/error.hpp"
#include "picture/write.hpp"

namespace rehearse::picture {

namespace {

constexpr double pi = std::numbers::pi;

void check(cairo_status_t status) {
    if (status != CAIRO_STATUS_SUCCESS) throw BackendError(fmt::format("cairo: {}", cairo_status_to_string(status)));
}

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

cairo_status_t append(void* to, const unsigned char* data, unsigned int length) {
    static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(data), length);
    return CAIRO_STATUS_SUCCESS;
}

void set(cairo_t* c, Color color) {
    cairo_set_source_rgba(c, color.r / 255.0, color.g / 255.0, color.b / 255.0, color.alpha);
}

struct Outline {
    cairo_t* c;

    void operator()(const Rectangle& r) const {
        if (r.corner <= 0) {
            cairo_rectangle(c, r.at.x, r.at.y, r.width, r.height);
            return;
        }
        const double left = r.at.x + r.corner;
        const double right = r.at.x + r.width - r.corner;
        const double top = r.at.y + r.corner;
        const double bottom = r.at.y + r.height - r.corner;
        cairo_new_sub_path(c);
        cairo_arc(c, right, top, r.corner, -pi / 2, 0);
        cairo_arc(c, right, bottom, r.corner, 0, pi / 2);
        cairo_arc(c, left, bottom, r.corner, pi / 2, pi);
        cairo_arc(c, left, top, r.corner, pi, 1.5 * pi);
        cairo_close_path(c);
    }
    void operator()(const Path& p) const {
        for (const Point& point : p.points) cairo_line_to(c, point.x, point.y);
        if (p.closed) cairo_close_path(c);
    }
    void operator()(const Circle& circle) const {
        cairo_new_sub_path(c);
        cairo_arc(c, circle.center.x, circle.center.y, circle.radius, 0, 2 * pi);
    }
    void operator()(const Text& text) const {
        cairo_select_font_face(c, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                               text.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
        cairo_set_font_size(c, text.size);
        cairo_text_extents_t extents;
        cairo_text_extents(c, text.text.c_str(), &extents);
        cairo_save(c);
        cairo_translate(c, text.at.x, text.at.y);
        cairo_rotate(c, text.rotation * pi / 180);
        const double before = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? 0.5 : 1;
        cairo_move_to(c, -before * extents.x_advance, 0);
        cairo_show_text(c, text.text.c_str());
        cairo_restore(c);
        cairo_new_path(c);
    }
};

void replay(cairo_t* c, const Picture& picture) {
    const std::unique_ptr<cairo_font_options_t, decltype(&cairo_font_options_destroy)> options{
        cairo_font_options_create(), cairo_font_options_destroy};
    cairo_font_options_set_hint_metrics(options.get(), CAIRO_HINT_METRICS_OFF);  // widths that do not depend on scale
    cairo_font_options_set_hint_style(options.get(), CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(c, options.get());
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (const Mark& mark : picture.marks) {
        cairo_new_path(c);
        if (mark.fill) set(c, *mark.fill);
        std::visit(Outline{c}, mark.shape);
        if (mark.fill) cairo_fill_preserve(c);
        if (!mark.stroke) continue;
        set(c, mark.stroke->color);
        cairo_set_line_width(c, mark.stroke->width);
        cairo_set_dash(c, mark.stroke->dash.data(), static_cast<int>(mark.stroke->dash.size()), 0);
        cairo_stroke(c);
    }
    check(cairo_status(c));
}

}  // namespace

std::string to_png(const Picture& picture, double scale) {
    const auto pixels = [scale](double length) { return static_cast<int>(std::ceil(length * scale)); };
    const Surface surface{cairo_image_surface_create(CAIRO_FORMAT_RGB24, pixels(picture.width), pixels(picture.height)),
                          cairo_surface_destroy};
    check(cairo_surface_status(surface.get()));
    const Context context{cairo_create(surface.get()), cairo_destroy};
    cairo_scale(context.get(), scale, scale);
    replay(context.get(), picture);
    std::string png;
    check(cairo_surface_write_to_png_stream(surface.get(), append, &png));
    return png;
}

std::string to_pdf(const Picture& picture) { return to_pdf(std::vector<Picture>{picture}); }

std::string to_pdf(const std::vector<Picture>& pages) {
    require(!pages.empty(), "a PDF has a page");
    constexpr double points = 72.0 / 96;  // of a PDF in one of ours
    std::string pdf;
    const Surface surface{
        cairo_pdf_surface_create_for_stream(append, &pdf, points * pages.front().width, points * pages.front().height),
        cairo_surface_destroy};
    check(cairo_surface_status(surface.get()));
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, pages.front().title.c_str());
    for (const Picture& page : pages) {
        cairo_pdf_surface_set_size(surface.get(), points * page.width, points * page.height);
        const Context context{cairo_create(surface.get()), cairo_destroy};
        cairo_scale(context.get(), points, points);
        replay(context.get(), page);
        if (pages.size() > 1) cairo_show_page(context.get());
    }
    cairo_surface_finish(surface.get());
    check(cairo_surface_status(surface.get()));
    return pdf;
}

}  // namespace rehearse::picture
