// SPDX-License-Identifier: Apache-2.0
#include "picture/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "picture/activity.hpp"
#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double margin = 16, label = 11;
constexpr Color device_color{86, 180, 233}, bridge_color{170, 170, 178}, nic_color{230, 159, 0};

struct Pen {
    Picture& picture;
    Theme theme;
    const Palette& colors;

    void text(Point at, const std::string& words, Anchor anchor = Anchor::middle, bool faint = false,
              double size = label, bool bold = false) const {
        picture.marks.push_back(
            {Text{at, words, size, anchor, 0, bold}, faint ? colors.faint_text : colors.text, {}, ""});
    }
    void box(Point center, double width, double height, Color color, const std::string& words,
             const std::string& title) const {
        picture.marks.push_back({Rectangle{{center.x - width / 2, center.y - height / 2}, width, height, 5}, color,
                                 Stroke{colors.background, 1, {}}, title});
        if (words.empty()) return;
        picture.marks.push_back(
            {Text{{center.x, center.y + half_height(10)}, words, 10, Anchor::middle}, readable_on(color), {}, ""});
    }
    void link(std::vector<Point> path, double width, std::optional<double> use, const std::string& title) const {
        const Color color = use ? heat_color(*use, theme) : colors.axis;
        picture.marks.push_back({Path{std::move(path)}, {}, Stroke{color, width, {}}, title});
    }
};

double width_of(Bandwidth bandwidth, Bandwidth most) {
    return 1 + 5 * std::sqrt(bandwidth.value / std::max(most.value, 1.0));
}

std::optional<double> use_of(const LinkShares& use, const std::string& a, const std::string& b) {
    for (const std::string& name : {a + "-" + b, b + "-" + a}) {
        if (const auto found = use.find(name); found != use.end()) return found->second;
    }
    return std::nullopt;
}

std::string link_title(const std::string& what, Bandwidth bandwidth, Seconds latency, const std::string& source,
                       std::optional<double> use) {
    std::string title = fmt::format("{}: {} each direction, {}", what, to_string(bandwidth), to_string(latency));
    if (use) title += fmt::format(", {:.0f} % used", 100 * *use);
    return title + (source.empty() ? "" : "\nsource: " + source);
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

void draw_node(const Pen& pen, const Machine& machine, const NodeKind& node, Box box, const LinkShares& use) {
    pen.text({box.left, box.top}, fmt::format("{} × {}", node.count, node.name), Anchor::start, false, 12.5, true);
    const std::vector<Point> at = places(node, {box.left, box.top + 18, box.width, box.height - 30});
    Bandwidth most;
    for (const NodeLink& link : node.links) most = std::max(most, link.bandwidth.value);
    for (const NodeLink& link : node.links) {
        const std::string& a = node.vertices[static_cast<std::size_t>(link.a)].name;
        const std::string& b = node.vertices[static_cast<std::size_t>(link.b)].name;
        const Point from = at[static_cast<std::size_t>(link.a)], to = at[static_cast<std::size_t>(link.b)];
        std::vector<Point> path{from, to};
        const bool flat = std::abs(from.y - to.y) < 4 && std::abs(from.x - to.x) > box.width * 0.3;
        if (flat) {  // round what stands between, as a bow
            path.clear();
            for (int i = 0; i <= 16; ++i) {
                const double t = i / 16.0;
                path.push_back(
                    {from.x + t * (to.x - from.x), from.y - 0.16 * box.height * std::sin(std::numbers::pi * t)});
            }
        }
        const auto share = use_of(use, a, b);
        pen.link(std::move(path), width_of(link.bandwidth.value, most), share,
                 link_title(a + " – " + b, link.bandwidth.value, link.latency.value, link.bandwidth.source, share));
    }
    const double wide = std::clamp(box.width / static_cast<double>(node.vertices.size() / 2 + 1) - 6, 24.0, 84.0);
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
        pen.box(at[v], wide, device ? 30 : 24, color, fits ? vertex.name : "", title);
    }
}

