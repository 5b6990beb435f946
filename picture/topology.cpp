// SPDX-License-Identifier: Apache-2.0
#include "picture/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "picture/activity.hpp"
#include "picture/text.hpp"
#include "picture/topology_pen.hpp"

namespace rehearse::picture {

namespace {

constexpr double margin = 16;

double width_of(Bandwidth bandwidth, Bandwidth most) {
    return 1 + 5 * std::sqrt(bandwidth.value / std::max(most.value, 1.0));
}

// By the root: a tenth of a link's bandwidth is a usual mean, and should be seen.
Color load_color(double share, Theme theme) { return heat_color(std::sqrt(std::max(share, 0.0)), theme); }

std::vector<LinkName> names_of(std::int64_t node, std::size_t link, const Vertex& a, const Vertex& b) {
    const auto way = [&](const Vertex& from, const Vertex& to) {
        return LinkName{fmt::format("node{}:link{}:{}>{}", node, link, from.name, to.name),
                        group_of(from) + ">" + group_of(to)};
    };
    return {way(a, b), way(b, a)};
}

// Devices above, bridges in the middle, NICs below; each near to the bridge that it hangs on.
std::vector<Point> places(const NodeKind& node, Box box) {
    std::vector<std::vector<int>> rows(3);  // devices, bridges, nics
    for (int v = 0; v < std::ssize(node.vertices); ++v) {
        const VertexKind kind = node.vertices[static_cast<std::size_t>(v)].kind;
        rows[kind == VertexKind::device ? 0 : kind == VertexKind::bridge ? 1 : 2].push_back(v);
    }
    std::vector<Point> at(node.vertices.size());
    const bool no_bridges = rows[1].empty();
    const std::size_t each = std::max<std::size_t>(rows[0].size() / std::max<std::size_t>(rows[1].size(), 1), 1);
    for (std::size_t r = 0; r < 3; ++r) {
        for (std::size_t i = 0; i < rows[r].size(); ++i) {
            // A row of many devices waves, so that links between neighbours do not lie on each other.
            const double wave = r == 0 && rows[r].size() > 2 ? (i % each % 2 == 0 ? -1 : 1) * box.height * 0.1 : 0;
            const double y = no_bridges ? (r == 0 ? 0.4 : 0.85) : (r == 0 ? 0.24 : r == 1 ? 0.62 : 0.92);
            at[static_cast<std::size_t>(rows[r][i])] = {
                box.left + box.width * (static_cast<double>(i) + 0.5) / static_cast<double>(rows[r].size()),
                box.top + box.height * y + wave};
        }
    }
    return at;
}

// Round what stands between.
std::vector<Point> bow(Point from, Point to, const Box& box) {
    std::vector<Point> path;
    for (int i = 0; i <= 16; ++i) {
        const double t = i / 16.0;
        path.push_back({from.x + t * (to.x - from.x), from.y - 0.16 * box.height * std::sin(std::numbers::pi * t)});
    }
    return path;
}

void draw_node(const TopologyPen& pen, const Machine& machine, const NodeKind& node, std::int64_t number, Box box) {
    pen.text({box.left, box.top}, fmt::format("{} × {}", node.count, node.name), Anchor::start, false, 12.5, true);
    const std::vector<Point> at = places(node, {box.left, box.top + 18, box.width, box.height - 30});
    Bandwidth most;
    for (const NodeLink& link : node.links) most = std::max(most, link.bandwidth.value);
    for (std::size_t l = 0; l < node.links.size(); ++l) {
        const NodeLink& link = node.links[l];
        const Vertex& a = node.vertices[static_cast<std::size_t>(link.a)];
        const Vertex& b = node.vertices[static_cast<std::size_t>(link.b)];
        const Point from = at[static_cast<std::size_t>(link.a)], to = at[static_cast<std::size_t>(link.b)];
        std::vector<Point> path{from, to};
        if (std::abs(from.y - to.y) < 4 && std::abs(from.x - to.x) > box.width * 0.3) path = bow(from, to, box);
        pen.link(std::move(path), width_of(link.bandwidth.value, most), names_of(number, l, a, b),
                 link_title(a.name + " – " + b.name, link.bandwidth.value, link.latency.value, link.bandwidth.source));
    }
    const double wide = std::clamp(box.width / static_cast<double>(node.vertices.size() / 2 + 1) - 6, 24.0, 84.0);
    std::int64_t nic = 0;
    for (std::size_t v = 0; v < node.vertices.size(); ++v) {
        const Vertex& vertex = node.vertices[v];
        const bool device = vertex.kind == VertexKind::device;
        std::string title = vertex.name;
        if (device && vertex.device_class >= 0) {
            const DeviceClass& of = machine.classes[static_cast<std::size_t>(vertex.device_class)];
            title += fmt::format(": {}, {} of memory at {}", of.name, to_string(of.memory.value),
                                 to_string(of.memory_bandwidth.value));
        }
        const Color color = device ? device_color : vertex.kind == VertexKind::nic ? nic_color : bridge_color;
        const bool fits = text_width(vertex.name, 10) < wide - 4;
        if (vertex.kind == VertexKind::nic) {
            pen.link({at[v], {at[v].x, at[v].y + 30}}, 4, nics_of(number, nic++, 1), vertex.name + ": into the fabric");
        }
        pen.box(at[v], wide, device ? 30 : 24, color, fits ? vertex.name : "", title);
    }
}

}  // namespace

void TopologyPen::text(Point at, const std::string& words, Anchor anchor, bool faint, double size, bool bold) const {
    picture.marks.push_back({Text{at, words, size, anchor, 0, bold}, faint ? colors.faint_text : colors.text, {}, ""});
}

void TopologyPen::box(Point center, double width, double height, Color color, const std::string& words,
                      const std::string& title) const {
    picture.marks.push_back({Rectangle{{center.x - width / 2, center.y - height / 2}, width, height, 5}, color,
                             Stroke{colors.background, 1, {}}, title});
    if (words.empty()) return;
    picture.marks.push_back(
        {Text{{center.x, center.y + half_height(10)}, words, 10, Anchor::middle}, readable_on(color), {}, ""});
}

namespace {

/// How busy a direction of a link is, and what says so.
struct DrawnLoad {
    double share = 0;
    std::string words;
};

DrawnLoad load_of(const LinkShares& use, const LinkName& name) {
    if (const auto own = use.single.find(name.single); own != use.single.end())
        return {own->second, fmt::format("{}: {:.1f} % used", name.single, 100 * own->second)};
    const auto kind = use.kinds.find(name.kind);
    if (kind == use.kinds.end() || kind->second.listed) return {0, name.single + ": idle"};
    const auto& [share, links, listed] = kind->second;
    return {share, fmt::format("{}: {:.1f} % used, the mean of {} that carr{} anything", name.kind, 100 * share, links,
                               links == 1 ? "ies" : "y")};
}

}  // namespace

void TopologyPen::link(std::vector<Point> path, double width, const std::vector<LinkName>& directions,
                       const std::string& title) const {
    Mark mark{Path{std::move(path)}, {}, Stroke{colors.axis, width, {}}, title};
    if (!use.empty()) {
        double share = 0;
        for (const LinkName& name : directions) {
            const DrawnLoad load = load_of(use, name);
            share = std::max(share, load.share);
            mark.title += "\n" + load.words;
        }
        mark.stroke->color = load_color(share, theme);
    }
    picture.marks.push_back(std::move(mark));
}

std::vector<LinkName> nics_of(std::int64_t node, std::int64_t first, std::int64_t count) {
    std::vector<LinkName> names;
    for (std::int64_t nic = first; nic < first + count; ++nic) {
        for (const char* direction : {"up", "down"})
            names.push_back({fmt::format("node{}:nic{}:{}", node, nic, direction), fmt::format("nic:{}", direction)});
    }
    return names;
}

std::string link_title(const std::string& what, Bandwidth bandwidth, Seconds latency, const std::string& source) {
    std::string title = fmt::format("{}: {} each direction, {}", what, to_string(bandwidth), to_string(latency));
    return title + (source.empty() ? "" : "\nsource: " + source);
}

Color heat_color(double share, Theme theme) {
    const double s = std::clamp(share, 0.0, 1.0);
    const Color ground = theme == Theme::dark ? Color{90, 96, 106} : Color{200, 204, 210};
    constexpr Color middle{230, 140, 60};
    const Color end = theme == Theme::dark ? Color{255, 226, 160} : Color{128, 16, 38};
    return s < 0.5 ? mixed(middle, ground, s * 2) : mixed(end, middle, s * 2 - 1);
}

Picture topology_picture(const Machine& machine, const LinkShares& use, double width, Theme theme, std::int64_t node) {
    const double node_height = 300, fabric_height = 300;
    const double height = 64 + node_height + 30 + fabric_height + 40;
    Picture picture = canvas({width, height}, palette(theme), machine.name);
    const TopologyPen pen{picture, theme, palette(theme), use};
    std::string subtitle = machine.summary;
    if (std::ranges::any_of(use.kinds, [](const auto& kind) { return !kind.second.listed; }))
        subtitle += "; load: the mean of the links of a kind that carry anything, whichever these are";
    double top = margin / 2 +
                 draw_heading(picture, {margin, margin / 2, width - 2 * margin, 0}, machine.name, subtitle, pen.colors);
    std::vector<LegendEntry> legend{{"device", device_color, false, false, 0, {}, true},
                                    {"bridge or switch", bridge_color, false, false, 0, {}, true},
                                    {"network interface", nic_color, false, false, 0, {}, true}};
    if (!use.empty()) {
        for (const double share : {0.0, 0.25, 1.0})
            legend.push_back({share == 0  ? "idle link"
                              : share < 1 ? "a quarter of its bandwidth"
                                          : "all of it",
                              load_color(share, theme),
                              true,
                              false,
                              0,
                              {},
                              false});
    }
    top += draw_legend(picture, {margin, top, width - 2 * margin, 20}, legend, pen.colors) + 22;
    const double each = (width - 2 * margin) / static_cast<double>(machine.nodes.size());
    std::int64_t first = 0;
    for (std::size_t k = 0; k < machine.nodes.size(); ++k) {
        const NodeKind& kind = machine.nodes[k];
        const std::int64_t number = std::clamp(node, first, first + std::max<std::int64_t>(kind.count, 1) - 1);
        draw_node(pen, machine, kind, number, {margin + static_cast<double>(k) * each, top, each - 20, node_height});
        first += kind.count;
    }
    top += node_height + 26;
    const Fabric& fabric = machine.fabric;
    pen.text({margin, top},
             fmt::format("fabric: {} a link, {} through one switch", to_string(fabric.link.value),
                         to_string(fabric.latency.value)),
             Anchor::start, false, 12.5, true);
    draw_fabric(pen, machine, {margin, top + 8, width - 2 * margin, fabric_height - 10});
    return picture;
}

std::string machine_of(const std::string& title) {
    const auto on = title.find(" on ");
    if (on == std::string::npos) return {};
    return title.substr(on + 4, title.find_first_of(", ", on + 4) - on - 4);
}

}  // namespace rehearse::picture
