// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "core/collectives/collective.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#if REHEARSE_HAS_MPI
#include "bench/collectives.hpp"
#include "bench/messages.hpp"
#include "cli/bench_choice.hpp"
#include "run/train.hpp"
#endif

namespace rehearse::cli {

#if REHEARSE_HAS_MPI

namespace {

std::optional<CollectiveKind> kind_of(std::string_view word) {
    for (const CollectiveKind kind : collective_kinds()) {
        if (bench::name_of({kind, DataType::f32}) == word) return kind;
    }
    return std::nullopt;  // p2p
}

// At commas outside brackets: hierarchical(ring,halving) stays whole.
std::vector<std::string> listed(std::string_view text) {
    std::vector<std::string> words(1);
    int depth = 0;
    for (const char c : text) {
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c == ',' && depth == 0) {
            words.emplace_back();
        } else {
            words.back() += c;
        }
    }
    return words;
}

// Every flat algorithm and MPI's own, where nothing is asked for.
std::vector<std::string> algorithms_of(const bench::Traffic& traffic, const std::string& asked, bool mpi_can) {
    if (!asked.empty()) return listed(asked);
    std::vector<std::string> names;
    if (!traffic.kind) {
        names = {"direct"};
    } else {
        for (const AlgorithmName& each : algorithms(*traffic.kind)) {
            if (each.name.find('(') == std::string_view::npos) names.emplace_back(each.name);
        }
    }
    if (mpi_can) names.emplace_back("mpi");
    return names;
}

bench::TrafficOptions traffic_options(std::string_view kind, const MessageBench& asked) {
    const MessageOptions& messages = asked.messages;
    bench::TrafficOptions options;
    options.traffic = {kind_of(kind), type_named(messages.type)};
    const auto least = quantity_of<Bytes>("--min", messages.least), most = quantity_of<Bytes>("--max", messages.most);
    if (least.value < 1 || most < least) {
        throw InputError(
            fmt::format("--min {} --max {}: 1B or more, and no less than the minimum", messages.least, messages.most));
    }
    if (!(messages.factor > 1)) throw InputError(fmt::format("--factor {}: more than 1", messages.factor));
    if (messages.iterations < 0 || messages.warm_up < 0) throw InputError("--iterations, --warmup: 0 or more");
    options.sizes = bench::sizes_between(least, most, messages.factor);
    const bool sums = kind == "allreduce" || kind == "reducescatter";
    options.algorithms = algorithms_of(options.traffic, asked.algorithms, !sums || messages.type == "f32");
    options.rounds.count = asked.rounds;
    options.rounds.budget = asked.budget;
    options.rounds.iterations = messages.iterations;
    options.warm_up = messages.warm_up;
    options.check = asked.check;
    options.seed = asked.seed;
    return options;
}

// Ratios to MPI at the same size, where both were measured.
void compare_with_mpi(std::vector<Json>& rows) {
    for (Json& row : rows) {
        const auto mpi = std::ranges::find_if(rows, [&](const Json& other) {
            return other["algorithm"] == "mpi" && other["size_bytes"] == row["size_bytes"];
        });
        if (mpi != rows.end()) row["speed_to_mpi"] = (*mpi)["median_s"].get<double>() / row["median_s"].get<double>();
    }
}

Json row_of(std::string_view kind, const bench::Traffic& traffic, std::int64_t ranks,
            const bench::TrafficSample& sample) {
    Json row{{"kind", kind},
             {"ranks", ranks},
             {"size_bytes", sample.size.value},
             {"count", sample.count},
             {"type", to_string(traffic.type)},
             {"algorithm", sample.algorithm},
             {"chosen", sample.chosen},
             {"median_s", sample.median.value},
             {"time_us", sample.median.value * 1e6},
             {"error", sample.error},
             {"samples", sample.samples},
             {"algbw_bytes_per_s", sample.algorithm_bandwidth.value},
             {"busbw_bytes_per_s", sample.bus_bandwidth.value},
             {"algbw_GBps", sample.algorithm_bandwidth.value / 1e9},
             {"busbw_GBps", sample.bus_bandwidth.value / 1e9},
             {"wrong", nullptr}};
    if (sample.wrong >= 0) row["wrong"] = sample.wrong;
    return row;
}

Report report_of(const std::vector<Json>& rows, std::string_view kind, std::int64_t ranks, const MessageBench& asked) {
    Report report{document("bench", {{"kind", kind},
                                     {"ranks", ranks},
                                     {"type", asked.messages.type},
                                     {"warm_up", asked.messages.warm_up},
                                     {"seed", asked.seed}}),
                  {},
                  ""};
    report.document["rows"] = rows;
    report.tables = {{"rows",
                      fmt::format("{} between {} ranks", kind, ranks),
                      {{"size_bytes", "size (B)", Show::count},
                       {"count", "count", Show::count},
                       {"type", "type"},
                       {"algorithm", "algorithm"},
                       {"chosen", "by"},
                       {"time_us", "time (us)", Show::number},
                       {"algbw_GBps", "algbw (GB/s)", Show::number},
                       {"busbw_GBps", "busbw (GB/s)", Show::number},
                       {"wrong", "#wrong", Show::count},
                       {"error", "spread", Show::percent},
                       {"speed_to_mpi", "x mpi", Show::number}}}};
    report.footer = "busbw as in nccl-tests; time: median of rounds that take turns, mean of the ranks";
    return report;
}

int measure(std::string_view kind, const MessageBench& asked) {
    bench::TrafficOptions options = traffic_options(kind, asked);
    kernels::Communicator world = kernels::Communicator::world();
    world.connect();
    if (!asked.messages.samples.empty()) {
        if (!options.traffic.kind) throw InputError("--samples: p2p has no algorithms to choose from");
        options.choice = read_choice(asked.messages.samples, options.traffic, world);
    }
    const bench::TrafficMeasurement measured = bench::measure_traffic(world, options);
    if (world.rank() != 0) return good;
    std::vector<Json> rows;
    bool wrong = false;
    for (const bench::TrafficSample& sample : measured.samples) {
        rows.push_back(row_of(kind, options.traffic, world.size(), sample));
        wrong = wrong || sample.wrong > 0;
    }
    compare_with_mpi(rows);
    for (Json& row : rows) row.emplace("speed_to_mpi", nullptr);
    if (!asked.out.empty()) replace_file(asked.out, measured.json);
    print(report_of(rows, kind, world.size(), asked), asked.common);
    return wrong ? check_failed : good;
}

}  // namespace

