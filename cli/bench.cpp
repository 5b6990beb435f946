// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "bench/check.hpp"
#include "bench/compute.hpp"
#include "bench/host.hpp"
#include "calibrate/problems.hpp"
#include "cli/bench_messages.hpp"
#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "kernels/threads.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;

enum class Kind { conv, gemm, layer, attention };

struct Options {
    Common common;
    Kind kind = Kind::layer;
    std::vector<std::string> arguments;  // conv|gemm|layer, then problem strings
    std::string suite, backend, algorithm, out;
    std::optional<kernels::Accumulation> accumulate;
    std::vector<std::int64_t> batches{8};
    bool check = true;
    std::uint64_t seed = 1;
    Seconds budget{20};
    MessageOptions messages;
};

bool wanted(Kind kind, const Op& op) {
    if (kind == Kind::conv) return is_convolution(op);
    if (kind == Kind::gemm) return std::holds_alternative<MatMul>(op);
    if (kind == Kind::attention) return std::holds_alternative<Attention>(op);
    return true;
}

std::vector<calibrate::Needed> problems_of(const Options& options) {
    std::vector<calibrate::Needed> problems;
    for (const std::string& text : options.arguments) {
        problems.push_back({parse_problem(text), 2 * bench::last_level_cache()});
    }
    if (!options.suite.empty()) {
        const std::vector<Network> networks =
            models::load_suite(options.suite == "bert" ? "bert-large" : options.suite);
        for (const auto& each : calibrate::problems(networks, options.batches)) problems.push_back(each);
    }
    std::erase_if(problems, [&](const auto& each) { return !wanted(options.kind, each.problem.op); });
    if (problems.empty()) {
        throw InputError(
            "bench: nothing to time: give problem strings, like "
            "conv2d:n8c64h56w56k64r3s3:pad1:stride1:f32:forward, or --suite resnet50");
    }
    return problems;
}

// All implementations that can, without the reference unless it is asked for or alone.
std::vector<const kernels::Backend*> backends_of(const Options& options, const Problem& problem) {
    std::vector<const kernels::Backend*> found;
    std::string refusals;
    for (const kernels::Backend* backend : kernels::backends()) {
        if (!options.backend.empty() && backend->name() != options.backend) continue;
        if (!options.algorithm.empty() && backend->algorithm() != options.algorithm) continue;
        if (options.accumulate && backend->accumulation() != *options.accumulate) continue;
        const bool last_resort = backend == kernels::backends().back() && options.backend != backend->name();
        if (last_resort && !found.empty()) continue;
        const kernels::Support support = backend->supports(problem);
        if (support.yes) found.push_back(backend);
        if (!support.yes) refusals += fmt::format("\n  {}: {}", full_name(*backend), support.reason);
    }
    if (!found.empty()) return found;
    if (refusals.empty()) refusals = ": no backend of this build has that name, algorithm and sums";
    throw InputError(fmt::format("bench: no implementation runs {}{}", to_string(problem), refusals));
}

// Whether one of the results is wrong; the errors of all are added to `errors`.
bool differs(const Options& options, const Problem& problem, const std::vector<const kernels::Backend*>& backends,
             std::vector<double>& errors) {
    bool wrong = false;
    const std::vector<bench::Checked> checks = bench::check(problem, backends, options.seed);
    for (std::size_t i = 0; i < checks.size(); ++i) {
        errors.push_back(checks[i].error);
        if (checks[i].error <= checks[i].tolerance) continue;
        wrong = true;
        talk(options.common, fmt::format("wrong: {} by {} differs from the reference by {:.2g}", to_string(problem),
                                         full_name(*backends[i]), checks[i].error));
    }
    return wrong;
}

Json row_of(const bench::Sample& sample, FlopRate peak) {
    const Problem& p = sample.problem;
    const Flops work = flops(p.op, p.pass, p.batch);
    const Bytes bytes = bytes_moved(p.op, p.pass, p.type, p.batch);
    return {{"problem", to_string(p)},
            {"backend", sample.backend},
            {"algorithm", sample.algorithm},
            {"median_s", sample.median.value},
            {"error", sample.error},
            {"samples", sample.count},
            {"flops_per_s", (work / sample.median).value},
            {"peak_fraction", work / sample.median / peak},
            {"bytes_per_s", (bytes / sample.median).value},
            {"flops_per_byte", bytes.value > 0 ? work.value / bytes.value : 0.0}};
}

void mark_best(std::vector<Json>& rows) {
    std::map<std::string, double> best;
    for (const Json& row : rows) {
        const auto [entry, fresh] = best.try_emplace(row["problem"], row["median_s"].get<double>());
        if (!fresh) entry->second = std::min(entry->second, row["median_s"].get<double>());
    }
    for (Json& row : rows) row["best"] = row["median_s"].get<double>() <= best[row["problem"]];
}

