// SPDX-License-Identifier: Apache-2.0
#include "models/reader/library_figures.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::models {

namespace {

using Transports = std::vector<LibraryTransport>;

std::size_t place_of(const Transports& transports, const std::string& name) {
    const auto found = std::ranges::find(transports, name, &LibraryTransport::name);
    return found == transports.end() ? 0 : static_cast<std::size_t>(found - transports.begin());
}

double figure_of(Reader& table, std::string_view key) {
    const double value = table.number(key);
    const bool a_share = key == "share" || key == "through_cpu" || key == "exchange_share" || key.starts_with("error");
    if (value < 0 || (a_share && !(value > 0 && value <= 1)))
        table.fail(key, fmt::format("{} {}: {}", key, value, a_share ? "above 0, at most 1" : "at least 0"));
    return value;
}

}  // namespace

std::shared_ptr<const CollectiveLibrary> with_figures(const CollectiveLibrary& library, const std::string& transport,
                                                      Reader table) {
    auto own = std::make_shared<CollectiveLibrary>(library);
    auto transports = std::make_shared<Transports>(*library.transports);
    LibraryTransport& changed = transports->at(place_of(*transports, transport));
    for (const TransportFigure& each : transport_figures) {
        if (table.has(each.key)) changed.*each.figure = figure_of(table, each.key);
    }
    for (const ArchitectureFigure& each : architecture_figures) {
        if (!table.has(each.key)) continue;
        const double value = figure_of(table, each.key);
        for (LibraryArchitecture& architecture : own->architectures) architecture.*each.figure = value;
    }
    table.source();
    table.done();
    own->transports = std::move(transports);
    return own;
}

std::string written_figures(const CollectiveLibrary& library, const CollectiveLibrary& shipped,
                            const std::string& transport) {
    const LibraryTransport& own = library.transports->at(place_of(*library.transports, transport));
    const LibraryTransport& before = shipped.transports->at(place_of(*shipped.transports, transport));
    std::string out;
    for (const TransportFigure& each : transport_figures) {
        if (own.*each.figure != before.*each.figure) out += fmt::format("{} = {}\n", each.key, own.*each.figure);
    }
    const LibraryArchitecture& first = library.architectures.front();
    for (const ArchitectureFigure& each : architecture_figures) {
        const bool all = std::ranges::all_of(library.architectures,
                                             [&](const auto& one) { return one.*each.figure == first.*each.figure; });
        if (all && first.*each.figure != shipped.architectures.front().*each.figure)
            out += fmt::format("{} = {}\n", each.key, first.*each.figure);
    }
    return out.empty() ? out : fmt::format("\n[collectives.figures]\n{}source = \"measured\"\n", out);
}

}  // namespace rehearse::models
