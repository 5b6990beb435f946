// SPDX-License-Identifier: Apache-2.0
// [fabric], [messaging.*] and [[storage]].
#include <algorithm>
#include <array>
#include <limits>

#include "core/text.hpp"
#include "models/reader/machine_parse.hpp"

namespace rehearse::models {
namespace {

constexpr std::array<std::string_view, 5> topologies{"star", "fat-tree", "dragonfly", "dragonfly-plus", "torus"};

// What a topology has place for; it stops before it could overflow.
std::int64_t places(const std::vector<std::int64_t>& factors) {
    std::int64_t product = 1;
    for (const std::int64_t factor : factors) {
        if (product > std::numeric_limits<std::int64_t>::max() / factor)
            return std::numeric_limits<std::int64_t>::max();
        product *= factor;
    }
    return product;
}

void need_places(const Reader& reader, std::string_view key, const std::vector<std::int64_t>& factors,
                 std::int64_t nodes) {
    if (places(factors) >= nodes) return;
    reader.fail(key, fmt::format("it has places for {} nodes ({}), the machine has {}", places(factors),
                                 fmt::join(factors, " x "), nodes));
}

// What the word that a key says stands for.
template <typename Value, std::size_t Count>
Value one_of(Reader& reader, std::string_view key, const std::array<std::pair<std::string_view, Value>, Count>& words) {
    const std::string said = reader.text(key);
    std::vector<std::string_view> known;
    for (const auto& [word, value] : words) {
        if (said == word) return value;
        known.push_back(word);
    }
    reader.fail(key,
                fmt::format("{} cannot be '{}'{}; it is one of {}", key, said, did_you_mean(said, known), join(known)));
}

FatTree fat_tree(Reader& reader, std::int64_t nodes) {
    FatTree tree{reader.counts("down"), {}};
    tree.taper =
        reader.has("taper") ? reader.sourced_numbers("taper").first : std::vector<double>(tree.down.size(), 1.0);
    if (tree.taper.size() != tree.down.size())
        reader.fail("taper",
                    fmt::format("{} values of taper for {} levels of down: give one a level, 1 where nothing is "
                                "saved",
                                tree.taper.size(), tree.down.size()));
    if (const auto least = std::ranges::min(tree.taper); least < 1)
        reader.fail("taper", fmt::format("a taper of {}: at least 1, as more ports up than down carry no more than "
                                         "those below bring",
                                         least));
    if (tree.taper.back() != 1)
        reader.fail("taper", fmt::format("a taper of {} for the last level, which nothing is above: write 1, or the "
                                         "level that is missing in down",
                                         tree.taper.back()));
    if (reader.has("cables")) tree.cables = reader.counts("cables");
    if (!tree.cables.empty() && tree.cables.size() != tree.down.size())
        reader.fail("cables", fmt::format("{} values of cables for {} levels of down: give one a level",
                                          tree.cables.size(), tree.down.size()));
    if (reader.has("rails"))
        tree.rails = one_of(reader, "rails",
                            std::array<std::pair<std::string_view, FatTree::Rails>, 2>{
                                {{"joined", FatTree::Rails::joined}, {"separate", FatTree::Rails::separate}}});
    need_places(reader, "down", tree.down, nodes);
    return tree;
}

FabricRouting routing(Reader& reader, FabricRouting otherwise) {
    if (!reader.has("routing")) return otherwise;
    return one_of(reader, "routing",
                  std::array<std::pair<std::string_view, FabricRouting>, 2>{
                      {{"minimal", FabricRouting::minimal}, {"adaptive", FabricRouting::adaptive}}});
}

DragonflyPlus dragonfly_plus(Reader& reader, std::int64_t nodes) {
    DragonflyPlus fabric{reader.count("groups"), reader.count("leaves"), reader.count("nodes"), {}, {}};
    fabric.up = fabric.leaves > 1 || fabric.groups > 1 ? reader.figure<Bandwidth>("up")
                                                       : reader.figure_if_given<Bandwidth>("up");
    fabric.global =
        fabric.groups > 1 ? reader.figure<Bandwidth>("global") : reader.figure_if_given<Bandwidth>("global");
    fabric.routing = routing(reader, FabricRouting::adaptive);
    need_places(reader, "groups", {fabric.groups, fabric.leaves, fabric.nodes}, nodes);
    return fabric;
}

Dragonfly dragonfly(Reader& reader, std::int64_t nodes) {
    Dragonfly fabric{reader.count("groups"), reader.count("routers"), reader.count("nodes"), {}, {}};
    fabric.routing = routing(reader, FabricRouting::minimal);
    fabric.local = fabric.routers > 1 ? reader.figure<Bandwidth>("local") : reader.figure_if_given<Bandwidth>("local");
    fabric.global =
        fabric.groups > 1 ? reader.figure<Bandwidth>("global") : reader.figure_if_given<Bandwidth>("global");
    need_places(reader, "groups", {fabric.groups, fabric.routers, fabric.nodes}, nodes);
    return fabric;
}

Torus torus(Reader& reader, std::int64_t nodes) {
    Torus fabric{reader.counts("dims"), reader.figure<Bandwidth>("link")};
    need_places(reader, "dims", fabric.dims, nodes);
    return fabric;
}

Topology topology(Reader& reader, std::int64_t nodes) {
    std::vector<std::string_view> given;
    // A topology of its own takes the place of that of the machine that it extends.
    const bool own = std::ranges::any_of(topologies, [&](std::string_view name) { return reader.says(name); });
    for (const std::string_view name : topologies)
        if (own ? reader.says(name) : reader.has(name)) given.push_back(name);
    if (given.size() != 1)
        reader.fail(given.size() > 1 ? given[1] : "",
                    fmt::format("it has {} topologies{}{}: give exactly one of [fabric.star], [fabric.fat-tree], "
                                "[fabric.dragonfly], [fabric.dragonfly-plus], [fabric.torus]",
                                given.size(), given.empty() ? "" : " ", join(given)));
    Topology result;
    for (const std::string_view name : topologies) {
        auto table = reader.table(name, fmt::format("fabric.{}", name));
        if (name != given.front()) continue;
        if (name == "fat-tree") result = fat_tree(*table, nodes);
        if (name == "dragonfly") result = dragonfly(*table, nodes);
        if (name == "dragonfly-plus") result = dragonfly_plus(*table, nodes);
        if (name == "torus") result = torus(*table, nodes);
        table->done();
    }
    return result;
}

}  // namespace

std::string parse_taper_source(Reader& top) {
    auto fabric = top.table("fabric", "fabric");
    auto tree = fabric ? fabric->table("fat-tree", "fabric.fat-tree") : std::nullopt;
    return tree && tree->has("taper") ? tree->sourced_numbers("taper").second : "";
}

Fabric parse_fabric(Reader reader, std::int64_t nodes) {
    Fabric fabric;
    fabric.topology = topology(reader, nodes);
    fabric.link = nodes > 1 ? reader.figure<Bandwidth>("link") : reader.figure_if_given<Bandwidth>("link");
    fabric.latency = nodes > 1 ? reader.figure<Seconds>("latency") : reader.figure_if_given<Seconds>("latency");
    fabric.hop_latency = reader.figure_if_given<Seconds>("hop_latency");
    if (auto sums = reader.table("switch_sums", "fabric: switch_sums")) {
        fabric.sums = {sums->figure<Bandwidth>("rate"), sums->figure<Seconds>("latency")};
        const Bandwidth most = fabric.link.value;
        if (most > Bandwidth{} && fabric.sums.rate.value > most)
            sums->fail("rate", fmt::format("{} are more than the link of {} of a network card: switches sum no faster "
                                           "than its data come",
                                           to_string(fabric.sums.rate.value), to_string(most)));
        sums->done();
    }
    reader.done();
    return fabric;
}

namespace {

// In the order of their sizes; the last one says no size.
std::vector<MessagePiece> pieces(Reader& reader) {
    std::vector<MessagePiece> result;
    std::vector<Reader> rows = reader.tables("piece", "messaging: piece");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        MessagePiece piece;
        const bool last = i + 1 == rows.size();
        if (last && rows[i].has("up_to"))
            rows[i].fail("up_to", "the last piece is of all larger messages: leave up_to out");
        if (!last) piece.up_to = rows[i].figure<Bytes>("up_to").value;
        if (i > 0 && !last && piece.up_to <= result.back().up_to)
            rows[i].fail("up_to", "pieces stand in the order of their sizes, each for larger messages than the last");
        const auto least = i > 0 ? Reader::Least::anything : Reader::Least::zero;
        piece.overhead = rows[i].figure<Seconds>("overhead", least).value;
        const auto rate = rows[i].figure<Bandwidth>("rate");
        piece.rate = rate.value;
        if (i > 0 && piece.overhead + result.back().up_to / piece.rate < Seconds{0})
            rows[i].fail("overhead", "a message of the smallest size of this piece would take less than no time");
        piece.source = rate.source;
        rows[i].done();
        result.push_back(piece);
    }
    return result;
}

Overlap overlap(Reader reader) {
    Overlap overlap;
    overlap.core_time = reader.figure<Seconds>("core_time");
    overlap.core_rate = reader.figure<Bandwidth>("core_rate");
    overlap.delay = reader.figure<Seconds>("delay");
    reader.done();
    return overlap;
}

}  // namespace

