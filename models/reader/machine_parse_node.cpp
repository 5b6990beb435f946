// SPDX-License-Identifier: Apache-2.0
// [[node]]: its vertices in the order devices, nics, bridges, and its links.
#include <algorithm>
#include <map>

#include "core/text.hpp"
#include "models/reader/machine_parse.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t most_vertices = 4096;

int class_index(Reader& reader, const std::vector<DeviceClass>& classes) {
    const std::string name = reader.text("class");
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < classes.size(); ++i) {
        if (classes[i].name == name) return static_cast<int>(i);
        known.push_back(classes[i].name);
    }
    reader.fail("class", fmt::format("no [[device]] is named '{}'{}; there are {}", name, did_you_mean(name, known),
                                     join(known)));
}

BridgeKind bridge_kind(Reader& reader) {
    const std::string name = reader.text("kind", std::string{to_string(BridgeKind::pcie)});
    std::vector<std::string_view> known;
    for (const BridgeKind kind : {BridgeKind::pcie, BridgeKind::processor, BridgeKind::nvlink}) {
        if (name == to_string(kind)) return kind;
        known.push_back(to_string(kind));
    }
    reader.fail("kind", fmt::format("no bridge is of kind '{}'{}; the kinds are {}", name, did_you_mean(name, known),
                                    join(known)));
}

// { name = "gpu", count = 6 } is gpu0 to gpu5; without a count the name is taken as it is.
void add_vertices(Reader& reader, Vertex vertex, NodeKind& node) {
    const std::string name = reader.text("name");
    vertex.group = reader.text("group", name);
    const bool numbered = reader.has("count");
    const std::int64_t count = reader.count("count", 1);
    if (count + static_cast<std::int64_t>(node.vertices.size()) > most_vertices)
        reader.fail("count", fmt::format("a node of more than {} vertices", most_vertices));
    for (std::int64_t i = 0; i < count; ++i) {
        vertex.name = numbered ? fmt::format("{}{}", name, i) : name;
        for (const Vertex& other : node.vertices)
            if (other.name == vertex.name)
                reader.fail("name", fmt::format("two vertices of the node are named '{}'", vertex.name));
        node.vertices.push_back(vertex);
    }
    reader.done();
}

void parse_vertices(Reader& reader, const std::vector<DeviceClass>& classes, NodeKind& node) {
    for (Reader& row : reader.tables("devices", fmt::format("node '{}': devices", node.name)))
        add_vertices(row, {"", VertexKind::device, class_index(row, classes)}, node);
    if (node.vertices.empty()) reader.fail("it has no devices: add devices = [{ class = \"...\", name = \"gpu\" }]");
    for (Reader& row : reader.tables("nics", fmt::format("node '{}': nics", node.name)))
        add_vertices(row, {"", VertexKind::nic}, node);
    for (Reader& row : reader.tables("bridges", fmt::format("node '{}': bridges", node.name)))
        add_vertices(row, {"", VertexKind::bridge, -1, bridge_kind(row)}, node);
}

int vertex_index(const Reader& reader, std::string_view key, const NodeKind& node, const std::string& name) {
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < node.vertices.size(); ++i) {
        if (node.vertices[i].name == name) return static_cast<int>(i);
        known.push_back(node.vertices[i].name);
    }
    reader.fail(key,
                fmt::format("the node has no vertex '{}'{}; it has {}", name, did_you_mean(name, known), join(known)));
}

// The pairs of vertices that a [[node.link]] joins.
std::vector<std::pair<int, int>> ends(Reader& reader, const NodeKind& node) {
    const bool star = reader.has("from") || reader.has("to");
    const bool all = reader.has("all_pairs");
    if (star == all) reader.fail("say either from = [...] and to = \"...\", or all_pairs = [...]");
    const std::string_view key = all ? "all_pairs" : "from";
    std::vector<int> from;
    for (const std::string& name : reader.texts(key)) from.push_back(vertex_index(reader, key, node, name));
    std::vector<std::pair<int, int>> pairs;
    if (all) {
        for (std::size_t i = 0; i < from.size(); ++i)
            for (std::size_t j = i + 1; j < from.size(); ++j) pairs.emplace_back(from[i], from[j]);
    } else {
        const int to = vertex_index(reader, "to", node, reader.text("to"));
        for (const int a : from) pairs.emplace_back(a, to);
    }
    for (const auto& [a, b] : pairs)
        if (a == b)
            reader.fail(key, fmt::format("it joins '{}' to itself", node.vertices[static_cast<std::size_t>(a)].name));
    if (pairs.empty()) reader.fail(key, "it joins nothing: name at least two vertices");
    return pairs;
}

