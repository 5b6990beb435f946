// SPDX-License-Identifier: Apache-2.0
// From measured samples to a table.
#include <fmt/format.h>

#include <algorithm>

#include "cli/bench.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

namespace {

Json row_of(const BenchRow& row, const bench::Ceilings& ceilings) {
    const bench::Sample& sample = row.sample;
    const bench::RooflinePoint point = bench::roofline_point(ceilings, sample);
    Json json{{"problem", to_string(sample.problem)},
              {"backend", sample.backend},
              {"algorithm", sample.algorithm},
              {"median_s", sample.median.value},
              {"error", sample.error},
              {"samples", sample.count},
              {"flops", point.flops.value},
              {"flops_per_s", (point.flops / sample.median).value},
              {"peak_fraction", point.of_peak},
              {"peak_type", roof_of(ceilings, sample).type},
              {"bytes", point.bytes.value},
              {"bytes_per_s", (point.bytes / sample.median).value},
              {"flops_per_byte", point.intensity()},
              {"bound", point.memory_bound ? "memory" : "compute"},
              {"bandwidth_fraction", point.of_memory},
              {"scratch_bytes", row.scratch.value},
              {"best", row.best}};
    if (point.memory_bound) json["memory_bound_fraction"] = point.of_memory;
    if (row.checked) {
        json["checked"] = row.error;
        json["checked_batch"] = row.checked_batch;
    }
    return json;
}

std::vector<Column> columns() {
    return {{"problem", "problem"},
            {"backend", "backend"},
            {"algorithm", "algorithm"},
            {"median_s", "time", Show::seconds},
            {"error", "spread", Show::percent},
            {"flops_per_s", "rate", Show::flop_rate},
            {"peak_fraction", "of peak", Show::percent},
            {"bytes", "moves", Show::bytes},
            {"flops_per_byte", "FLOP/B", Show::number},
            {"memory_bound_fraction", "of memory", Show::percent},
            {"scratch_bytes", "scratch", Show::bytes},
            {"checked", "error", Show::number},
            {"best", "best", Show::text}};
}

std::string footer(const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings, const BenchPlace& place) {
    std::vector<std::string> types;
    for (const BenchRow& row : rows) {
        const bench::Peak& peak = roof_of(ceilings, row.sample);
        std::string text = fmt::format("{} {} ({})", to_string(peak.rate), peak.type, peak.how);
        if (std::ranges::find(types, text) == types.end()) types.push_back(std::move(text));
    }
    std::string text = fmt::format(
        "{}; measured in this run: peak {}, memory {}\n"
        "of peak: of that type's. of memory: where memory is the lower roof; operands count once, and what a\n"
        "cache still holds may take it above 100 %. rate: of the operations of a direct convolution, padding\n"
        "included, of which Winograd and FFT do fewer. error: against the reference",
        place.name, fmt::join(types, ", "), to_string(ceilings.memory()));
    const bool fewer = std::ranges::any_of(
        rows, [](const BenchRow& row) { return row.checked && row.checked_batch < row.sample.problem.batch; });
    return text + (fewer ? ", large problems at a smaller batch" : "");
}

}  // namespace

DataType type_named(const std::string& word) {
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
        if (to_string(type) == word) return type;
    }
    throw InputError(fmt::format("--type '{}': f32, f16 or bf16", word));
}

Report bench_report(const BenchOptions& options, const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings,
                    const BenchPlace& place) {
    Report report{document("bench", {{"suite", options.suite}, {"seed", options.seed}}), {}, ""};
    Json& config = report.document["configuration"];
    if (place.threads > 0) config["threads"] = place.threads;
    if (place.threads == 0) config["device"] = place.name;
    for (const bench::Peak& peak : ceilings.peaks) {
        if (peak.absent.empty()) report.document["peaks_flops_per_s"][peak.type] = peak.rate.value;
    }
    report.document["peak_flops_per_s"] = ceilings.peak("f32")->rate.value;
    for (const auto& [level, rate] : ceilings.bandwidths) {
        report.document["bandwidths_bytes_per_s"][level] = rate.value;
    }
    report.document["memory_bandwidth_bytes_per_s"] = ceilings.memory().value;
    report.document["rows"] = Json::array();
    for (const BenchRow& row : rows) report.document["rows"].push_back(row_of(row, ceilings));
    report.tables = {{"rows", "", columns()}};
    report.footer = footer(rows, ceilings, place);
    return report;
}

}  // namespace rehearse::cli