// A switch with its children; of many only some, and dots between.
void draw_tree(const Pen& pen, const Fabric& fabric, const FatTree& tree, std::int64_t nodes, Box box,
               std::optional<double> use) {
    const auto levels = static_cast<int>(tree.down.size());
    const double step = box.height / (levels + 0.6);
    const auto y_of = [&](int level) { return box.bottom() - 20 - step * (level + 1); };  // of switches; -1: nodes
    const auto shown = [&](int level) {
        return std::min<std::int64_t>(tree.down[static_cast<std::size_t>(level)], level == 0 ? 4 : 5);
    };
    struct Switch {
        double x, width;
    };
    std::vector<Switch> above{{box.left + box.width / 2, box.width}};
    Bandwidth port = fabric.link.value;
    std::vector<Bandwidth> up(static_cast<std::size_t>(levels) + 1, port);
    for (int l = 0; l < levels; ++l) {
        const auto i = static_cast<std::size_t>(l);
        up[i + 1] = up[i] * static_cast<double>(tree.down[i]) / (i < tree.taper.size() ? tree.taper[i] : 1);
    }
    for (int level = levels - 1; level >= 0; --level) {
        std::vector<Switch> below;
        const std::int64_t count = shown(level), all = tree.down[static_cast<std::size_t>(level)];
        for (const Switch& parent : above) {
            const Point top{parent.x, y_of(level)};
            for (std::int64_t c = 0; c < count; ++c) {
                const double width = parent.width / static_cast<double>(count);
                const Switch child{parent.x - parent.width / 2 + width * (static_cast<double>(c) + 0.5), width};
                below.push_back(child);
                const Bandwidth rate = up[static_cast<std::size_t>(level)];
                pen.link(
                    {top, {child.x, y_of(level - 1)}}, 1 + 1.2 * level, use,
                    link_title(
                        level == 0 ? "node to its switch" : fmt::format("up-link of a switch of level {}", level - 1),
                        rate, level == 0 ? fabric.latency.value : fabric.hop_latency.value, fabric.link.source, use));
            }
        }
        for (const Switch& parent : above) {
            pen.box({parent.x, y_of(level)}, std::clamp(parent.width * 0.5, 26.0, 150.0), 22, bridge_color,
                    parent.width > 150  ? fmt::format("switch, {} below", all)
                    : parent.width > 44 ? fmt::format("{} ↓", all)
                                        : "",
                    fmt::format("a switch of level {}: {} below it, {} are drawn", level, all, count));
        }
        above = below;
    }
    for (const Switch& node : above)
        pen.box({node.x, y_of(-1)}, std::clamp(node.width - 4, 4.0, 36.0), 14, device_color, "", "a node");
    pen.text({box.left + box.width / 2, box.bottom() + 2},
             fmt::format("{} nodes; of the children of a switch a few are drawn", nodes), Anchor::middle, true);
}

void draw_star(const Pen& pen, const Fabric& fabric, std::int64_t nodes, Box box, std::optional<double> use) {
    const auto shown = std::min<std::int64_t>(nodes, 16);
    const Point center{box.left + box.width / 2, box.top + box.height * 0.3};
    for (std::int64_t n = 0; n < shown; ++n) {
        const Point at{box.left + box.width * (static_cast<double>(n) + 0.5) / static_cast<double>(shown),
                       box.bottom() - 30};
        pen.link({center, at}, 2, use,
                 link_title("node to the switch", fabric.link.value, fabric.latency.value, fabric.link.source, use));
        pen.box(at, 34, 16, device_color, "", "a node");
    }
    pen.box(center, 170, 26, bridge_color, "switch that never blocks", "every node on one switch");
    pen.text({box.left + box.width / 2, box.bottom() + 2}, fmt::format("{} nodes", nodes), Anchor::middle, true);
}

void draw_dragonfly(const Pen& pen, const Fabric& fabric, const Dragonfly& fly, Box box, std::optional<double> use) {
    const auto shown = std::min<std::int64_t>(fly.groups, 24);
    const Point center{box.left + box.width / 2, box.top + box.height / 2};
    const double radius = std::min(box.width, box.height) / 2 - 24;
    const auto at = [&](std::int64_t g) {
        const double angle =
            2 * std::numbers::pi * static_cast<double>(g) / static_cast<double>(shown) - std::numbers::pi / 2;
        return Point{center.x + radius * std::cos(angle), center.y + radius * std::sin(angle)};
    };
    for (std::int64_t a = 0; a < shown; ++a) {
        for (std::int64_t b = a + 1; b < shown; ++b) {
            pen.link(
                {at(a), at(b)}, 0.9, use,
                link_title("between two groups", fly.global.value, fabric.hop_latency.value, fly.global.source, use));
        }
    }
    for (std::int64_t g = 0; g < shown; ++g) {
        pen.box(at(g), 44, 22, bridge_color, fmt::format("g{}", g),
                fmt::format("a group of {} routers, all joined ({}), {} nodes each", fly.routers,
                            to_string(fly.local.value), fly.nodes));
    }
    pen.text({center.x, box.bottom() + 2},
             fmt::format("{} groups of {} routers of {} nodes, {} drawn", fly.groups, fly.routers, fly.nodes, shown),
             Anchor::middle, true);
}

