// SPDX-License-Identifier: Apache-2.0
#include "models/reader/machine_transport.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/text.hpp"

namespace rehearse::models {

namespace {

template <typename Q>
void take(Reader& reader, std::string_view key, Sourced<Q>& figure) {
    Sourced<Q> given = reader.figure_if_given<Q>(key);
    if (!given.source.empty()) figure = std::move(given);
}

void parse_transport(Reader reader, Machine& machine) {
    take(reader, "link", machine.fabric.link);
    take(reader, "latency", machine.fabric.latency);
    take(reader, "hop_latency", machine.fabric.hop_latency);
    if (auto inside = reader.table("inside", "transport: inside")) machine.inside = parse_messaging(*inside);
    if (auto across = reader.table("across", "transport: across")) machine.across = parse_messaging(*across);
    reader.done();
}

}  // namespace

void parse_transports(Reader& top, Machine& machine, std::string_view wanted) {
    const std::vector<std::string> names = top.names_in("transport");
    Machine chosen = machine;
    if (auto transports = top.table("transport", "transport")) {
        for (const std::string& name : names) {
            auto table = transports->table(name, fmt::format("transport '{}'", name));
            Machine changed = machine;
            parse_transport(*table, changed);
            if (name == wanted) chosen = std::move(changed);
        }
    }
    if (wanted.empty()) return;
    const std::vector<std::string_view> known(names.begin(), names.end());
    if (std::ranges::find(known, wanted) == known.end())
        top.fail("transport", fmt::format("{} has no transport '{}'{}; it has: {}", machine.name, wanted,
                                          did_you_mean(wanted, known), known.empty() ? "none" : join(known)));
    machine = std::move(chosen);
    machine.name += fmt::format("@{}", wanted);
}

}  // namespace rehearse::models
