// SPDX-License-Identifier: Apache-2.0
// The axes of a plan: their words, what they do not go with, and what each makes of a part of the network.
#include "schedule/axes/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/ring_attention.hpp"
#include "core/text.hpp"
#include "schedule/axes/context.hpp"
#include "schedule/axes/experts.hpp"
#include "schedule/axes/orders.hpp"
#include "schedule/axes/spatial.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/axes/tensor.hpp"
#include "schedule/axes/weird_trick.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {

namespace {

void read_tensor(Plan& plan, std::string_view size) { add_axis(plan, "tensor", size); }
void read_context(Plan& plan, std::string_view size) { add_axis(plan, "context", size); }
void read_expert(Plan& plan, std::string_view size) { add_axis(plan, "expert", size); }
void read_pipe(Plan& plan, std::string_view size) { add_axis(plan, "pipe", size); }

/// "2x2": an axis of the mesh for each dimension of an image.
void read_spatial(Plan& plan, std::string_view sizes) {
    std::size_t count = 0;
    for (std::size_t begin = 0; begin <= sizes.size(); ++count) {
        const std::size_t end = std::min(sizes.find('x', begin), sizes.size());
        if (end == begin || count == spatial_axes.size()) {
            throw InputError(
                fmt::format("spatial={}: write the ranks along each dimension, like spatial=2, 2x2 or "
                            "2x2x2",
                            sizes));
        }
        add_axis(plan, spatial_axes[count], sizes.substr(begin, end - begin));
        begin = end + 1;
    }
}

void read_edges(Plan& plan, std::string_view value) {
    plan.methods.edit<Edges>().apart = read_choice("edges", value, "along", "apart");
}

void read_tensor_sum(Plan& plan, std::string_view value) {
    plan.tensor_sum = parse_algorithm(value);
    if (!is_sum(*plan.tensor_sum))
        throw InputError("adasum combines gradients: of data, not of tensor, whose layers sum");
}
void read_split(Plan& plan, std::string_view value) {
    if (value != "turns" && value != "filters" && value != "channels")
        throw InputError(fmt::format("split={}: write turns, filters or channels", value));
    plan.tensor_split = value == "turns"     ? TensorSplit::turns
                        : value == "filters" ? TensorSplit::filters
                                             : TensorSplit::channels;
}
void read_sequence(Plan& plan, std::string_view value) { plan.sequence = read_switch("sequence", value); }
void read_async(Plan& plan, std::string_view value) { plan.async_sums = read_switch("async", value); }
void read_cut(Plan& plan, std::string_view value) {
    if (value != "prices" && value != "blocks") throw InputError(fmt::format("cut={}: write prices or blocks", value));
    plan.cut_by_blocks = value == "blocks";
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

void read_dense(Plan& plan, std::string_view value) {
    plan.share_dense = read_choice("dense", value, "copied", "shared");
}
void read_tables(Plan& plan, std::string_view value) {
    plan.share_tables = read_choice("tables", value, "copied", "shared");
}
void read_bottom(Plan& plan, std::string_view value) {
    plan.bottom_on_one = read_choice("bottom", value, "copied", "one");
}

// Words that several axes have.
constexpr Word micro_batches_of(std::string_view axis) {
    return {{"microbatches", "N", "the batch in N parts, gradients added up; default 1", axis}, read_micro_batches};
}
constexpr Word recompute_of(std::string_view axis) {
    return {{"recompute", "on|off|blocks|attention", recompute_text, axis}, read_recompute};
}
constexpr Word attention_of(std::string_view axis) {
    return {{"attention", "fused|kept", attention_text, axis}, read_attention};
}

constexpr std::array tensor_words{
    Word{{"tensor", "N", "N ranks share each large layer (Megatron-LM)", {}}, read_tensor},
    Word{{"allreduce", "ring|doubling|halving|tree|hierarchical(INSIDE,ACROSS)|direct",
          "of the sums inside layers; default direct in switches that sum, as of gradients where nodes share a layer, "
          "else ring",
          "tensor"},
         read_tensor_sum},
    Word{{"split", "turns|filters|channels",
          "each layer by its filters, or by its channels (Kahira et al. 2021), not by turns; default turns", "tensor"},
         read_split},
    Word{{"sequence", "on|off", "between the layers that are cut, each rank has its rows of the sequence; default off",
          "tensor"},
         read_sequence},
    Word{{"async", "on|off",
          "on: the gradient of a layer's input is summed while that of its weights is computed; default off", "tensor"},
         read_async},
    recompute_of("tensor"),
    attention_of("tensor"),
};
constexpr std::array spatial_words{
    Word{{"spatial",
          "N|NxN|NxNxN",
          "ranks share each image: N along the first dimension (height, of volumes depth), or a grid of them",
          {}},
         read_spatial},
    Word{
        {"edges", "along|apart",
         "apart: of a convolution the rows that need no neighbour's are computed while the others' come; default along",
         "spatial"},
        read_edges},
};
void read_ring(Plan& plan, std::string_view value) {
    plan.methods.edit<RingAttention>().on = read_switch("ring", value);
}
constexpr std::array context_words{
    Word{
        {"context",
         "N",
         "N ranks share the tokens of each sequence; an all-to-all before and after attention gives each all tokens of "
         "some heads (DeepSpeed-Ulysses)",
         {}},
        read_context},
    Word{{"ring", "on|off",
          "keys and values travel around the ranks instead, each block used while the next one comes (Ring Attention, "
          "rows by turns as in Striped Attention); default off",
          "context"},
         read_ring},
    micro_batches_of("context"),
    recompute_of("context"),
    attention_of("context"),
};
constexpr std::array expert_words{
    Word{{"expert",
          "N",
          "N ranks, each on its share of the batch, share the experts of mixtures (GShard, Whale's M6): an all-to-all "
          "before and after these",
          {}},
         read_expert},
    micro_batches_of("expert"),
    recompute_of("expert"),
    attention_of("expert"),
};
constexpr std::array pipe_words{
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
    Word{{"cut", "prices|blocks",
          "where stages end: the costliest costs least; equally many blocks each; default prices", "pipe"},
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
constexpr std::array dense_words{
    Word{{"dense", "copied|shared",
          "shared: the ranks share each dense layer at the end, for the samples of all (one weird trick); default "
          "copied",
          "data"},
         read_dense},
};
constexpr std::array table_words{
    Word{{"tables", "copied|shared",
          "shared: each rank keeps some tables of embeddings, looks up for the samples of all (an all-to-all there and "
          "back), and updates the rows that were picked by plain SGD (DLRM); default copied",
          "data"},
         read_tables},
    Word{{"bottom", "copied|one",
          "with tables=shared, one: a single rank has the layers that do not read tables, for the samples of all, and "
          "sends their results with its tables' sums; predicted only; default copied",
          "data"},
         read_bottom},
};

constexpr std::array conflicts_of_sequence{
    Conflict{"split", When::never, "rows of the sequence lie between layers that are cut by turns"},
};
constexpr std::array tensor_features{
    Feature{"tensor", "data,tensor=2", [](const Asked& a) { return has_axis(a.plan, "tensor"); }},
    Feature{"split", "data,tensor=2:split=filters",
            [](const Asked& a) { return a.plan.tensor_split != TensorSplit::turns; }},
    Feature{"sequence=on", "data,tensor=2:sequence=on", [](const Asked& a) { return a.plan.sequence; },
            conflicts_of_sequence},
    Feature{"async=on", "data,tensor=2:async=on", [](const Asked& a) { return a.plan.async_sums; }},
};

constexpr std::array conflicts_of_spatial{
    Conflict{"sequence=on", When::never, "images have no rows of a sequence"},
};
constexpr std::array spatial_features{
    Feature{"spatial", "data,spatial=2", [](const Asked& a) { return has_axis(a.plan, spatial_axes[0]); },
            conflicts_of_spatial},
};

constexpr std::array conflicts_of_context{
    Conflict{"spatial", When::never, "tokens have no pixels"},
    Conflict{"sequence=on", When::later, "pieces of pieces of a sequence would lie in another order"},
    Conflict{"tables=shared", When::never, "rows of tables are no sequence"},
    Conflict{"local", When::never, "gradients of shared tokens are sums"},
    Conflict{"dense=vectors", When::never, "gradients of shared tokens are sums"},
};
constexpr std::array conflicts_of_ring{
    Conflict{"recompute=attention", When::never, "it makes again what a ring never keeps"},
};
constexpr std::array needs_context{Need{"context", "context=N", "the ring is of its ranks"}};
constexpr std::array context_features{
    Feature{"context", "data,context=2", [](const Asked& a) { return has_axis(a.plan, "context"); },
            conflicts_of_context},
    Feature{"ring", "data,context=2:ring=on", [](const Asked& a) { return a.plan.methods.get<RingAttention>().on; },
            conflicts_of_ring, needs_context},
};

constexpr std::array conflicts_of_expert{
    Conflict{"spatial", When::later, "experts take whole samples' tokens"},
    Conflict{"dense=shared", When::never, "ranks share experts, and no dense layer"},
    Conflict{"tables=shared", When::later, "exchanges of tokens and of tables have not been put into one part"},
    Conflict{"shares", When::never, "ranks exchange as many slots with each other"},
    Conflict{"local", When::never, "there is one model"},
};
constexpr std::array expert_features{
    Feature{"expert", "data,expert=2", [](const Asked& a) { return has_axis(a.plan, "expert"); }, conflicts_of_expert},
};

constexpr std::array conflicts_of_pipedream{
    Conflict{"zero", When::never, "stages keep several versions of the weights whole", {}, "choose schedule=1f1b"},
};
constexpr std::string_view one_axis_of_sums = "gradients are summed along one axis, that of the copies and of data";
constexpr std::string_view takes_no_turns = "its ranks take no turns over micro-batches";
constexpr std::string_view of_turns = "a copy's gradients are of its turns, not of samples that it alone has";
constexpr std::array conflicts_of_copies{
    Conflict{"shares", When::later, "micro-batches would be of unlike sizes"},
    Conflict{"context", When::later, one_axis_of_sums},
    Conflict{"expert", When::later, one_axis_of_sums},
    Conflict{"spatial", When::later, one_axis_of_sums},
    Conflict{"sequence=on", When::later, one_axis_of_sums},
    Conflict{"groups", When::later, one_axis_of_sums},
    Conflict{"zero", When::later, "pieces of a stage's weights would be its copies'"},
    Conflict{"interleaved", When::never, takes_no_turns},
    Conflict{"pipedream", When::later, "copies of a stage would have to wait for each other's updates"},
    Conflict{"local", When::never, "copies of a stage have the same weights"},
    Conflict{"server", When::later, "each stage of a worker is on one rank"},
    Conflict{"kfac", When::later, "factors are means over the data axis"},
    Conflict{"allreduce=adasum", When::later, of_turns},
    Conflict{"combine=updates", When::later, of_turns},
    Conflict{"compress=fp16", When::later, of_turns},
    Conflict{"compress=1bit", When::later, of_turns},
    Conflict{"compress=top", When::later, of_turns},
    Conflict{"signs=vote", When::later, of_turns},
    Conflict{"bilevel", When::later, of_turns},
};
constexpr std::array needs_tensor{Need{"tensor", "tensor=N", "the tensor ranks are those that hand on a piece each"}};
constexpr std::array pipe_features{
    Feature{"pipe", "pipe=2,data", [](const Asked& a) { return has_axis(a.plan, "pipe"); }},
    Feature{
        "scatter=on", "pipe=2:scatter=on,tensor=2", [](const Asked& a) { return a.plan.scatter; }, {}, needs_tensor},
    Feature{"copies", "pipe=4:copies=2+1+1", [](const Asked& a) { return !a.plan.stage_copies.empty(); },
            conflicts_of_copies},
    Feature{"interleaved", "pipe=2:schedule=interleaved,data",
            [](const Asked& a) { return a.plan.pipeline == "interleaved"; }},
    Feature{"pipedream", "pipe=2:schedule=pipedream,data",
            [](const Asked& a) { return a.plan.pipeline == "pipedream"; }, conflicts_of_pipedream},
};

constexpr std::array conflicts_of_dense{
    Conflict{"tensor", When::never, "it cuts the dense layers along data, so tensor cannot cut them, too"},
};
constexpr std::array dense_features{
    Feature{"dense=shared", "data:dense=shared", [](const Asked& a) { return a.plan.share_dense; }, conflicts_of_dense},
};

constexpr std::array conflicts_of_tables{
    Conflict{"lag=1", When::never, "rows are updated as soon as their gradients have come"},
    Conflict{"pipe", When::later, "tables would lie in the first stage alone"},
    Conflict{"microbatches", When::never, "rows are updated as soon as their gradients have come"},
    Conflict{"microbatch", When::never, "rows are updated as soon as their gradients have come"},
    Conflict{"spatial", When::never, "rows of tables have no pixels"},
    Conflict{"sequence=on", When::never, "rows of tables are no sequence"},
};
constexpr std::array needs_tables{Need{"tables=shared", "tables=shared", "the one rank looks up in its tables, too"}};
constexpr std::array table_features{
    Feature{"tables=shared", "data:tables=shared", [](const Asked& a) { return a.plan.share_tables; },
            conflicts_of_tables},
    Feature{"bottom=one",
            "data:tables=shared:bottom=one",
            [](const Asked& a) { return a.plan.bottom_on_one; },
            {},
            needs_tables},
};

void complete_pipe(Plan& plan) {
    const bool interleaved = plan.pipeline == "interleaved";
    if (plan.chunks > 1 && !interleaved) {
        throw InputError(fmt::format("chunks={} needs schedule=interleaved", plan.chunks));
    }
    if (interleaved && plan.chunks == 1) throw InputError("schedule=interleaved needs at least 2 chunks");
    if (plan.chunks == 0) plan.chunks = interleaved ? 2 : 1;
    const int pipe = axis_index(plan.mesh, "pipe");
    if (pipe < 0 || plan.stage_copies.empty()) return;
    if (plan.stage_copies.size() == 1) {
        throw InputError(
            fmt::format("copies={0}: of one stage, which needs no pipeline: write data={0}, or the copies "
                        "of each stage, like 2+1",
                        plan.stage_copies.front()));
    }
    const std::int64_t all = std::reduce(plan.stage_copies.begin(), plan.stage_copies.end(), std::int64_t{0});
    std::int64_t& size = plan.mesh.axes[at(pipe)].size;
    if (size == 0) size = all;
    if (size != all) {
        throw InputError(fmt::format("copies={}: stages of {} ranks, but pipe={}; write pipe={}",
                                     fmt::join(plan.stage_copies, "+"), all, size, all));
    }
}

/// What `cut` makes; its InputError with the plan's text.
template <typename Cut>
Part of_plan(const Plan& plan, Cut cut) {
    try {
        return cut();
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': {}", plan.text, error.what()));
    }
}

std::optional<Part> cut_tensor(const Network& network, const Plan& plan, Mesh& mesh) {
    const std::int64_t parts = axis_size(mesh, "tensor");
    if (parts == 1) return std::nullopt;
    const bool in_blocks =
        std::ranges::any_of(spatial_axes, [&](const char* name) { return axis_size(mesh, name) > 1; });
    return split_tensor(network,
                        {"tensor", axis_index(mesh, "tensor"), parts, plan.sequence, plan.tensor_split, in_blocks});
}

/// The axes that cut images, and the one that they make together.
std::optional<Part> cut_spatial(const Network& network, const Plan& plan, Mesh& mesh) {
    std::vector<SpatialAxis> axes;
    for (std::size_t dim = 0; dim < spatial_axes.size(); ++dim) {
        const int index = axis_index(mesh, spatial_axes[dim]);
        if (index < 0 || size_of(mesh, index) == 1) continue;
        axes.push_back({spatial_axes[dim], index, size_of(mesh, index), static_cast<std::int64_t>(dim) + 1});
    }
    if (axes.empty()) return std::nullopt;
    const int grid = join(mesh, axes.front().index, axes.back().index);
    return of_plan(plan, [&] { return split_spatial(network, axes, name_of(mesh, grid), plan.methods.get<Edges>()); });
}

std::optional<Part> cut_context(const Network& network, const Plan& plan, Mesh& mesh) {
    const std::int64_t parts = axis_size(mesh, "context");
    if (parts == 1) return std::nullopt;
    const bool ring = plan.methods.get<RingAttention>().on;
    if (ring && plan.keep_attention.value_or(false)) {
        throw InputError(
            fmt::format("--plan '{}': ring=on never has all probabilities of a query: leave out "
                        "attention=kept",
                        plan.text));
    }
    return of_plan(plan, [&] { return split_context(network, {"context", axis_index(mesh, "context"), parts, ring}); });
}

std::optional<Part> cut_experts(const Network& network, const Plan& plan, Mesh& mesh) {
    const int expert = axis_index(mesh, "expert");
    if (expert < 0) return std::nullopt;
    return of_plan(plan, [&] { return share_experts(network, "expert", expert, size_of(mesh, expert)); });
}

std::optional<Part> cut_dense(const Network& network, const Plan& plan, Mesh& mesh) {
    const std::int64_t data = axis_size(mesh, "data");
    if (!plan.share_dense || data == 1) return std::nullopt;
    return share_dense_layers(network, "data", axis_index(mesh, "data"), data);
}

std::optional<Part> cut_tables(const Network& network, const Plan& plan, Mesh& mesh) {
    if (!plan.share_tables) return std::nullopt;
    return share_tables(network, "data", axis_index(mesh, "data"), axis_size(mesh, "data"), plan.bottom_on_one);
}

constexpr PlanAxis tensor{{tensor_words, tensor_features}, cut_tensor, true};
constexpr PlanAxis spatial{{spatial_words, spatial_features}, cut_spatial};
constexpr PlanAxis context{{context_words, context_features}, cut_context, true};
constexpr PlanAxis expert{{expert_words, expert_features}, cut_experts};
constexpr PlanAxis pipe{{pipe_words, pipe_features, complete_pipe}};
constexpr PlanAxis dense{{dense_words, dense_features}, cut_dense};
constexpr PlanAxis tables{{table_words, table_features}, cut_tables};

}  // namespace

std::span<const PlanAxis* const> axes() {
    static constexpr std::array rows{&data, &dense, &tables, &tensor, &spatial, &context, &expert, &pipe};
    return rows;
}

}  // namespace rehearse::schedule