void draw_torus(const Pen& pen, const Fabric& fabric, const Torus& torus, Box box, std::optional<double> use) {
    const auto side = [&](std::size_t d) {
        return d < torus.dims.size() ? std::min<std::int64_t>(torus.dims[d], 10) : 1;
    };
    const std::int64_t columns = side(0), rows = std::min<std::int64_t>(side(1), 6);
    const auto at = [&](std::int64_t c, std::int64_t r) {
        return Point{box.left + box.width * (static_cast<double>(c) + 0.5) / static_cast<double>(columns),
                     box.top + 10 + (box.height - 50) * (static_cast<double>(r) + 0.5) / static_cast<double>(rows)};
    };
    const std::string title =
        link_title("between two routers", torus.link.value, fabric.hop_latency.value, torus.link.source, use);
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            const Point here = at(c, r), right = at(c + 1, r), down = at(c, r + 1);
            pen.link({here, {c + 1 < columns ? right.x : here.x + 16, right.y}}, 2, use, title);
            pen.link({here, {down.x, r + 1 < rows ? down.y : here.y + 16}}, 2, use, title);
        }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c)
            pen.box(at(c, r), 26, 16, device_color, "", "a router with its node");
    }
    std::string dims;
    for (const std::int64_t d : torus.dims) dims += (dims.empty() ? "" : " × ") + fmt::format("{}", d);
    pen.text({box.left + box.width / 2, box.bottom() + 2},
             fmt::format("torus of {}, {} × {} drawn; the ends are joined", dims, columns, rows), Anchor::middle, true);
}

}  // namespace

Color heat_color(double share, Theme theme) {
    const double s = std::clamp(share, 0.0, 1.0);
    const Color ground = theme == Theme::dark ? Color{90, 96, 106} : Color{200, 204, 210};
    constexpr Color middle{230, 140, 60};
    const Color end = theme == Theme::dark ? Color{255, 226, 160} : Color{128, 16, 38};
    return s < 0.5 ? mixed(middle, ground, s * 2) : mixed(end, middle, s * 2 - 1);
}

Picture topology_picture(const Machine& machine, const LinkShares& use, double width, Theme theme) {
    const double node_height = 300, fabric_height = 300;
    const double height = 64 + node_height + 30 + fabric_height + 40;
    Picture picture = canvas({width, height}, palette(theme), machine.name);
    const Pen pen{picture, theme, palette(theme)};
    double top = margin / 2 + draw_heading(picture, {margin, margin / 2, width - 2 * margin, 0}, machine.name,
                                           machine.summary, pen.colors);
    top += draw_legend(picture, {margin, top, width - 2 * margin, 20},
                       {{"device", device_color, false, false, 0, {}, true},
                        {"bridge or switch", bridge_color, false, false, 0, {}, true},
                        {"network interface", nic_color, false, false, 0, {}, true}},
                       pen.colors) +
           22;
    const double each = (width - 2 * margin) / static_cast<double>(machine.nodes.size());
    for (std::size_t k = 0; k < machine.nodes.size(); ++k) {
        draw_node(pen, machine, machine.nodes[k], {margin + static_cast<double>(k) * each, top, each - 20, node_height},
                  use);
    }
    top += node_height + 26;
    const Fabric& fabric = machine.fabric;
    const auto found = use.find("fabric");
    const auto share = found != use.end() ? std::optional(found->second) : std::nullopt;
    pen.text({margin, top},
             fmt::format("fabric: {} a link, {} through one switch", to_string(fabric.link.value),
                         to_string(fabric.latency.value)),
             Anchor::start, false, 12.5, true);
    const Box box{margin, top + 8, width - 2 * margin, fabric_height - 10};
    const std::int64_t nodes = node_count(machine);
    if (const auto* tree = std::get_if<FatTree>(&fabric.topology)) draw_tree(pen, fabric, *tree, nodes, box, share);
    if (std::get_if<Star>(&fabric.topology) != nullptr) draw_star(pen, fabric, nodes, box, share);
    if (const auto* fly = std::get_if<Dragonfly>(&fabric.topology)) draw_dragonfly(pen, fabric, *fly, box, share);
    if (const auto* torus = std::get_if<Torus>(&fabric.topology)) draw_torus(pen, fabric, *torus, box, share);
    return picture;
}

}  // namespace rehearse::picture
