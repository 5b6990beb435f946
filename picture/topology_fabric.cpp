// SPDX-License-Identifier: Apache-2.0
// What joins nodes: a tree of switches, one switch, groups of routers, a torus.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "picture/topology_pen.hpp"

namespace rehearse::picture {

namespace {

std::int64_t nics_of_kind(const NodeKind& kind) {
    return std::ranges::count(kind.vertices, VertexKind::nic, &Vertex::kind);
}

// All ways of a node into the fabric.
std::vector<LinkName> ways_of(const Machine& machine, std::int64_t node) {
    std::int64_t first = 0;
    for (const NodeKind& kind : machine.nodes) {
        if (node < first + kind.count) return nics_of(node, 0, nics_of_kind(kind));
        first += kind.count;
    }
    return {};
}

std::vector<LinkName> ways_of_switch(int level, std::int64_t number) {
    std::vector<LinkName> names;
    for (const char* direction : {"up", "down"}) {
        names.push_back(
            {fmt::format("switch{}.{}:{}", level, number, direction), fmt::format("switch{}:{}", level, direction)});
    }
    return names;
}

// A switch with its children; of many only some, and dots between.
void draw_tree(const TopologyPen& pen, const Machine& machine, const FatTree& tree, Box box) {
    const Fabric& fabric = machine.fabric;
    const auto levels = static_cast<int>(tree.down.size());
    const double step = box.height / (levels + 0.6);
    const auto y_of = [&](int level) { return box.bottom() - 20 - step * (level + 1); };  // of switches; -1: nodes
    const auto shown = [&](int level) {
        return std::min<std::int64_t>(tree.down[static_cast<std::size_t>(level)], level == 0 ? 4 : 5);
    };
    struct Switch {
        double x, width;
        std::int64_t number;  // of its level; of nodes theirs
    };
    std::vector<Switch> above{{box.left + box.width / 2, box.width, 0}};
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
                const Switch child{parent.x - parent.width / 2 + width * (static_cast<double>(c) + 0.5), width,
                                   parent.number * all + c};
                below.push_back(child);
                const Bandwidth rate = up[static_cast<std::size_t>(level)];
                pen.link(
                    {top, {child.x, y_of(level - 1)}}, 1 + 1.2 * level,
                    level == 0 ? ways_of(machine, child.number) : ways_of_switch(level - 1, child.number),
                    link_title(
                        level == 0 ? "node to its switch" : fmt::format("up-link of a switch of level {}", level - 1),
                        rate, level == 0 ? fabric.latency.value : fabric.hop_latency.value, fabric.link.source));
            }
        }
        for (const Switch& parent : above) {
            const double wide = std::min(std::clamp(parent.width * 0.5, 26.0, 150.0), std::max(parent.width - 3, 4.0));
            pen.box({parent.x, y_of(level)}, wide, 22, bridge_color,
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
             fmt::format("{} nodes; of the children of a switch a few are drawn", node_count(machine)), Anchor::middle,
             true);
}

void draw_star(const TopologyPen& pen, const Machine& machine, Box box) {
    const Fabric& fabric = machine.fabric;
    const std::int64_t nodes = node_count(machine);
    const auto shown = std::min<std::int64_t>(nodes, 16);
    const Point center{box.left + box.width / 2, box.top + box.height * 0.3};
    for (std::int64_t n = 0; n < shown; ++n) {
        const Point at{box.left + box.width * (static_cast<double>(n) + 0.5) / static_cast<double>(shown),
                       box.bottom() - 30};
        pen.link({center, at}, 2, ways_of(machine, n),
                 link_title("node to the switch", fabric.link.value, fabric.latency.value, fabric.link.source));
        pen.box(at, 34, 16, device_color, "", "a node");
    }
    pen.box(center, 170, 26, bridge_color, "switch that never blocks", "every node on one switch");
    pen.text({box.left + box.width / 2, box.bottom() + 2}, fmt::format("{} nodes", nodes), Anchor::middle, true);
}

// Groups in a circle, each joined to all others; `inside` says what a group is made of.
void draw_groups(const TopologyPen& pen, const Fabric& fabric, std::int64_t groups, const Sourced<Bandwidth>& global,
                 const std::string& inside, const std::string& sizes, Box box) {
    const auto shown = std::min<std::int64_t>(groups, 24);
    const Point center{box.left + box.width / 2, box.top + box.height / 2};
    const double radius = std::min(box.width, box.height) / 2 - 24;
    const auto at = [&](std::int64_t g) {
        const double angle =
            2 * std::numbers::pi * static_cast<double>(g) / static_cast<double>(shown) - std::numbers::pi / 2;
        return Point{center.x + radius * std::cos(angle), center.y + radius * std::sin(angle)};
    };
    for (std::int64_t a = 0; a < shown; ++a) {
        for (std::int64_t b = a + 1; b < shown; ++b) {
            pen.link({at(a), at(b)}, pen.use.empty() ? 0.9 : 1.6,
                     {{fmt::format("group{}>group{}", a, b), "group>group"},
                      {fmt::format("group{}>group{}", b, a), "group>group"}},
                     link_title("between two groups", global.value, fabric.hop_latency.value, global.source));
        }
    }
    for (std::int64_t g = 0; g < shown; ++g) {
        pen.box(at(g), 44, 22, bridge_color, fmt::format("g{}", g), inside);
    }
    pen.text({center.x, box.bottom() + 2}, fmt::format("{}, {} drawn", sizes, shown), Anchor::middle, true);
}

void draw_dragonfly(const TopologyPen& pen, const Fabric& fabric, const Dragonfly& fly, Box box) {
    draw_groups(pen, fabric, fly.groups, fly.global,
                fmt::format("a group of {} routers, all joined ({}), {} nodes each", fly.routers,
                            to_string(fly.local.value), fly.nodes),
                fmt::format("{} groups of {} routers of {} nodes", fly.groups, fly.routers, fly.nodes), box);
}

void draw_dragonfly_plus(const TopologyPen& pen, const Fabric& fabric, const DragonflyPlus& fly, Box box) {
    draw_groups(pen, fabric, fly.groups, fly.global,
                fmt::format("a group of {} leaves of {} nodes, each joined to all spines of the group ({})", fly.leaves,
                            fly.nodes, to_string(fly.up.value)),
                fmt::format("{} groups of {} leaves of {} nodes", fly.groups, fly.leaves, fly.nodes), box);
}

void draw_torus(const TopologyPen& pen, const Fabric& fabric, const Torus& torus, Box box) {
    const auto side = [&](std::size_t d) {
        return d < torus.dims.size() ? std::min<std::int64_t>(torus.dims[d], 10) : 1;
    };
    const std::int64_t columns = side(0), rows = std::min<std::int64_t>(side(1), 6);
    const auto at = [&](std::int64_t c, std::int64_t r) {
        return Point{box.left + box.width * (static_cast<double>(c) + 0.5) / static_cast<double>(columns),
                     box.top + 10 + (box.height - 50) * (static_cast<double>(r) + 0.5) / static_cast<double>(rows)};
    };
    const std::string title =
        link_title("between two routers", torus.link.value, fabric.hop_latency.value, torus.link.source);
    std::vector<std::int64_t> strides(torus.dims.size(), 1);  // nodes are numbered along the last dimension first
    for (std::size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * torus.dims[d];
    const auto way = [&](std::size_t d, std::int64_t c, std::int64_t r, char sign) {
        std::int64_t node = c % torus.dims[0] * strides[0];
        if (torus.dims.size() > 1) node += r % torus.dims[1] * strides[1];
        const std::string kind = fmt::format("dim{}{}", d, sign);
        return LinkName{fmt::format("node{}:{}", node, kind), kind};
    };
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            const Point here = at(c, r), right = at(c + 1, r), down = at(c, r + 1);
            pen.link({here, {c + 1 < columns ? right.x : here.x + 16, right.y}}, pen.use.empty() ? 2 : 3,
                     {way(0, c, r, '+'), way(0, c + 1, r, '-')}, title);
            pen.link({here, {down.x, r + 1 < rows ? down.y : here.y + 16}}, pen.use.empty() ? 2 : 3,
                     {way(1, c, r, '+'), way(1, c, r + 1, '-')}, title);
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

void draw_fabric(const TopologyPen& pen, const Machine& machine, Box box) {
    const Fabric& fabric = machine.fabric;
    if (const auto* tree = std::get_if<FatTree>(&fabric.topology)) draw_tree(pen, machine, *tree, box);
    if (std::get_if<Star>(&fabric.topology) != nullptr) draw_star(pen, machine, box);
    if (const auto* fly = std::get_if<Dragonfly>(&fabric.topology)) draw_dragonfly(pen, fabric, *fly, box);
    if (const auto* fly = std::get_if<DragonflyPlus>(&fabric.topology)) draw_dragonfly_plus(pen, fabric, *fly, box);
    if (const auto* torus = std::get_if<Torus>(&fabric.topology)) draw_torus(pen, fabric, *torus, box);
}

}  // namespace rehearse::picture
