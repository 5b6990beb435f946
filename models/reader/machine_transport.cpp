// SPDX-License-Identifier: Apache-2.0
#include "models/reader/machine_transport.hpp"

#include <algorithm>
#include <string>

#include "core/text.hpp"

namespace rehearse::models {

namespace {

template <typename Q>
void take(const Sourced<Q>& given, Sourced<Q>& figure) {
    if (!given.source.empty()) figure = given;
}

Transport parse_transport(Reader reader, const std::string& name) {
    Transport transport{.name = name,
                        .link = reader.figure_if_given<Bandwidth>("link"),
                        .latency = reader.figure_if_given<Seconds>("latency"),
                        .hop_latency = reader.figure_if_given<Seconds>("hop_latency"),
                        .inside = {},
                        .across = {}};
    if (auto inside = reader.table("inside", "transport: inside")) transport.inside = parse_messaging(*inside);
    if (auto across = reader.table("across", "transport: across")) transport.across = parse_messaging(*across);
    reader.done();
    return transport;
}

}  // namespace

std::vector<Transport> parse_transports(Reader& top) {
    std::vector<Transport> transports;
    const std::vector<std::string> names = top.names_in("transport");
    auto tables = top.table("transport", "transport");
    if (!tables) return transports;
    for (const std::string& name : names)
        transports.push_back(parse_transport(*tables->table(name, fmt::format("transport '{}'", name)), name));
    return transports;
}

void apply_transport(const Reader& top, Machine& machine, const std::vector<Transport>& transports,
                     std::string_view wanted) {
    if (wanted.empty()) return;
    const auto found = std::ranges::find(transports, wanted, &Transport::name);
    if (found == transports.end()) {
        std::vector<std::string_view> known;
        for (const Transport& each : transports) known.emplace_back(each.name);
        top.fail("transport", fmt::format("{} has no transport '{}'{}; it has: {}", machine.name, wanted,
                                          did_you_mean(wanted, known), known.empty() ? "none" : join(known)));
    }
    take(found->link, machine.fabric.link);
    take(found->latency, machine.fabric.latency);
    take(found->hop_latency, machine.fabric.hop_latency);
    if (found->inside) machine.inside = *found->inside;
    if (found->across) machine.across = *found->across;
    machine.collectives.of_another = true;
    machine.name += fmt::format("@{}", wanted);
}

}  // namespace rehearse::models