Messaging parse_messaging(Reader reader) {
    Messaging messaging;
    messaging.overhead = reader.figure<Seconds>("overhead");
    messaging.fraction = reader.figure<double>("fraction");
    if (messaging.fraction.value > 1)
        reader.fail("fraction", fmt::format("fraction is {}: a message cannot reach more than the whole bandwidth (1)",
                                            messaging.fraction.value));
    messaging.reduce = reader.figure<Bandwidth>("reduce");
    messaging.request = reader.figure_if_given<Seconds>("request");
    messaging.error = reader.number("error");
    if (messaging.error < 0 || messaging.error > 10)
        reader.fail("error",
                    fmt::format("error is {}: it is one standard deviation relative to the price, 0.1 for 10 %",
                                messaging.error));
    messaging.pieces = pieces(reader);
    if (auto table = reader.table("overlap", "messaging: overlap")) messaging.overlap = overlap(*table);
    messaging.one_ring = reader.yes("one_ring", false);
    reader.done();
    return messaging;
}

StorageTier parse_storage(Reader reader) {
    StorageTier tier;
    tier.name = reader.text("name");
    reader.set_where(fmt::format("storage '{}'", tier.name));
    tier.read = reader.figure<Bandwidth>("read");
    tier.per_node = reader.yes("per_node", false);
    tier.write = reader.figure_if_given<Bandwidth>("write");
    tier.client = reader.figure_if_given<Bandwidth>("client");
    if (tier.per_node && !tier.client.source.empty())
        reader.fail("client",
                    "client is what one node gets of a shared tier; with per_node = true, read and write say it");
    reader.done();
    return tier;
}

}  // namespace rehearse::models
