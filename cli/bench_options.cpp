// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "bench/suites.hpp"
#include "cli/command_line.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

namespace {

enum Kinds : unsigned {
    kernels = 1,  // conv, gemm, layer, attention
    roofs = 2,    // stream, peak
    stream = 4,
    embedding = 8,
    files = 16,
    table = 32,  // nccl-table
    messages = 64
};

unsigned kinds_of(const std::string& kind) {
    if (kind == "stream") return roofs | stream;
    if (kind == "peak") return roofs;
    if (kind == "embedding") return embedding;
    if (kind == "files") return files;
    if (kind == "nccl-table") return table;
    if (kind == "tuned") return 0;
    return std::ranges::count(message_kinds(), std::string_view{kind}) > 0 ? messages : kernels;
}

struct Fitting {
    const char* option;
    unsigned kinds;
    const char* words;  // of whose benches it is
};
constexpr const char* of_kernels = "bench conv, gemm, layer and attention";
constexpr const char* of_messages = "messages and collectives";
constexpr const char* of_table = "bench nccl-table";
constexpr std::array fitting{Fitting{"--batch", kernels | embedding, "networks and bench embedding"},
                             Fitting{"--fuse", kernels, of_kernels},
                             Fitting{"--backend", kernels, of_kernels},
                             Fitting{"--algorithm", kernels | messages, "kernels and collectives"},
                             Fitting{"--accumulate", kernels, of_kernels},
                             Fitting{"--list", kernels, of_kernels},
                             Fitting{"--no-check", kernels | messages, "kernels, messages and collectives"},
                             Fitting{"--tune", kernels, of_kernels},
                             Fitting{"--scratch-limit", kernels, of_kernels},
                             Fitting{"--sweep", stream, "bench stream"},
                             Fitting{"--skew", embedding, "bench embedding"},
                             Fitting{"--seed", kernels | embedding | messages, "kernels, embedding and messages"},
                             Fitting{"--rounds", kernels | roofs | embedding | files | messages, "what is timed"},
                             Fitting{"--min", messages | table, "messages, collectives and bench nccl-table"},
                             Fitting{"--max", messages | table, "messages, collectives and bench nccl-table"},
                             Fitting{"--factor", messages | table, "messages, collectives and bench nccl-table"},
                             Fitting{"--type", kernels | messages, "networks, messages and collectives"},
                             Fitting{"--samples", messages, of_messages},
                             Fitting{"--iterations", messages, of_messages},
                             Fitting{"--warmup", messages, of_messages},
                             Fitting{"--machine", table, of_table},
                             Fitting{"--nodes", table, of_table},
                             Fitting{"--devices-per-node", table, of_table},
                             Fitting{"--op", table, of_table},
                             Fitting{"--force-algorithm", table, of_table},
                             Fitting{"--force-protocol", table, of_table},
                             Fitting{"--compare", table, of_table},
                             Fitting{"--machine-out", table, of_table}};

// Problem strings and the problems of a list say their own batch and type.
void check_options_of_networks(const BenchOptions& options, const CommandLine& app) {
    if (!options.suite.empty() && bench::find_suite(options.suite) == nullptr) return;
    for (const char* option : {"--batch", "--fuse", "--type"}) {
        if (app.has(option))
            throw InputError(fmt::format(
                "{}: of the problems of a network (--suite NETWORK); problem strings say their own", option));
    }
}

}  // namespace

void check_options_of_kind(const BenchOptions& options, const CommandLine& app) {
    const unsigned kinds = kinds_of(options.kind);
    for (const Fitting& each : fitting) {
        if ((each.kinds & kinds) == 0 && app.has(each.option))
            throw InputError(fmt::format("{}: not of bench {}, but of {}", each.option, options.kind, each.words));
    }
    if (kinds == kernels) check_options_of_networks(options, app);
}

}  // namespace rehearse::cli
