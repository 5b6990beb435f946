// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/quoting.hpp"
#include "picture/write.hpp"

namespace rehearse::picture {

namespace {

// At most two decimals, none that are zeros, and no "-0".
std::string number(double value) {
    std::string text = fmt::format("{:.2f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : printable(text)) {
        if (c == '&') {
            result += "&amp;";
        } else if (c == '<') {
            result += "&lt;";
        } else if (c == '>') {
            result += "&gt;";
        } else if (c == '"') {
            result += "&quot;";
        } else {
            result += c;
        }
    }
    return result;
}

std::string hex(Color color) { return fmt::format("#{:02x}{:02x}{:02x}", color.r, color.g, color.b); }

std::string paint(const Mark& mark) {
    std::string text = fmt::format(" fill=\"{}\"", mark.fill ? hex(*mark.fill) : "none");
    if (mark.fill && mark.fill->alpha < 1) text += fmt::format(" fill-opacity=\"{}\"", number(mark.fill->alpha));
    if (!mark.stroke) return text;
    const auto& [color, width, dash] = *mark.stroke;
    text += fmt::format(" stroke=\"{}\"", hex(color));
    if (color.alpha < 1) text += fmt::format(" stroke-opacity=\"{}\"", number(color.alpha));
    if (width != 1) text += fmt::format(" stroke-width=\"{}\"", number(width));
    for (std::size_t i = 0; i < dash.size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? " stroke-dasharray=\"" : " ", number(dash[i]));
    }
    return dash.empty() ? text : text + '"';
}

// An element without what all have: its name and geometry, and what stands inside it.
struct Element {
    std::string name, geometry, content;
};

struct Geometry {
    Element operator()(const Rectangle& r) const {
        const std::string corner = r.corner > 0 ? fmt::format(" rx=\"{}\"", number(r.corner)) : "";
        return {"rect",
                fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", number(r.at.x), number(r.at.y),
                            number(r.width), number(r.height), corner),
                ""};
    }
    Element operator()(const Path& p) const {
        std::string points;
        for (const Point& point : p.points) {
            points += fmt::format("{}{},{}", points.empty() ? "" : " ", number(point.x), number(point.y));
        }
        return {p.closed ? "polygon" : "polyline", fmt::format(" points=\"{}\"", points), ""};
    }
    Element operator()(const Circle& c) const {
        return {"circle",
                fmt::format(" cx=\"{}\" cy=\"{}\" r=\"{}\"", number(c.center.x), number(c.center.y), number(c.radius)),
                ""};
    }
    Element operator()(const Text& t) const {
        constexpr std::array anchors{"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
        const std::string x = number(t.at.x);
        const std::string y = number(t.at.y);
        std::string geometry = fmt::format(" x=\"{}\" y=\"{}\" font-size=\"{}\"{}", x, y, number(t.size),
                                           anchors.at(static_cast<std::size_t>(t.anchor)));
        if (t.bold) geometry += " font-weight=\"bold\"";
        if (t.rotation != 0) geometry += fmt::format(" transform=\"rotate({} {} {})\"", number(t.rotation), x, y);
        return {"text", geometry, escaped(t.text)};
    }
};

}  // namespace

std::string to_svg(const Picture& picture) {
    const std::string width = number(picture.width);
    const std::string height = number(picture.height);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
        "font-family=\"DejaVu Sans, Verdana, sans-serif\" stroke-linejoin=\"round\">\n",
        width, height, width, height);
    if (!picture.title.empty()) svg += fmt::format("<title>{}</title>\n", escaped(picture.title));
    for (const Mark& mark : picture.marks) {
        auto [name, geometry, content] = std::visit(Geometry{}, mark.shape);
        if (!mark.title.empty()) content += fmt::format("<title>{}</title>", escaped(mark.title));
        svg += fmt::format("<{}{}{}", name, geometry, paint(mark));
        svg += content.empty() ? "/>\n" : fmt::format(">{}</{}>\n", content, name);
    }
    return svg + "</svg>\n";
}

}  // namespace rehearse::picture
