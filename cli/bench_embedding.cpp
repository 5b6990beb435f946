// SPDX-License-Identifier: Apache-2.0
// bench embedding: tables of a recommender's categories, looked up and updated in each way.
#include <fmt/format.h>

#include <thread>

#include "bench/embedding.hpp"
#include "cli/bench.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/op.hpp"

namespace rehearse::cli {

namespace {

bench::EmbeddingWorkload workload_of(const BenchOptions& options) {
    if (options.arguments.size() > 1 || !options.suite.empty())
        throw InputError(
            "bench embedding: takes one problem string, like embeddingbag:n256t8l100v200000c64:f32:forward, and no "
            "--suite");
    bench::EmbeddingWorkload workload{.op = {.tables = 8, .lookups = 100, .vocabulary = 200'000, .width = 64},
                                      .batch = options.batches.front(),
                                      .skew = options.skew,
                                      .seed = options.seed};
    if (options.arguments.empty()) return workload;
    const Problem problem = parse_problem(options.arguments.front());
    const auto* op = std::get_if<EmbeddingBag>(&problem.op);
    if (op == nullptr) {
        throw InputError(
            fmt::format("bench embedding {}: is no embeddingbag:nBATCHtTABLESlLOOKUPSvROWScWIDTH:f32:forward",
                        options.arguments.front()));
    }
    workload.op = *op;
    workload.batch = problem.batch;
    return workload;
}

}  // namespace

int bench_embedding(const BenchOptions& options) {
    if (!options.out.empty()) throw InputError("--out: not of bench embedding; --format json gives its rows");
    if (options.batches.size() != 1) throw InputError("bench embedding: one --batch");
    const bench::EmbeddingWorkload workload = workload_of(options);
    std::vector<int> threads = options.threads;
    if (threads.empty()) threads = {std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
    Report report{
        document("bench-embedding", {{"problem", to_string(Problem{workload.op, Pass::forward, workload.batch})},
                                     {"batch", workload.batch},
                                     {"skew", workload.skew},
                                     {"threads", threads},
                                     {"rounds", options.rounds}}),
        {},
        ""};
    report.document["rows"] = Json::array();
    for (const int count : threads) {
        Seconds reference;
        const Seconds budget = options.budget / static_cast<double>(threads.size());
        for (const bench::EmbeddingSample& sample :
             bench::measure_embedding(workload, count, {options.rounds, budget})) {
            const Seconds both = sample.forward + sample.update;
            if (sample.way == bench::EmbeddingWay::reference) reference = both;
            report.document["rows"].push_back({{"way", to_string(sample.way)},
                                               {"threads", count},
                                               {"forward_s", sample.forward.value},
                                               {"update_s", sample.update.value},
                                               {"speedup", reference / both},
                                               {"error", sample.error},
                                               {"checked", true}});
        }
    }
    report.tables = {{"rows",
                      "",
                      {{"way", "way"},
                       {"threads", "threads", Show::count},
                       {"forward_s", "forward", Show::seconds},
                       {"update_s", "backward and update", Show::seconds},
                       {"speedup", "over reference", Show::number},
                       {"error", "spread", Show::percent}}}};
    report.footer = fmt::format(
        "{}, batch {}, rows by Zipf's law with exponent {}; medians of {} rounds, all weights checked\n"
        "reference: a gradient row a lookup, added by one thread; what a framework's dispatch of each row costs beside "
        "it "
        "is not in it (docs/systems/dlrm.md)",
        to_string(Problem{workload.op, Pass::forward, workload.batch}), workload.batch, workload.skew, options.rounds);
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