Report report_of(const Options& options, const std::vector<Json>& rows, const calibrate::HostFigures& host,
                 int threads) {
    Report report{document("bench", {{"suite", options.suite}, {"seed", options.seed}, {"threads", threads}}), {}, ""};
    report.document["peak_flops_per_s"] = host.peak.median.value;
    report.document["memory_bandwidth_bytes_per_s"] = host.memory_bandwidth.median.value;
    report.document["rows"] = rows;
    report.tables = {{"rows",
                      "",
                      {{"problem", "problem"},
                       {"backend", "backend"},
                       {"algorithm", "algorithm"},
                       {"median_s", "time", Show::seconds},
                       {"error", "spread", Show::percent},
                       {"flops_per_s", "rate", Show::flop_rate},
                       {"peak_fraction", "of peak", Show::percent},
                       {"flops_per_byte", "FLOP/B", Show::number},
                       {"checked", "error", Show::number},
                       {"best", "best", Show::text}}}};
    report.footer = fmt::format(
        "{} thread{}; measured here: {} f32 (matrix product of 1024), {} of memory bandwidth; "
        "error: against the reference",
        threads, threads == 1 ? "" : "s", to_string(host.peak.median), to_string(host.memory_bandwidth.median));
    return report;
}

int bench_kernels(Options& options) {
    check_writable(options.out, options.common);
    const int threads = kernels::choose_threads();
    check_writable(options.common.output, options.common);
    std::vector<bench::Candidate> candidates;
    std::vector<double> errors;
    bool wrong = false;
    for (const calibrate::Needed& needed : problems_of(options)) {
        const std::vector<const kernels::Backend*> backends = backends_of(options, needed.problem);
        for (const kernels::Backend* backend : backends) candidates.push_back({needed, backend});
        if (options.check) wrong = differs(options, needed.problem, backends, errors) || wrong;
    }
    const calibrate::HostFigures host = bench::measure_host({.budget = options.budget * 0.2}, {});
    bench::Options measuring;
    measuring.rounds.budget = options.budget * 0.8;
    measuring.seed = options.seed;
    const bench::Measurement measured = bench::measure(candidates, measuring);
    std::vector<Json> rows;
    for (std::size_t i = 0; i < measured.samples.size(); ++i) {
        rows.push_back(row_of(measured.samples[i], host.peak.median));
        if (options.check) rows.back()["checked"] = errors[i];
    }
    mark_best(rows);
    if (!options.out.empty()) replace_file(options.out, measured.json);
    print(report_of(options, rows, host, threads), options.common);
    return wrong ? check_failed : good;
}

int start(Options& options) {
    const std::map<std::string_view, Kind> kinds{
        {"conv", Kind::conv}, {"gemm", Kind::gemm}, {"layer", Kind::layer}, {"attention", Kind::attention}};
    const std::string kind = options.arguments.empty() ? "" : options.arguments.front();
    std::vector<std::string_view> words = message_kinds();
    if (std::ranges::find(words, kind) != words.end()) {
        if (options.arguments.size() > 1) throw InputError(fmt::format("bench {}: takes no problem strings", kind));
        return bench_messages(kind, {options.common, options.messages, options.algorithm, options.out, options.check,
                                     options.seed, options.budget});
    }
    const auto found = kinds.find(kind);
    if (found == kinds.end()) {
        words.insert(words.begin(), {"conv", "gemm", "layer", "attention"});
        throw InputError(fmt::format("bench '{}': one of {}{}", kind, join(words), did_you_mean(kind, words)));
    }
    options.kind = found->second;
    options.arguments.erase(options.arguments.begin());
    return bench_kernels(options);
}

}  // namespace

Run add_bench(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("KIND", options->arguments,
                   "conv, gemm, layer or attention, then problem strings; under mpirun " + join(message_kinds()))
        ->option_text("KIND [PROBLEM...]");
    app.add_option("--suite", options->suite, "every distinct step of training this network, or both climate networks")
        ->option_text("NAME|climate|FILE.onnx");
    app.add_option("--batch", options->batches, "of a suite")->delimiter(',')->option_text("N[,N...]");
    app.add_option("--backend", options->backend, "only this one")->option_text("NAME");
    app.add_option("--algorithm", options->algorithm, "only this one; of collectives any of a list, with mpi and auto")
        ->option_text("NAME[,NAME...]");
    using kernels::Accumulation;
    add_choice<std::optional<Accumulation>>(
        app, "--accumulate", options->accumulate,
        {{"f32", Accumulation::f32}, {"chunked", Accumulation::chunked}, {"f16", Accumulation::f16}},
        "only those that sum products of f16 so");
    app.add_flag("!--no-check", options->check, "do not hold the results to the reference first");
    app.add_option("--seed", options->seed, "of the data")->capture_default_str()->option_text("N");
    app.add_option("--out", options->out, "Google Benchmark's JSON, for calibrate")->option_text("FILE.json");
    add_message_options(app, options->messages);
    add_budget(app, options->budget);
    add_common(app, options->common);
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
