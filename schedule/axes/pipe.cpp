// SPDX-License-Identifier: Apache-2.0
// The pipe axis: how many stages, of how many copies each, and in which order they take the micro-batches.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "schedule/axes/axis.hpp"
#include "schedule/axes/orders.hpp"

namespace rehearse::schedule {

namespace {

void read_pipe(Plan& plan, std::string_view size) { add_axis(plan, "pipe", size); }

void read_cut(Plan& plan, std::string_view value) {
    plan.cut_by_blocks = value == "blocks";
    if (value == "prices" || value == "blocks") return;
    for (const std::string_view word : split(value, '+')) {
        if (word.empty()) {
            throw InputError(
                fmt::format("cut={}: write prices, blocks, or the last layer of each stage but the last, "
                            "like 12+30: how many layers of the network lie before it, or its name",
                            value));
        }
        plan.cuts.emplace_back(word);
    }
}

/// "15+1", "2x3+1": stages that 15 ranks have, and 1.
void read_copies(Plan& plan, std::string_view value) {
    for (const std::int64_t copies : read_terms("copies", value)) plan.stage_copies.push_back(static_cast<int>(copies));
}

void read_scatter(Plan& plan, std::string_view value) { plan.scatter = read_switch("scatter", value); }

void read_chunks(Plan& plan, std::string_view value) { plan.chunks = read_count("chunks", value, 1000); }

void read_pipeline(Plan& plan, std::string_view value) {
    std::vector<std::string_view> names;
    for (const PipelineStrategy& strategy : pipeline_strategies()) {
        names.push_back(strategy.name);
        if (strategy.name == value) plan.pipeline = strategy.name;
    }
    if (plan.pipeline == value) return;
    throw InputError(
        fmt::format("unknown schedule '{}'{}; there are {}", value, did_you_mean(value, names), join(names)));
}

constexpr std::array words{
    Word{{"pipe", "N", "N stages of consecutive layers, balanced by their prices", {}}, read_pipe},
    Word{{"schedule", "1f1b|gpipe|interleaved|pipedream",
          "in which order a stage takes the micro-batches; default 1f1b", "pipe"},
         read_pipeline},
    Word{{"microbatches", "N", "the batch in N parts; default as many as ranks, in whole turns of copies", "pipe"},
         read_micro_batches},
    Word{{"microbatch", "N", "the batch in parts of N samples, instead of microbatches", "pipe"}, read_micro_batch},
    Word{{"chunks", "N", "parts of the network a stage holds, of schedule=interleaved; default 2", "pipe"},
         read_chunks},
    recompute_of("pipe"),
    attention_of("pipe"),
    Word{{"cut", "prices|blocks|L+L+...",
          "where stages end: all are through first; equally many blocks each; behind these layers, each by its "
          "name or by how many it makes of those that 'rehearse models' lists; default prices",
          "pipe"},
         read_cut},
    Word{{"copies", "A+B+...",
          "stages that A, B, ... of the N ranks have, which take turns over the micro-batches and sum their gradients; "
          "MxA for M stages of A; default 1 each",
          "pipe"},
         read_copies},
    Word{{"scatter", "on|off",
          "on: of what all tensor ranks have, each sends a piece to the next stage, where they gather it; default off",
          "pipe"},
         read_scatter},
};

constexpr std::array conflicts_of_pipedream{
    Conflict{"zero", When::never, "stages keep several versions of the weights whole", {}, "choose schedule=1f1b"},
};
constexpr std::string_view takes_no_turns = "its ranks take no turns over micro-batches";
constexpr std::string_view no_turns = "it updates after each part of the batch, of which copies have no turns to take";
constexpr std::array conflicts_of_copies{
    Conflict{"interleaved", When::never, takes_no_turns},
    Conflict{"pipedream", When::later, "copies of a stage would have to wait for each other's updates"},
    Conflict{"local", When::never, "copies of a stage have the same weights"},
    Conflict{"kfac", When::never, no_turns},
    Conflict{"bilevel", When::never, no_turns},
};
constexpr std::array needs_tensor{Need{"tensor", "tensor=N", "the tensor ranks are those that hand on a piece each"}};
constexpr std::array features{
    Feature{"pipe", "pipe=2,data", [](const Asked& a) { return has_axis(a.plan, "pipe"); }},
    Feature{
        "scatter=on", "pipe=2:scatter=on,tensor=2", [](const Asked& a) { return a.plan.scatter; }, {}, needs_tensor},
    Feature{"copies", "pipe=4:copies=1+2+1", [](const Asked& a) { return !a.plan.stage_copies.empty(); },
            conflicts_of_copies},
    Feature{"interleaved", "pipe=2:schedule=interleaved,data",
            [](const Asked& a) { return a.plan.pipeline == "interleaved"; }},
    Feature{"pipedream", "pipe=2:schedule=pipedream,data",
            [](const Asked& a) { return a.plan.pipeline == "pipedream"; }, conflicts_of_pipedream},
};

/// The ranks of all stages together.
void complete_copies(Plan& plan, std::int64_t& size) {
    if (plan.stage_copies.empty()) return;
    if (plan.stage_copies.size() == 1) {
        throw InputError(
            fmt::format("copies={0}: of one stage, which needs no pipeline: write data={0}, or the copies "
                        "of each stage, like 2+1",
                        plan.stage_copies.front()));
    }
    const std::int64_t all = std::reduce(plan.stage_copies.begin(), plan.stage_copies.end(), std::int64_t{0});
    if (size == 0) size = all;
    if (size != all) {
        throw InputError(fmt::format("copies={}: stages of {} ranks, but pipe={}; write pipe={}",
                                     fmt::join(plan.stage_copies, "+"), all, size, all));
    }
}

/// As many layers of `cut=` as stages end before the last one; how many stages, where nothing else says it.
void complete_cuts(Plan& plan) {
    if (plan.cuts.empty()) return;
    const auto pieces = static_cast<std::int64_t>(plan.cuts.size()) + 1;
    std::int64_t& size = plan.mesh.axes[at(axis_index(plan.mesh, "pipe"))].size;
    if (size == 0 && pieces % plan.chunks == 0) size = pieces / plan.chunks;
    const std::int64_t stages = plan.stage_copies.empty() ? size : static_cast<std::int64_t>(plan.stage_copies.size());
    if (pieces == stages * plan.chunks) return;
    throw InputError(fmt::format(
        "cut={}: {} parts of the network, but {} stages{}: name {} layers", fmt::join(plan.cuts, "+"), pieces, stages,
        plan.chunks > 1 ? fmt::format(" of {} chunks", plan.chunks) : "", stages * plan.chunks - 1));
}

void complete(Plan& plan) {
    const bool interleaved = plan.pipeline == "interleaved";
    if (plan.chunks > 1 && !interleaved) {
        throw InputError(fmt::format("chunks={} needs schedule=interleaved", plan.chunks));
    }
    if (interleaved && plan.chunks == 1) throw InputError("schedule=interleaved needs at least 2 chunks");
    if (plan.chunks == 0) plan.chunks = interleaved ? 2 : 1;
    const int pipe = axis_index(plan.mesh, "pipe");
    if (pipe < 0) return;
    complete_copies(plan, plan.mesh.axes[at(pipe)].size);
    complete_cuts(plan);
}

}  // namespace

constinit const PlanAxis pipe{{words, features, complete}};

}  // namespace rehearse::schedule
