// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/caches.hpp"
#include "bench/check.hpp"
#include "bench/suites.hpp"
#include "calibrate/problems.hpp"
#include "cli/bench.hpp"
#include "cli/bench_taken.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/problem_forms.hpp"
#include "core/text.hpp"
#include "kernels/threads.hpp"
#include "match/pattern.hpp"
#include "models/fuse.hpp"
#include "models/models.hpp"
#include "models/this_host.hpp"

namespace rehearse::cli {

namespace {

using Backends = std::vector<const kernels::Backend*>;

bool wanted(const std::string& kind, const Op& op) {
    if (kind == "conv") return is_convolution(op);
    if (kind == "gemm") return std::holds_alternative<MatMul>(op);
    if (kind == "attention") return std::holds_alternative<Attention>(op);
    return true;
}

std::vector<calibrate::Needed> of_suite(const BenchOptions& options) {
    std::vector<calibrate::Needed> problems;
    if (const bench::Suite* suite = bench::find_suite(options.suite)) {
        for (const Problem& problem : suite->problems()) problems.push_back({problem, 2 * bench::last_level_cache()});
        return problems;
    }
    std::vector<std::string_view> names;
    for (const bench::Suite& suite : bench::suites()) names.push_back(suite.name);
    if (const std::string meant = did_you_mean(options.suite, names); !meant.empty()) {
        throw InputError(fmt::format("--suite {}: there is none of this name{}", options.suite, meant));
    }
    std::vector<Network> networks = models::load_suite(options.suite == "bert" ? "bert-large" : options.suite);
    for (Network& network : networks) network = models::fuse(network, models::parse_fusions(options.fuse));
    problems = calibrate::problems(networks, options.batches);
    for (auto& each : problems) each.problem.type = type_named(options.messages.type);
    return problems;
}

void apply_filter(const std::string& filter, std::vector<calibrate::Needed>& problems) {
    const match::Pattern pattern{filter, "--filter"};
    std::erase_if(problems, [&](const auto& each) { return !pattern.is_in(to_string(each.problem)); });
    if (problems.empty()) throw InputError(fmt::format("--filter {}: no problem matches it", filter));
}

std::vector<calibrate::Needed> problems_of(const BenchOptions& options) {
    std::vector<calibrate::Needed> problems;
    for (const std::string& text : options.arguments) {
        const Problem problem = parse_problem(text);
        if (!wanted(options.kind, problem.op))
            throw InputError(fmt::format("bench {}: {} is another kind of operator, '{}': bench layer times any",
                                         options.kind, text, kind_of(problem.op)));
        problems.push_back({problem, 2 * bench::last_level_cache()});
    }
    if (!options.suite.empty()) {
        for (const auto& each : of_suite(options)) problems.push_back(each);
    }
    std::erase_if(problems, [&](const auto& each) { return !wanted(options.kind, each.problem.op); });
    if (problems.empty()) {
        throw InputError(fmt::format("bench {}: nothing to time: give problem strings, like {}, or --suite resnet50",
                                     options.kind, example_of(options.kind == "gemm" ? "matmul" : options.kind)));
    }
    if (!options.filter.empty()) apply_filter(options.filter, problems);
    return problems;
}

// All implementations that can, without the reference unless it is asked for or alone.
Backends backends_of(const BenchOptions& options, const Problem& problem) {
    Backends found;
    std::string refusals;
    const auto each_once = kernels::implementations(problem, options.scratch_limit);
    for (const kernels::Backend* backend : kernels::backends()) {
        if (!options.backend.empty() && backend->name() != options.backend) continue;
        if (!options.algorithm.empty() && !is_algorithm(*backend, options.algorithm)) continue;
        if (options.accumulate && backend->accumulation() != *options.accumulate) continue;
        const bool last_resort = backend == kernels::backends().back() && options.backend != backend->name();
        if (last_resort && !found.empty()) continue;
        const kernels::Support support = supports_within(*backend, problem, options.scratch_limit);
        const bool listed = std::ranges::find(each_once, backend) != each_once.end();
        if (support.yes && (listed || backend == kernels::backends().back())) found.push_back(backend);
        if (support.yes) continue;
        refusals += fmt::format("\n  {}: {}", full_name(*backend), support.reason);
        if (backend->supports(problem).yes) {
            talk(options.common,
                 fmt::format("left out: {} for {}: {}", full_name(*backend), to_string(problem), support.reason));
        }
    }
    if (!found.empty()) return found;
    if (refusals.empty()) refusals = ": no backend of this build has that name, algorithm and sums";
    throw InputError(fmt::format("bench: no implementation runs {}{}", to_string(problem), refusals));
}

// What is timed together: its kernels are all prepared at the same time.
struct Job {
    calibrate::Needed needed;
    Backends backends;
    Bytes shared, own;  // the arena that problems share; the kernels' copies of its operands
};

// An estimate. The arena has two halves, each with the operands, an output more and two more of the weights; a kernel
// keeps operands in a layout of its own, and a transformed copy.
Job make_job(const BenchOptions& options, const calibrate::Needed& needed) {
    const Problem& p = needed.problem;
    const Bytes operands = bytes_moved(p.op, Pass::forward, DataType::f32, p.batch);
    Backends backends = backends_of(options, p);
    const double copies = 2.0 * static_cast<double>(backends.size());
    const Bytes footprint = 2 * std::min(needed.footprint, 2 * bench::last_level_cache());
    return {needed, std::move(backends), std::max(5 * operands, footprint), copies * operands};
}

// Jobs that fit into memory together, in the given order. What does not fit alone is skipped, and said.
std::vector<std::vector<Job>> groups_of(const BenchOptions& options, Json& skipped) {
    const Bytes free = bench::available_memory();
    std::vector<std::vector<Job>> groups;
    Bytes shared, own;
    for (const calibrate::Needed& needed : problems_of(options)) {
        const Job job = make_job(options, needed);
        if (const Bytes bytes = job.shared + job.own; bytes > free * 0.8) {
            const std::string reason =
                fmt::format("needs about {} of memory, {} are free", to_string(bytes), to_string(free));
            skipped.push_back({{"problem", to_string(needed.problem)}, {"reason", reason}});
            talk(options.common, fmt::format("skipped: {} {}", to_string(needed.problem), reason));
            continue;
        }
        if (groups.empty() || std::max(shared, job.shared) + own + job.own > free * 0.5) {
            groups.emplace_back();
            shared = own = Bytes{};
        }
        shared = std::max(shared, job.shared);
        own += job.own;
        groups.back().push_back(job);
    }
    if (groups.empty()) throw InfeasibleError("bench: no problem fits into the free memory");
    return groups;
}

// A row for each backend, not timed yet; whether one of the results is wrong.
bool check_job(const BenchOptions& options, const Job& job, const kernels::KernelSelection& selection,
               std::vector<BenchRow>& rows) {
    const std::size_t first = rows.size();
    rows.resize(first + job.backends.size());
    const TakenByRun taken{job.needed.problem, selection};
    for (std::size_t i = 0; i < job.backends.size(); ++i) {
        rows[first + i].scratch = job.backends[i]->scratch(job.needed.problem, options.scratch_limit);
        rows[first + i].sums = job.backends[i]->accumulation();
        rows[first + i].taken = taken.is(*job.backends[i]);
    }
    if (!options.check) return false;
    const Problem problem = small_enough(job.needed.problem);
    const std::vector<bench::Checked> checks = bench::check(problem, job.backends, options.seed);
    bool wrong = false;
    for (std::size_t i = 0; i < checks.size(); ++i) {
        rows[first + i].checked = true;
        rows[first + i].error = checks[i].error;
        rows[first + i].checked_batch = problem.batch;
        if (checks[i].error <= checks[i].tolerance) continue;
        wrong = true;
        talk(options.common, fmt::format("wrong: {} by {} differs from the reference by {:.2g}", to_string(problem),
                                         full_name(*job.backends[i]), checks[i].error));
    }
    return wrong;
}

// Rows of the groups, and where each group's end; whether one of the results is wrong. Ended early, of fewer groups.
bool check_groups(const BenchOptions& options, const std::vector<std::vector<Job>>& groups, const LongWork& work,
                  std::vector<BenchRow>& rows, std::vector<std::size_t>& ends) {
    std::int64_t all = 0, checked = 0;
    for (const auto& group : groups) all += std::ssize(group);
    const Progress progress = work.part("checking problems");
    const kernels::KernelSelection selection{.scratch_limit = options.scratch_limit,
                                             .tuned = tuned_here(options.scratch_limit)};
    bool wrong = false;
    for (const auto& group : groups) {
        for (const Job& job : group) {
            wrong = check_job(options, job, selection, rows) || wrong;
            if (!goes_on(progress, ++checked, all)) return wrong;
        }
        ends.push_back(rows.size());
    }
    return wrong;
}

// Rows say how far they are from the ceilings, so these are measured to their end, in a fifth of the time; of work that
// has been ended by then, once.
bench::Rounds ceiling_rounds(const BenchOptions& options, const LongWork& work) {
    const Progress shown = work.part("ceilings");
    return {.count = work.interrupted() ? 1 : std::min(options.rounds, 7),
            .budget = options.budget * 0.2,
            .progress = [shown](std::int64_t done, std::int64_t all) { return shown(done, all) || true; }};
}

// Google Benchmark's document of a group, with what it cannot know, is added to that of the groups before. It lists the
// rows of each round in turn.
void add_document(const std::string& text, std::span<const BenchRow> rows, const bench::Ceilings& ceilings,
                  Json& document) {
    if (text.empty()) return;  // ended before its first round
    Json part = Json::parse(text);
    std::size_t next = 0;
    for (Json& each : part["benchmarks"]) {
        const BenchRow& row = rows[next++ % rows.size()];
        each["peak_fraction"] = each["flop/s"].get<double>() / bench::roof_of(ceilings, row.sample).rate.value;
        add_kernel(row, each);
    }
    if (document.is_null()) {
        document = std::move(part);
    } else {
        for (Json& each : part["benchmarks"]) document["benchmarks"].push_back(std::move(each));
    }
}

// What no kernel can exceed, as measured beside them.
Json roofs_json(const bench::Ceilings& ceilings) {
    Json roofs = Json::array();
    for (const bench::Peak& peak : ceilings.peaks) {
        if (peak.absent.empty()) roofs.push_back({{"name", peak.type}, {"flop/s", peak.rate.value}});
    }
    for (const auto& roof : ceilings.bandwidths) roofs.push_back({{"name", roof.level}, {"B/s", roof.rate.value}});
    return roofs;
}

// The rows of a group get their samples.
std::string measure_group(const BenchOptions& options, const std::vector<Job>& group, Seconds budget,
                          const Progress& progress, std::span<BenchRow> rows) {
    std::vector<bench::Candidate> candidates;
    for (const Job& job : group) {
        for (const kernels::Backend* backend : job.backends) candidates.push_back({job.needed, backend});
    }
    bench::Options measuring;
    measuring.rounds = {.count = options.rounds, .budget = budget, .progress = progress};
    measuring.seed = options.seed;
    measuring.scratch_limit = options.scratch_limit;
    const bench::Measurement measured = bench::measure(candidates, measuring);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].sample = measured.samples[i];
    return measured.json;
}

}  // namespace

