// SPDX-License-Identifier: Apache-2.0
// bench nccl-table: what nccl-tests would print on a machine, without a GPU.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>

#include "calibrate/read_collectives.hpp"
#include "cli/bench.hpp"
#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/output_file.hpp"
#include "models/models.hpp"
#include "prices/interval.hpp"
#include "sim/collective/libraries/library_times.hpp"
#include "validate/library_fit.hpp"
#include "validate/library_tables.hpp"

namespace rehearse::cli {

namespace {

Machine asked_machine(const LibraryBench& asked, std::int64_t& nodes, std::int64_t& devices) {
    if (!asked.machine_out.empty() && asked.compare.empty())
        throw InputError("bench nccl-table: --machine-out needs --compare FILE, the times to take figures from");
    if (!asked.machine_out.empty()) validate::library_operation(asked.operation);  // figures are of collectives
    if (asked.machine.empty()) throw InputError("bench nccl-table: --machine says on which machine");
    Machine machine = models::load_machine(asked.machine);
    const NodeKind& kind = machine.nodes.front();
    nodes = asked.nodes;
    devices = asked.devices_per_node > 0 ? asked.devices_per_node : devices_per_node(kind);
    if (nodes > kind.count)
        throw InputError(fmt::format("--nodes {}: {} has {} nodes of its first kind", nodes, machine.name, kind.count));
    if (devices > devices_per_node(kind))
        throw InputError(
            fmt::format("--devices-per-node {}: a node of {} has {}", devices, machine.name, devices_per_node(kind)));
    if (nodes * devices < 2) throw InputError("a collective needs two devices or more");
    return machine;
}

std::vector<Column> columns(bool compared) {
    std::vector<Column> all{{"size_B", "size", Show::bytes},
                            {"count", "count", Show::count},
                            {"time_s", "time", Show::seconds},
                            {"algbw_GBps", "algbw", Show::number},
                            {"busbw_GBps", "busbw", Show::number},
                            {"algorithm", "algorithm"},
                            {"protocol", "protocol"},
                            {"channels", "channels", Show::count},
                            {"low_s", "low", Show::seconds},
                            {"high_s", "high", Show::seconds}};
    if (compared) {
        all.push_back({"measured_s", "measured", Show::seconds});
        all.push_back({"error", "error", Show::percent});
    }
    return all;
}

/// As much of a machine file as its measured figures are.
std::string measured_machine(const LibraryBench& asked, const Machine& machine, const validate::FittedFigures& fitted) {
    std::string out = fmt::format(
        "schema = \"rehearse.machine/1\"\nname = \"{0}-measured\"\nextends = \"{1}\"\nsummary = \"{0}, its collectives "
        "as measured\"\n\n[collectives.figures]\n",
        machine.name,
        asked.machine.ends_with(".toml") ? std::filesystem::absolute(asked.machine).string() : asked.machine);
    for (const auto& [key, value] : fitted.figures) out += fmt::format("{} = {:.4g}\n", key, value);
    return out + fmt::format("source = \"{} on {} nodes: {}\"\n", asked.operation, asked.nodes, asked.compare);
}

struct TestLine {
    Bytes bytes;
    Seconds time;  // measured; 0: not
};

std::string list_of(const std::vector<calibrate::NcclRow>& rows) {
    std::string list;
    for (const calibrate::NcclRow& each : rows) {
        const calibrate::CollectiveRow& row = each.row;
        std::string test = fmt::format("{} among {} ranks", row.kind, row.ranks);
        if (row.hosts > 0) test += fmt::format(" on {} host{}", row.hosts, row.hosts == 1 ? "" : "s");
        if (list.find(test) == std::string::npos) list += (list.empty() ? "" : ", ") + test;
    }
    return list;
}

/// Whether a measured row is of what the table is of. Rates alone do not tell an all-to-all from an all-gather.
bool is_asked(const calibrate::NcclRow& each, const LibraryBench& asked, std::int64_t nodes, std::int64_t devices) {
    const calibrate::CollectiveRow& row = each.row;
    const std::string_view kind = row.kind == "send_recv" ? "sendrecv" : std::string_view{row.kind};
    const bool same =
        kind == asked.operation || (!each.named && kind == "all_gather" && asked.operation == "all_to_all");
    return same && row.ranks == nodes * devices && (row.hosts == 0 || row.hosts == nodes);
}

/// Times out of place of the test that is asked for; other tests of the log are named.
std::vector<TestLine> measured_lines(const LibraryBench& asked, std::int64_t nodes, std::int64_t devices,
                                     const Common& common) {
    const calibrate::NcclLog log = calibrate::read_nccl_log(read_file(asked.compare), asked.compare, nodes * devices);
    for (const std::string& why : log.skipped) talk(common, "skipped " + why);
    std::vector<calibrate::NcclRow> others;
    std::vector<TestLine> lines;
    for (const calibrate::NcclRow& each : log.rows) {
        if (!is_asked(each, asked, nodes, devices)) {
            others.push_back(each);
        } else if (!each.row.in_place) {
            lines.push_back({each.row.bytes, each.row.time});
        }
    }
    if (lines.empty()) {
        throw InputError(fmt::format(
            "{}: no row of {} among {} ranks on {} node{}, but {}: right would be --op, --nodes and "
            "--devices-per-node of the table",
            asked.compare, asked.operation, nodes * devices, nodes, nodes == 1 ? "" : "s",
            others.empty() ? "none like those of nccl-tests (size, count, type, operation, root, time, algbw, busbw)"
                           : list_of(others)));
    }
    if (!others.empty()) talk(common, fmt::format("{}: left out {}", asked.compare, list_of(others)));
    return lines;
}

validate::FittedFigures fit(const LibraryBench& asked, const CollectiveSoftware& software, std::int64_t devices,
                            const std::vector<TestLine>& lines) {
    std::vector<validate::LibraryRow> rows;
    for (const auto& [bytes, measured] : lines)
        rows.push_back({.table = asked.compare,
                        .machine = asked.machine,
                        .transport = software.transport,
                        .provenance = {},
                        .version = software.version,
                        .nodes = asked.nodes,
                        .devices_per_node = devices,
                        .kind = validate::library_operation(asked.operation),
                        .bytes = bytes,
                        .time = measured});
    return validate::fit_figures(rows);
}

}  // namespace

int bench_library(const BenchOptions& options) {
    const LibraryBench& asked = options.library;
    check_writable(asked.machine_out, options.common);
    std::int64_t nodes = 0, devices = 0;
    const Machine machine = asked_machine(asked, nodes, devices);
    CollectiveSoftware software = machine.collectives;
    std::vector<int> used(static_cast<std::size_t>(devices));
    std::iota(used.begin(), used.end(), 0);
    const sim::LibraryTimes times{machine, software, 0, nodes, used};
    const std::optional<CollectiveKind> kind = validate::library_test(asked.operation);
    if ((!kind || kind == CollectiveKind::all_to_all) && !(asked.algorithm.empty() && asked.protocol.empty()))
        throw InputError(
            fmt::format("--op {}: is messages, without an algorithm or protocol to force", asked.operation));
    std::vector<TestLine> sizes;
    if (asked.compare.empty()) {
        const double least = quantity_of<Bytes>("--min", options.messages.least).value;
        const double most = quantity_of<Bytes>("--max", asked.most_given ? options.messages.most : "8GiB").value;
        if (!(least > 0) || !(options.messages.factor > 1)) throw InputError("--min above 0 and --factor above 1");
        for (double size = least; size <= most; size *= options.messages.factor)
            sizes.push_back({Bytes{std::floor(size)}, {}});
    } else {
        sizes = measured_lines(asked, nodes, devices, options.common);
    }
    Report report{
        document(
            "nccl-table",
            {{"machine", asked.machine}, {"nodes", nodes}, {"devices_per_node", devices}, {"op", asked.operation}}),
        {},
        ""};
    report.document["results"] = Json::array();
    std::vector<double> errors;
    for (const auto& [bytes, measured] : sizes) {
        const sim::LibraryPrice price =
            kind ? times.price(*kind, bytes, asked.algorithm, asked.protocol) : times.send(bytes);
        const auto band = prices::around(price.time, prices::log_reach(price.error));
        Json row{{"size_B", bytes.value},
                 {"count", validate::count_of(kind, bytes, nodes * devices)},
                 {"type", "float"},
                 {"time_s", price.time.value},
                 {"algbw_GBps", bytes.value / price.time.value / 1e9},
                 {"busbw_GBps", validate::bus_bandwidth(kind, bytes, price.time, nodes * devices)},
                 {"algorithm", price.chosen ? library_algorithm_words[static_cast<std::size_t>(price.algorithm)] : "-"},
                 {"protocol", price.chosen ? library_protocol_words[static_cast<std::size_t>(price.protocol)] : "-"},
                 {"channels", price.channels},
                 {"low_s", band.low.value},
                 {"high_s", band.high.value}};
        if (measured > Seconds{0}) {
            errors.push_back(std::abs(price.time / measured - 1));
            row["measured_s"] = measured.value;
            row["error"] = price.time / measured - 1;
        }
        report.document["results"].push_back(std::move(row));
    }
    report.tables = {{"results",
                      fmt::format("{} on {}: {} x {} devices, {}", asked.operation, machine.name, nodes, devices,
                                  software.library->name),
                      columns(!asked.compare.empty())}};
    report.footer = "count of float, rates in GB/s of 1e9 bytes, as nccl-tests; low and high hold nine of ten";
    if (!errors.empty()) {
        std::ranges::sort(errors);
        report.footer += fmt::format("\nerror: median {:.1f} %, 90th percentile {:.1f} %",
                                     100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10]);
    }
    if (!asked.machine_out.empty()) {
        const validate::FittedFigures fitted = fit(asked, software, devices, sizes);
        OutputFile file{asked.machine_out};
        file.append(measured_machine(asked, machine, fitted));
        file.commit();
        report.footer +=
            fmt::format("\n{}: {} figures of its own, one standard deviation {:.1f} %, before {:.1f} %",
                        asked.machine_out, fitted.figures.size(), 100 * fitted.error_after, 100 * fitted.error_before);
    }
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
