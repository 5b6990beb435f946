// SPDX-License-Identifier: Apache-2.0
// [collectives] of a machine, and models/libraries/*.toml.
#include <algorithm>
#include <map>

#include "core/collectives/library.hpp"
#include "core/text.hpp"
#include "models/reader/library_figures.hpp"
#include "models/reader/machine_files.hpp"
#include "models/reader/machine_parse.hpp"

namespace rehearse::models {
namespace {

template <std::size_t N>
std::array<double, N> fixed(Reader& reader, std::string_view key) {
    const std::vector<double> numbers = reader.numbers(key);
    if (numbers.size() != N) reader.fail(key, fmt::format("{} has {} numbers, not {}", key, N, numbers.size()));
    std::array<double, N> out{};
    std::ranges::copy(numbers, out.begin());
    return out;
}

double number_or(Reader& reader, std::string_view key, double otherwise) {
    return reader.has(key) ? reader.number(key) : otherwise;
}

// Of two nodes and of more; there is no such figure of one.
ByNodes between_nodes(Reader& reader, std::string_view key) {
    const std::array<double, 2> two = fixed<2>(reader, key);
    return {0, two[0], two[1]};
}

/// Share of a direct link's rate that packets leave to data; 0: not known.
struct Packets {
    double longest = 0, of_ll128 = 0;
};

LibraryArchitecture parse_architecture(Reader reader, const Packets& packets) {
    LibraryArchitecture a;
    a.name = reader.text("name");
    a.devices = reader.texts("devices");
    a.link = reader.number("link");
    a.wire = reader.number("wire");
    a.speeds_inside = reader.numbers("speeds_inside");
    a.speeds_across = reader.numbers("speeds_across");
    a.ll_inside = reader.number("ll_inside");
    a.tree = fixed<3>(reader, "tree");
    a.tree_ll128 = fixed<3>(reader, "tree_ll128");
    if (reader.has("nvls")) a.nvls = between_nodes(reader, "nvls");
    a.ring_ll128 = reader.number("ring_ll128");
    a.ll_block = number_or(reader, "ll_block", 0);
    a.nvls_efficiency = number_or(reader, "nvls_efficiency", 0);
    if (a.nvls_efficiency > 0) a.nvls_channels = reader.count("nvls_channels");
    a.split_slow = reader.yes("split_slow", true);
    a.plateau = reader.number("plateau");
    a.ring_reached = number_or(reader, "ring_reached", 1);
    a.nvls_reached = number_or(reader, "nvls_reached", 1);
    a.direct_reached = packets.longest > 0 ? a.wire * packets.longest / a.link : a.ring_reached;
    if (packets.longest > 0) a.direct_ll128 = packets.of_ll128 / packets.longest;
    a.error = reader.number("error");
    a.source = reader.source();
    reader.done();
    return a;
}

LibraryVersion parse_version(Reader reader) {
    LibraryVersion v;
    v.since = library_version(reader, "since");
    for (const std::string& word : reader.texts("algorithms")) {
        const auto found = std::ranges::find(library_algorithm_words, word);
        if (found == library_algorithm_words.end() || word == "any")
            reader.fail("algorithms", fmt::format("'{}' is none of {}", word, join(library_algorithm_words)));
        v.algorithms.push_back(static_cast<LibraryAlgorithm>(found - library_algorithm_words.begin()));
    }
    const std::array<double, 2> tree_base = fixed<2>(reader, "tree_base");
    v.tree_base = {tree_base[0], tree_base[1], number_or(reader, "tree_base_simple", 0)};
    v.ring_base = fixed<3>(reader, "ring_base");
    v.tree_link = fixed<3>(reader, "tree_link");
    v.ring_link = fixed<3>(reader, "ring_link");
    v.tree_pcie = fixed<3>(reader, "tree_pcie");
    v.ring_pcie = fixed<3>(reader, "ring_pcie");
    v.tree_network = fixed<3>(reader, "tree_network");
    v.ring_network = fixed<3>(reader, "ring_network");
    v.nvls_inside = number_or(reader, "nvls_inside", 0);
    v.nvls_network = number_or(reader, "nvls_network", 0);
    v.pat_base = number_or(reader, "pat_base", 0);
    v.pat_rank = number_or(reader, "pat_rank", 0);
    v.ring_ll_share = reader.number("ring_ll_share");
    v.posting = number_or(reader, "posting", 0);
    v.plateau = number_or(reader, "plateau", 0);
    v.closed_rings = reader.yes("closed_rings", false);
    v.tree_correction = {reader.numbers("correction_ll"), reader.numbers("correction_ll128"),
                         reader.numbers("correction_simple")};
    if (reader.has("ring_correction_ll"))
        v.ring_correction = {reader.numbers("ring_correction_ll"), reader.numbers("ring_correction_ll128"),
                             reader.numbers("ring_correction_simple")};
    if (reader.has("ring_share")) {
        v.tree_share = {fixed<3>(reader, "tree_share"), fixed<3>(reader, "tree_share_more")};
        v.ring_share = {fixed<3>(reader, "ring_share"), fixed<3>(reader, "ring_share_more")};
        if (!reader.yes("ll128", true)) {
            for (std::size_t more = 0; more < 2; ++more) v.tree_share[more][1] = v.ring_share[more][1] = 0;
        }
    }
    v.architecture = reader.text("architecture", "");
    v.prices = reader.yes("prices", false);
    v.source = reader.source();
    reader.done();
    return v;
}

std::vector<LibraryProtocol> protocols(Reader& reader) {
    std::vector<LibraryProtocol> all;
    for (const std::string& word : reader.texts("protocols")) {
        const auto found = std::ranges::find(library_protocol_words, word);
        if (found == library_protocol_words.end() || word == "any")
            reader.fail("protocols", fmt::format("'{}' is none of {}", word, join(library_protocol_words)));
        all.push_back(static_cast<LibraryProtocol>(found - library_protocol_words.begin()));
    }
    return all;
}

LibraryTransport parse_library_transport(Reader reader) {
    LibraryTransport t;
    t.name = reader.text("name");
    t.like = reader.text("like", "");
    t.latency = number_or(reader, "latency", 0);
    if (reader.has("protocols")) t.protocols = protocols(reader);
    for (const TransportFigure& each : transport_figures) t.*each.figure = number_or(reader, each.key, t.*each.figure);
    t.eager_kb = number_or(reader, "eager_kb", 0);
    t.power = number_or(reader, "power", 1);
    t.most = number_or(reader, "most", 0);
    t.gap_eager = number_or(reader, "gap_eager", 0);
    t.window = number_or(reader, "window", 0);
    t.inject_b = number_or(reader, "inject_b", 0);
    t.late_ll = number_or(reader, "late_ll", 1);
    t.error = reader.number("error");
    t.source = reader.source();
    if (!(t.share > 0 && t.share <= 1)) reader.fail("share", "it is a share of a NIC's rate: above 0, at most 1");
    reader.done();
    return t;
}

constexpr std::string_view transports_file = "transports";
std::string origin_of(const MachineFile& file) { return fmt::format("models/libraries/{}.toml", file.name); }

std::shared_ptr<const std::vector<LibraryTransport>> parse_transports() {
    const std::span<const MachineFile> files = library_files();
    const auto file = std::ranges::find(files, transports_file, &MachineFile::name);
    require(file != files.end(), "transports of libraries are shipped");
    const std::string origin = origin_of(*file);
    const toml::table table = toml::parse(file->text, origin);
    Reader top(table, origin, "transports");
    std::vector<LibraryTransport> transports;
    for (Reader& each : top.tables("transport", "transport")) transports.push_back(parse_library_transport(each));
    top.done();
    return std::make_shared<const std::vector<LibraryTransport>>(std::move(transports));
}

CollectiveLibrary parse_library(const MachineFile& file,
                                std::shared_ptr<const std::vector<LibraryTransport>> transports) {
    const std::string origin = origin_of(file);
    const toml::table table = toml::parse(file.text, origin);
    Reader top(table, origin, "library");
    CollectiveLibrary library;
    library.name = top.text("name");
    library.summary = top.text("summary");
    library.pcie_share = top.figure<double>("pcie_share").value;
    library.ll_across = between_nodes(top, "ll_across");
    library.switch_step = top.figure<double>("switch_step").value;
    library.synchronous = top.figure<double>("synchronous").value;
    Packets packets;
    if (top.has("link_packets"))
        packets = {top.figure<double>("link_packets").value, top.figure<double>("link_packets_ll128").value};
    for (Reader& each : top.tables("architecture", "architecture"))
        library.architectures.push_back(parse_architecture(each, packets));
    for (Reader& each : top.tables("version", "version")) library.versions.push_back(parse_version(each));
    library.transports = std::move(transports);
    top.done();
    return library;
}

using Libraries = std::map<std::string, std::shared_ptr<const CollectiveLibrary>, std::less<>>;
const Libraries& libraries() {
    static const Libraries all = [] {
        Libraries read;
        const auto transports = parse_transports();
        for (const MachineFile& file : library_files()) {
            if (file.name == transports_file) continue;
            read.emplace(file.name, std::make_shared<const CollectiveLibrary>(parse_library(file, transports)));
        }
        return read;
    }();
    return all;
}

void check_transport(const Reader& reader, const CollectiveSoftware& said) {
    std::vector<std::string_view> names;
    for (const LibraryTransport& each : *said.library->transports) names.push_back(each.name);
    if (said.transport.empty() || std::ranges::find(names, std::string_view{said.transport}) != names.end()) return;
    reader.fail("transport", fmt::format("{} knows no transport '{}'{}; there are {}", said.library->name,
                                         said.transport, did_you_mean(said.transport, names), join(names)));
}

}  // namespace

std::int64_t library_version(Reader& reader, std::string_view key) {
    const std::string text = reader.text(key);
    std::array<std::int64_t, 3> parts{};
    std::size_t begin = 0;
    for (std::size_t part = 0; begin <= text.size(); ++part) {
        const std::size_t end = std::min(text.find('.', begin), text.size());
        const std::string digits = text.substr(begin, end - begin);
        const bool number =
            !digits.empty() && digits.size() < 3 && digits.find_first_not_of("0123456789") == digits.npos;
        if (part == parts.size() || !number)
            reader.fail(key, fmt::format("'{}' is not a version: write it like 2.18 or 2.18.3", text));
        parts[part] = std::stoll(digits);
        begin = end + 1;
    }
    return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

const CollectiveLibrary& shipped_library(const std::string& name) { return *libraries().at(name); }

CollectiveSoftware parse_collectives(Reader& top) {
    CollectiveSoftware said{.library = libraries().at("nccl"), .transport = {}, .nics_at = {}, .source = {}};
    auto table = top.table("collectives", "collectives");
    if (!table) return said;
    const std::string name = table->text("library", "nccl");
    const auto found = libraries().find(name);
    if (found == libraries().end()) {
        std::vector<std::string_view> names;
        for (const auto& [each, library] : libraries()) names.push_back(each);
        table->fail("library", fmt::format("no library '{}' is known{}; there are {}", name, did_you_mean(name, names),
                                           join(names)));
    }
    said.library = found->second;
    if (table->has("version")) {
        said.version = library_version(*table, "version");
        if (said.version < said.library->versions.front().since)
            table->fail("version",
                        fmt::format("{} {} is older than any that is known here", name, table->text("version")));
    }
    said.transport = table->text("transport", "");
    said.sharp = table->yes("sharp", false);
    said.nics_at = table->text("nics_at", "");
    if (!said.nics_at.empty() && said.nics_at != "cpu" && said.nics_at != "switch" && said.nics_at != "gpu")
        table->fail("nics_at",
                    fmt::format("'{}' is none of cpu, switch, gpu: where a GPU meets its NIC", said.nics_at));
    said.source = table->source();
    check_transport(*table, said);
    if (const auto figures = table->table("figures", "collectives.figures"))
        said.library = with_figures(*said.library, said.transport, *figures);
    table->done();
    return said;
}

}  // namespace rehearse::models