// Links side by side are one with their sum: a way goes over one link between two vertices.
void require_one_link(const Reader& row, const NodeKind& node, std::pair<int, int> ends) {
    const auto joins = [&](const NodeLink& link) {
        return std::minmax(link.a, link.b) == std::minmax(ends.first, ends.second);
    };
    if (std::ranges::none_of(node.links, joins)) return;
    const auto name = [&](int vertex) { return node.vertices[static_cast<std::size_t>(vertex)].name; };
    row.fail(fmt::format("a second link joins '{}' and '{}': write one with the sum of their bandwidths",
                         name(ends.first), name(ends.second)));
}

void parse_links(Reader& reader, NodeKind& node, bool detected) {
    for (Reader& row : reader.tables("link", fmt::format("node '{}': link", node.name))) {
        const auto pairs = ends(row, node);
        const auto bandwidth =
            detected ? row.figure_if_given<Bandwidth>("bandwidth") : row.figure<Bandwidth>("bandwidth");
        const auto latency = row.figure_if_given<Seconds>("latency");
        row.done();
        for (const auto& [a, b] : pairs) {
            require_one_link(row, node, {a, b});
            node.links.push_back({a, b, bandwidth, latency});
        }
    }
}

// The vertices that links lead to from `start`, by those that pass data on.
template <typename PassesOn>
std::vector<bool> reach(const NodeKind& node, int start, PassesOn passes_on) {
    std::vector<bool> reached(node.vertices.size());
    reached[static_cast<std::size_t>(start)] = true;
    for (bool grew = true; grew;) {
        grew = false;
        for (const NodeLink& link : node.links) {
            for (const auto& [from, to] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
                const auto next = static_cast<std::size_t>(to);
                if (!reached[static_cast<std::size_t>(from)] || reached[next] || !passes_on(from)) continue;
                reached[next] = grew = true;
            }
        }
    }
    return reached;
}

// Every vertex must reach every other one.
void check_joined(const Reader& reader, const NodeKind& node) {
    const std::vector<bool> reached = reach(node, 0, [](int) { return true; });
    const auto alone = std::ranges::find(reached, false);
    if (alone == reached.end()) return;
    const auto index = static_cast<std::size_t>(alone - reached.begin());
    reader.fail(fmt::format("no link joins '{}' to '{}'", node.vertices[index].name, node.vertices[0].name));
}

}  // namespace

void check_routes(const Reader& reader, const NodeKind& node, std::int64_t nodes) {
    const auto kind = [&](int vertex) { return node.vertices[static_cast<std::size_t>(vertex)].kind; };
    for (std::size_t from = 0; from < node.vertices.size(); ++from) {
        if (kind(static_cast<int>(from)) != VertexKind::device) continue;
        const std::vector<bool> reached = reach(node, static_cast<int>(from), [&](int v) {
            return v == static_cast<int>(from) || kind(v) == VertexKind::bridge;
        });
        bool nic = false;
        for (std::size_t to = 0; to < reached.size(); ++to) {
            nic = nic || (reached[to] && node.vertices[to].kind == VertexKind::nic);
            if (!reached[to] && node.vertices[to].kind == VertexKind::device)
                reader.fail(fmt::format("no path of links from '{}' to '{}': only bridges pass data on",
                                        node.vertices[from].name, node.vertices[to].name));
        }
        if (!nic && nodes > 1)
            reader.fail(fmt::format("no path of links from '{}' to any of the nics: only bridges pass data on",
                                    node.vertices[from].name));
    }
}

NodeKind parse_node(Reader reader, const std::vector<DeviceClass>& classes, bool detected) {
    NodeKind node;
    node.name = reader.text("name");
    reader.set_where(fmt::format("node '{}'", node.name));
    node.count = reader.count("count", 1);
    parse_vertices(reader, classes, node);
    parse_links(reader, node, detected);
    if (auto sums = reader.table("switch_sums", fmt::format("node '{}': switch_sums", node.name))) {
        node.sums = {sums->figure<Bandwidth>("rate"), sums->figure<Seconds>("latency")};
        const Bandwidth most = reaches_switches(node);
        if (most > Bandwidth{} && node.sums.rate.value > most)
            sums->fail("rate", fmt::format("{} are more than the {} that join a device to the switches: they sum no "
                                           "faster than its data come",
                                           to_string(node.sums.rate.value), to_string(most)));
        sums->done();
    }
    reader.done();
    check_joined(reader, node);
    return node;
}

}  // namespace rehearse::models
