// SPDX-License-Identifier: Apache-2.0
// The axes of a plan: their words, what they do not go with, and what each makes of a part of the network.
#include "schedule/axes/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/ring_attention.hpp"
#include "core/text.hpp"
#include "schedule/axes/context.hpp"
#include "schedule/axes/experts.hpp"
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
void read_dense(Plan& plan, std::string_view value) {
    plan.share_dense = read_choice("dense", value, "copied", "shared");
}
void read_tables(Plan& plan, std::string_view value) {
    plan.share_tables = read_choice("tables", value, "copied", "shared");
}
void read_bottom(Plan& plan, std::string_view value) {
    plan.bottom_on_one = read_choice("bottom", value, "copied", "one");
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
    Conflict{"tables=shared", When::never, "rows of tables are no sequence"},
    Conflict{"local", When::never, "gradients of shared tokens are sums"},
    Conflict{"dense=vectors", When::never, "gradients of shared tokens are sums"},
};
constexpr std::array conflicts_of_ring{
    Conflict{"sequence=on", When::later, "pieces of what ranks have by turns would lie in another order"},
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
    Conflict{"dense=shared", When::never, "ranks share experts, and no dense layer"},
    Conflict{"shares", When::never, "ranks exchange as many slots with each other"},
    Conflict{"local", When::never, "there is one model"},
};
constexpr std::array expert_features{
    Feature{"expert", "data,expert=2", [](const Asked& a) { return has_axis(a.plan, "expert"); }, conflicts_of_expert},
};

constexpr std::array conflicts_of_dense{
    Conflict{"tensor", When::never, "it cuts the dense layers along data, so tensor cannot cut them, too"},
};
constexpr std::array dense_features{
    Feature{"dense=shared", "data:dense=shared", [](const Asked& a) { return a.plan.share_dense; }, conflicts_of_dense},
};

constexpr std::array conflicts_of_tables{
    Conflict{"lag=1", When::never, "rows are updated as soon as their gradients have come"},
    Conflict{"microbatches", When::never, "rows are updated as soon as their gradients have come", "pipe",
             "let them go through stages: pipe=N"},
    Conflict{"microbatch", When::never, "rows are updated as soon as their gradients have come", "pipe",
             "let them go through stages: pipe=N"},
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

/// The axis of the ranks that share tables: all with samples of their own, so that of tables, too, there is one of
/// each.
int axis_of_tables(const Plan& plan, Mesh& mesh) {
    const int data = axis_index(mesh, "data"), expert = axis_index(mesh, "expert");
    if (axis_size(mesh, "expert") == 1) return data;
    const int first = std::min(data, expert), last = std::max(data, expert);
    for (int between = first + 1; between < last; ++between) {
        if (size_of(mesh, between) == 1) continue;
        throw InputError(
            fmt::format("--plan '{}': tables are shared along 'data' and 'expert' together, so no other axis may stand "
                        "between them; move '{}'",
                        plan.text, name_of(mesh, between)));
    }
    return join(mesh, first, last);
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

/// The axis of the ranks that have pieces of a sequence: of a context rank's block each tensor rank has one.
int axis_of_pieces(const Plan& plan, Mesh& mesh) {
    const int context = axis_index(mesh, "context"), tensor = axis_index(mesh, "tensor");
    if (axis_size(mesh, "tensor") == 1) return -1;
    if (tensor != context + 1) {
        throw InputError(
            fmt::format("--plan '{}': with sequence=on each tensor rank has a piece of a context rank's tokens: write "
                        "'tensor' right behind 'context'",
                        plan.text));
    }
    return join(mesh, context, tensor);
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
    const int context = axis_index(mesh, "context");
    const int pieces = plan.sequence ? axis_of_pieces(plan, mesh) : -1;
    return of_plan(plan, [&] { return split_context(network, {"context", context, parts, ring, pieces}); });
}

std::optional<Part> cut_experts(const Network& network, const Plan& plan, Mesh& mesh) {
    const std::int64_t parts = axis_size(mesh, "expert");
    if (parts == 1) return std::nullopt;
    return of_plan(plan, [&] { return share_experts(network, "expert", axis_index(mesh, "expert"), parts); });
}

std::optional<Part> cut_dense(const Network& network, const Plan& plan, Mesh& mesh) {
    const std::int64_t data = axis_size(mesh, "data");
    if (!plan.share_dense || data == 1) return std::nullopt;
    return share_dense_layers(network, "data", axis_index(mesh, "data"), data);
}

std::optional<Part> cut_tables(const Network& network, const Plan& plan, Mesh& mesh) {
    if (!plan.share_tables) return std::nullopt;
    const int axis = axis_of_tables(plan, mesh);
    return share_tables(network, name_of(mesh, axis), axis, size_of(mesh, axis), plan.bottom_on_one);
}

constexpr PlanAxis tensor{{tensor_words, tensor_features}, cut_tensor, true};
constexpr PlanAxis spatial{{spatial_words, spatial_features}, cut_spatial};
constexpr PlanAxis context{{context_words, context_features}, cut_context, true};
constexpr PlanAxis expert{{expert_words, expert_features}, cut_experts};
constexpr PlanAxis dense{{dense_words, dense_features}, cut_dense};
constexpr PlanAxis tables{{table_words, table_features}, cut_tables};

}  // namespace

std::span<const PlanAxis* const> axes() {
    static constexpr std::array rows{&data, &dense, &tables, &tensor, &spatial, &context, &expert, &pipe};
    return rows;
}

}  // namespace rehearse::schedule
