// SPDX-License-Identifier: Apache-2.0
// The axes beside data: layers, images, stages, groups and servers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "schedule/axes/orders.hpp"
#include "schedule/plan_words.hpp"

namespace rehearse::schedule {

namespace {

void read_tensor(Plan& plan, std::string_view size) { add_axis(plan, "tensor", size); }
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
void read_cut(Plan& plan, std::string_view value) {
    if (value != "prices" && value != "blocks") throw InputError(fmt::format("cut={}: write prices or blocks", value));
    plan.cut_by_blocks = value == "blocks";
}

void read_chunks(Plan& plan, std::string_view value) { plan.chunks = read_count("chunks", value, 1000); }

void read_servers(Plan& plan, std::string_view value) {
    plan.servers.count = value.empty() ? unknown_servers : read_count("server", value, most_micro_batches);
}
void read_groups(Plan& plan, std::string_view size) { add_axis(plan, "groups", size); }
void read_place(Plan& plan, std::string_view value) {
    if (value != "apart" && value != "beside") throw InputError(fmt::format("place={}: write apart or beside", value));
    plan.servers.shared = value == "beside";
}
void read_copies(Plan& plan, std::string_view value) { plan.servers.copies = read_count("copies", value, 100); }
void read_quorum(Plan& plan, std::string_view value) { plan.servers.quorum = read_share("quorum", value, 1); }
void read_server_dense(Plan& plan, std::string_view value) {
    if (value != "gradients" && value != "vectors") {
        throw InputError(fmt::format("dense={}: write gradients or vectors", value));
    }
    plan.send_vectors = value == "vectors";
}

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

constexpr std::array table{
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
    Word{{"recompute", "on|off|blocks|attention", recompute_text, "tensor"}, read_recompute},
    Word{{"attention", "fused|kept", attention_text, "tensor"}, read_attention},
    Word{{"spatial",
          "N|NxN|NxNxN",
          "ranks share each image: N along the first dimension (height, of volumes depth), or a grid of them",
          {}},
         read_spatial},
    Word{{"expert",
          "N",
          "N ranks, each on its share of the batch, share the experts of mixtures (GShard, Whale's M6): an all-to-all "
          "before and after these",
          {}},
         read_expert},
    Word{{"microbatches", "N", "the batch in N parts, gradients added up; default 1", "expert"}, read_micro_batches},
    Word{{"recompute", "on|off|blocks|attention", recompute_text, "expert"}, read_recompute},
    Word{{"attention", "fused|kept", attention_text, "expert"}, read_attention},
    Word{{"groups", "N", "of a run with servers: N groups, each of which sums its gradients along data first", {}},
         read_groups},
    Word{{"server",
          "N",
          "N servers keep the weights; each data rank, or each group, gives gradients and gets weights without waiting "
          "for the others",
          {}},
         read_servers},
    Word{{"place", "apart|beside", "servers have devices of their own, or share the ranks'; default apart", "server"},
         read_place},
    Word{{"copies", "N", "each weight is on N servers, which follow the first; default 1", "server"}, read_copies},
    Word{{"quorum", "X", "an epoch ends when the share X of the groups is through (Adam: 0.75); default 1", "server"},
         read_quorum},
    Word{
        {"dense", "gradients|vectors",
         "vectors: of a dense layer its inputs and errors are sent, where that is less, and the server multiplies them",
         "server"},
        read_server_dense},
    Word{{"pipe", "N", "N stages of consecutive layers, balanced by their prices", {}}, read_pipe},
    Word{{"schedule", "1f1b|gpipe|interleaved|pipedream",
          "in which order a stage takes the micro-batches; default 1f1b", "pipe"},
         read_pipeline},
    Word{{"microbatches", "N", "the batch in N parts; default as many as stages", "pipe"}, read_micro_batches},
    Word{{"microbatch", "N", "the batch in parts of N samples, instead of microbatches", "pipe"}, read_micro_batch},
    Word{{"chunks", "N", "parts of the network a stage holds, of schedule=interleaved; default 2", "pipe"},
         read_chunks},
    Word{{"recompute", "on|off|blocks|attention", recompute_text, "pipe"}, read_recompute},
    Word{{"attention", "fused|kept", attention_text, "pipe"}, read_attention},
    Word{{"cut", "prices|blocks",
          "where stages end: the costliest costs least; equally many blocks each; default prices", "pipe"},
         read_cut},
};

}  // namespace

std::span<const Word> other_words() { return table; }

}  // namespace rehearse::schedule