int bench_messages(std::string_view kind, const MessageBench& asked) {
    check_writable(asked.out, asked.common);
    check_writable(asked.common.output, asked.common);
    int argc = 0;
    char** argv = nullptr;
    const run::Session session{argc, argv};
    return session.run("rehearse", [&] { return measure(kind, asked); });
}

#else

int bench_messages(std::string_view kind, const MessageBench&) {
    throw BackendError(fmt::format("bench {}: this build has no MPI (install libopenmpi-dev, REHEARSE_MPI=ON)", kind));
}

#endif

std::vector<std::string_view> message_kinds() {
    return {"p2p", "allreduce", "reducescatter", "allgather", "broadcast", "alltoall"};
}

void add_message_options(CommandLine& app, MessageOptions& options) {
    app.add_option("--min", options.least, "smallest data of a rank, of messages and collectives")
        ->capture_default_str()
        ->option_text("SIZE");
    app.add_option("--max", options.most, "largest")->capture_default_str()->option_text("SIZE");
    app.add_option("--factor", options.factor, "from one size to the next")->capture_default_str()->option_text("X");
    app.add_option("--type", options.type, "of the numbers, and of the problems of a network")
        ->capture_default_str()
        ->option_text("f32|f16|bf16");
    app.add_option("--samples", options.samples,
                   "what algorithm auto goes by, written by --out; else it measures first")
        ->option_text("FILE.json");
    app.add_option("--iterations", options.iterations, "runs a round; else as many as the budget allows, 2 to 100")
        ->option_text("N");
    app.add_option("--warmup", options.warm_up, "untimed runs before each round")
        ->capture_default_str()
        ->option_text("N");
}

}  // namespace rehearse::cli