Problem small_enough(Problem problem, Flops most) {
    if (problem.pass == Pass::update) return problem;
    const std::int64_t group = routing_group(problem.op);
    const Flops whole = flops(problem.op, problem.pass, group);
    const auto groups = whole.value > 0 ? static_cast<std::int64_t>(most / whole) : problem.batch / group;
    problem.batch = std::min(problem.batch, group * std::max<std::int64_t>(groups, 1));
    return problem;
}

void mark_best(std::vector<BenchRow>& rows) {
    std::map<std::string, Seconds> best;
    for (const BenchRow& row : rows) {
        const auto [entry, fresh] = best.try_emplace(to_string(row.sample.problem), row.sample.median);
        entry->second = std::min(entry->second, row.sample.median);
    }
    for (BenchRow& row : rows) row.best = row.sample.median <= best[to_string(row.sample.problem)];
}

int bench_tuned(const BenchOptions& options) { return list_tuned(options.common); }

int bench_kernels(const BenchOptions& options) {
    if (options.list) {
        for (const auto& each : problems_of(options)) fmt::print("{}\n", to_string(each.problem));
        return good;
    }
    if (options.device != "cpu") return bench_device(options, problems_of(options));
    if (options.tune) {
        bench::TuneOptions tuning;
        tuning.budget = options.budget;
        tuning.scratch_limit = options.scratch_limit;
        tuning.seed = options.seed;
        return tune_and_list(problems_of(options), tuning, options.common);
    }
    if (!options.threads.empty()) {
        throw InputError(
            fmt::format("--threads: not of bench {}; OMP_NUM_THREADS gives kernels threads", options.kind));
    }
    const int threads = kernels::choose_threads();
    Json skipped = Json::array();
    const std::vector<std::vector<Job>> groups = groups_of(options, skipped);
    std::vector<BenchRow> rows;
    std::vector<std::size_t> ends;  // of each group's rows
    const LongWork work{options.common};
    const bool wrong = check_groups(options, groups, work, rows, ends);
    const bench::Ceilings ceilings = bench::measure_ceilings(threads, ceiling_rounds(options, work));
    Json document;
    for (std::size_t i = 0, first = 0; i < ends.size() && !work.interrupted(); first = ends[i++]) {
        const std::span<BenchRow> part = std::span{rows}.subspan(first, ends[i] - first);
        const double share = static_cast<double>(part.size()) / static_cast<double>(rows.size());
        const Progress progress = work.part(fmt::format("timing, group {} of {}", i + 1, groups.size()));
        add_document(measure_group(options, groups[i], options.budget * (0.8 * share), progress, part), part, ceilings,
                     document);
    }
    std::erase_if(rows, [](const BenchRow& row) { return row.sample.count == 0; });  // not timed, as it was ended
    mark_best(rows);
    document["context"]["roofs"] = roofs_json(ceilings);
    if (work.interrupted()) document["partial"] = true;
    if (!options.out.empty()) replace_file(options.out, document.dump(2) + '\n');
    const BenchPlace place{threads,
                           fmt::format("{} thread{} of {}", threads, threads == 1 ? "" : "s", models::host_now().cpu)};
    if (!rows.empty()) {
        draw_roofline(options, rows, ceilings, place);
        draw_winners(options, rows, place);
    }
    Report report = bench_report(options, rows, ceilings, place);
    if (!skipped.empty()) report.document["skipped"] = skipped;
    work.mark(report);
    print(report, options.common);
    return work.exit_code(wrong ? check_failed : good);
}

}  // namespace rehearse::cli
