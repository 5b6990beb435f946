// SPDX-License-Identifier: Apache-2.0
#include "models/reader/machine_transport.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "models/models.hpp"
#include "models/reader/machine_charge.hpp"
#include "models/reader/machine_extends.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::models {
namespace {

template <typename T>
void refuse_twins(const std::vector<T>& things, const Reader& reader, std::string_view what) {
    for (std::size_t i = 0; i + 1 < things.size(); ++i)
        if (things.back().name == things[i].name)
            reader.fail("name", fmt::format("two {} are named '{}'", what, things.back().name));
}

void check_nics(const Machine& machine, const std::vector<Reader>& readers) {
    if (node_count(machine) == 1) return;
    for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
        const auto is_nic = [](const Vertex& vertex) { return vertex.kind == VertexKind::nic; };
        if (std::ranges::none_of(machine.nodes[i].vertices, is_nic))
            readers[i].fail(
                fmt::format("{} nodes have to talk, and this kind has no nics: add nics = [{{ name = \"nic\" }}]",
                            node_count(machine)));
    }
}

// A host that was detected may not have measured its messages yet; who is alone sends none.
void parse_messagings(Reader& top, Machine& machine, bool detected) {
    constexpr std::string_view wanted = "give overhead, fraction, reduce and error, each with its source";
    const bool inside_needed = !detected && device_count(machine) > 1,
               across_needed = !detected && node_count(machine) > 1;
    auto messaging = top.table("messaging", "messaging");
    if (!messaging && inside_needed) top.fail(fmt::format("it has no [messaging.inside]: {}", wanted));
    if (!messaging) return;
    if (auto inside = messaging->table("inside", "messaging.inside")) {
        machine.inside = parse_messaging(*inside);
    } else if (inside_needed) {
        messaging->fail(fmt::format("'inside' is missing: {}", wanted));
    }
    if (auto across = messaging->table("across", "messaging.across")) {
        machine.across = parse_messaging(*across);
    } else if (across_needed) {
        messaging->fail(
            fmt::format("{} nodes and no [messaging.across] between them: {}", node_count(machine), wanted));
    }
    messaging->done();
}

void parse_in_situ(Reader& top, Machine& machine) {
    auto table = top.table("in_situ", "in_situ");
    if (!table) return;
    InSitu& in_situ = machine.in_situ;
    const std::string doubt = table->text("doubt", "");
    const std::string source = doubt.empty() ? table->text("source") : table->text("source", "");
    in_situ = {table->number("bias"), table->number("noise"), source, doubt};
    if (in_situ.bias < 0 || in_situ.bias > 10) table->fail("bias", "it is one relative standard deviation, 0 to 10");
    if (in_situ.noise < 0 || in_situ.noise > 10) table->fail("noise", "it is one relative standard deviation, 0 to 10");
    table->done();
}

SharedCores parse_shared_cores(Reader reader, const Machine& machine) {
    SharedCores shared{reader.count("cores"), reader.indices("devices", device_count(machine)), reader.source()};
    if (shared.cores >= std::ssize(shared.devices)) {
        reader.fail("cores", fmt::format("{} devices share {} cores: fewer cores than devices, or leave the table out",
                                         shared.devices.size(), shared.cores));
    }
    for (const SharedCores& other : machine.shared_cores) {
        for (const std::int64_t device : shared.devices) {
            if (std::ranges::find(other.devices, device) == other.devices.end()) continue;
            reader.fail("devices", fmt::format("device {} shares other cores already", device));
        }
    }
    reader.done();
    return shared;
}

void parse_host(Reader& top) {  // what it means, this_host.cpp knows
    auto host = top.table("host", "host");
    if (!host) return;
    host->text("hostname");
    host->text("cpu");
    host->count("cores");
    host->done();
}

}  // namespace

Machine parse_machine(std::string_view text, const std::string& origin) { return parse_machine_with(text, origin, ""); }

namespace {

void parse_devices(Reader& top, Machine& machine) {
    for (const Reader& reader : top.named_tables("device", "device")) {
        DeviceClass device = parse_device(reader);
        if (device.tiles != nullptr)
            device.tiles =
                std::make_shared<const TileModel>(with_software(*device.tiles, machine.software, device.launch));
        machine.classes.push_back(std::move(device));
        refuse_twins(machine.classes, reader, "devices");
    }
    if (machine.classes.empty()) top.fail("it has no devices: add a [[device]]");
}

// A machine that takes other devices than the one that it extends still reads those: they are none of its own.
void keep_used_classes(Machine& machine) {
    std::vector<int> places(machine.classes.size(), -1);
    for (const NodeKind& kind : machine.nodes)
        for (const Vertex& vertex : kind.vertices)
            if (vertex.device_class >= 0) places[static_cast<std::size_t>(vertex.device_class)] = 0;
    std::vector<DeviceClass> used;
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] < 0) continue;
        places[i] = static_cast<int>(used.size());
        used.push_back(std::move(machine.classes[i]));
    }
    machine.classes = std::move(used);
    for (NodeKind& kind : machine.nodes)
        for (Vertex& vertex : kind.vertices)
            if (vertex.device_class >= 0) vertex.device_class = places[static_cast<std::size_t>(vertex.device_class)];
}

void parse_nodes(Reader& top, Machine& machine, bool detected) {
    const std::vector<Reader> nodes = top.named_tables("node", "node");
    for (const Reader& reader : nodes) {
        machine.nodes.push_back(parse_node(reader, machine.classes, detected));
        refuse_twins(machine.nodes, reader, "kinds of node");
    }
    if (machine.nodes.empty()) top.fail("it has no nodes: add a [[node]]");
    keep_used_classes(machine);
    if (!has_tiles(machine)) machine.software = {};  // it decides about nothing here
    check_nics(machine, nodes);
    for (std::size_t i = 0; i < nodes.size(); ++i) check_routes(nodes[i], machine.nodes[i], node_count(machine));
}

}  // namespace

Machine parse_machine_with(std::string_view text, const std::string& origin, std::string_view transport) {
    const Extended file{text, origin};
    Reader top = file.reader();
    const std::string schema = top.text("schema", std::string(machine_schema));
    if (schema != machine_schema)
        top.fail("schema", fmt::format("schema '{}' is not known: this version reads '{}'", schema, machine_schema));
    Machine machine;
    if (!top.says("name")) top.fail("'name' is missing");
    machine.name = top.text("name");
    machine.summary = top.text("summary", "");
    machine.origin = origin;
    machine.collectives = parse_collectives(top);
    const bool detected = top.has("host");
    machine.software = parse_software(top);
    parse_devices(top, machine);
    for (DeviceClass& device : machine.classes) device.host = device.host || detected;
    parse_nodes(top, machine, detected);
    if (auto fabric = top.table("fabric", "fabric")) {
        machine.fabric = parse_fabric(*fabric, node_count(machine));
    } else if (node_count(machine) > 1) {
        top.fail(fmt::format("{} nodes and no [fabric] between them", node_count(machine)));
    }
    parse_messagings(top, machine, detected);
    apply_transport(top, machine, parse_transports(top), transport);
    parse_in_situ(top, machine);
    for (const Reader& reader : top.tables("shared_cores", "shared_cores"))
        machine.shared_cores.push_back(parse_shared_cores(reader, machine));
    for (const Reader& reader : top.named_tables("storage", "storage")) {
        machine.storage.push_back(parse_storage(reader));
        refuse_twins(machine.storage, reader, "storage tiers");
    }
    parse_host(top);
    parse_charge(top);  // of no prediction: models/charge.hpp
    top.done();
    return machine;
}

}  // namespace rehearse::models
