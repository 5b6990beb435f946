// SPDX-License-Identifier: Apache-2.0
// Limits of networks, precisions and steps: what not even one rank's program can be made of.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/servers.hpp"
#include "core/methods/synchronous.hpp"
#include "core/op_general_visitors.hpp"
#include "core/precision.hpp"
#include "core/ring_attention.hpp"
#include "core/weight_versions.hpp"
#include "kernels/attention_blocks.hpp"
#include "run/fed_inputs.hpp"
#include "run/limits.hpp"
#include "run/limits_finds.hpp"
#include "run/methods/method.hpp"
#include "run/methods/servers.hpp"

namespace rehearse::run {

namespace {

// Samples lie with all inputs of a kind together: who reads pieces of one, or some of them, is not fed.
std::string part_of_inputs(const Asked& asked) {
    for (const bool integers : {false, true}) {
        const std::vector<FedInput> whole = fed_inputs(asked.schedule.network, integers);
        if (whole.size() < 2) continue;
        for (const RankClass& rank_class : asked.schedule.classes) {
            const std::vector<FedInput> own = fed_inputs(rank_class.part.network, integers);
            const bool same = std::ranges::equal(own, whole, {}, &FedInput::op, &FedInput::op);
            if (own.empty() || same) continue;
            return fmt::format("network '{}' has a second input, '{}'", asked.schedule.network.name,
                               asked.schedule.network.layers[at(whole[1].layer)].name);
        }
    }
    return {};
}

std::string priced_only(const Asked& asked) {
    for (const Layer& layer : asked.schedule.network.layers) {
        if (layer.given != nullptr && !layer.given->not_run.empty())
            return fmt::format("layer '{}': {}", layer.name, layer.given->not_run);
    }
    return {};
}

std::string ids_of_another_stage(const Asked& asked) {
    return of_layers(asked.schedule, [](const Part& part, std::size_t i) {
        const Layer& layer = part.network.layers[i];
        const bool fed = !reads_integers(layer.op) ||
                         std::holds_alternative<Input>(part.network.layers[at(layer.inputs.front())].op);
        return words(!fed, fmt::format("layer '{}' reads ids of another stage", layer.name));
    });
}

std::string unsummed_tie(const Asked& asked) {
    return of_layers(asked.schedule, [&](const Part& part, std::size_t i) {
        const int origin = part.origins[i].layer;
        const bool apart = origin >= 0 && part.network.layers[i].weights_of < 0 &&
                           asked.schedule.network.layers[at(origin)].weights_of >= 0;
        return words(apart, fmt::format("layer '{}' shares weights with another stage", part.network.layers[i].name));
    });
}

std::string sums_in_16_bits(const Asked& asked) {
    if (asked.schedule.precision == Precision::fp32) return {};
    return of_layers(asked.schedule, [&](const Part& part, std::size_t i) {
        return words(std::holds_alternative<ChannelSums>(part.network.layers[i].op),
                     fmt::format("layer '{}' sums what spatial cuts in {}", part.network.layers[i].name,
                                 to_string(asked.schedule.precision)));
    });
}

// Whole numbers up to 2^8 are exact in bf16, up to 2^11 in f16.
std::string rows_named_in_16_bits(const Asked& asked) {
    const DataType type = compute_type(asked.schedule.precision);
    if (size_of(type) > Bytes{2}) return {};
    const std::int64_t exact = type == DataType::bf16 ? 256 : 2048;
    return of_layers(asked.schedule, [&](const Part& part, std::size_t i) {
        const auto* op = std::get_if<Rearrangement>(&part.network.layers[i].op);
        if (op == nullptr || !general::of_rows(*op)) return std::string{};
        const std::int64_t rows = (op->kind == "takerows" ? op->inputs[0] : op->output).front();
        return words(rows > exact, fmt::format("layer '{}' names some of {} rows in {}", part.network.layers[i].name,
                                               rows, to_string(type)));
    });
}

std::string of_16_bits(const Asked& asked, bool found, std::string_view what) {
    return words(found && asked.schedule.precision != Precision::fp32,
                 fmt::format("{} in {}", what, to_string(asked.schedule.precision)));
}

std::string no_blocks(const Asked& asked) {
    return of_layers(asked.schedule, [&](const Part& part, std::size_t i) {
        if (ring_of(asked.schedule, part, static_cast<int>(i)) == 1) return std::string{};
        const Layer& layer = part.network.layers[i];
        const std::string_view why = kernels::why_not_in_blocks(std::get<Attention>(layer.op));
        return words(!why.empty(), fmt::format("layer '{}', as {}", layer.name, why));
    });
}

/// The method, if there is one, that does more than sum gradients of one model; else empty.
std::string_view method_of(const Schedule& schedule) {
    for (const MethodRow* row : methods_of(schedule)) {
        if (!row->sums_gradients) return row->name;
    }
    return {};
}

std::string loads(const Asked& asked) {
    for (const RankClass& rank_class : asked.schedule.classes) {
        for (const Step& step : rank_class.steps) {
            if (std::holds_alternative<Load>(step.action)) {
                return fmt::format("step '{}' reads from storage", step.name);
            }
        }
    }
    return {};
}

bool has_factors(const Schedule& schedule) {
    return std::ranges::any_of(schedule.classes, [](const RankClass& rank_class) {
        return std::ranges::any_of(rank_class.steps, [](const Step& step) {
            const auto* push_pull = std::get_if<PushPull>(&step.action);
            return push_pull != nullptr && sends_factors(*push_pull);
        });
    });
}

std::string factors_of_micro_batches(const Asked& asked) {
    return words(has_factors(asked.schedule) && asked.schedule.micro_batches > 1, "dense=vectors with microbatches");
}

std::string factors_of_shares(const Asked& asked) {
    return words(has_factors(asked.schedule) && !asked.schedule.shares.samples.empty(), "dense=vectors with shares");
}

}  // namespace

std::span<const Limit> limits_of_programs() {
    constexpr std::string_view in_f32 = "what they keep and send is f32: choose fp32";
    static const auto rows = std::to_array<Limit>({
        {"several inputs of one kind that a plan cuts, or shares among stages",
         "a rank that reads any of them reads all of them whole, in this version", part_of_inputs, true},
        {"operators of a file in a form that no kernel has", "they are priced; docs/networks.md says which forms run",
         priced_only, true},
        {"a pipeline whose later stage reads ids", "run does not send integers", ids_of_another_stage, true},
        {"weights that two stages share, with zero=3, schedule=pipedream, or three layers",
         "run does not sum their gradients there", unsummed_tie, true},
        {"spatial with batch normalization in 16 bits", "sums of squares do not fit into 16 bits: choose fp32",
         sums_in_16_bits, true},
        {"graphs of many nodes in 16 bits", "numbers of rows are exact to 256 in bf16, to 2048 in f16: choose fp32",
         rows_named_in_16_bits, true},
        {"control, variables=whole",
         "they say what other frameworks add, and are only predicted; leave them out to run",
         [](const Asked& a) {
             return words(a.schedule.methods.get<Synchronous>().control > 0 ||
                              a.schedule.methods.get<Synchronous>().whole_variables,
                          "control or variables=whole");
         },
         true},
        {"loads from storage tiers", "run reads its samples by itself: --data", loads, true},
        {"local, elastic, learners, server, compress=top or 1bit, kfac, bilevel in 16 bits", in_f32,
         [](const Asked& a) { return of_16_bits(a, !method_of(a.schedule).empty(), method_of(a.schedule)); }, true},
        {"ring=on in 16 bits", "what comes by turns is joined in f32: choose fp32",
         [](const Asked& a) { return of_16_bits(a, a.schedule.methods.get<RingAttention>().on, "ring=on"); }, true},
        {"ring=on where a layer's values are no blocks", "leave out ring=on", no_blocks, true},
        {"schedule=pipedream in 16 bits", in_f32,
         [](const Asked& a) {
             const bool each_time = std::ranges::any_of(a.schedule.classes, updates_each_micro_batch);
             return of_16_bits(a, each_time, "schedule=pipedream");
         },
         true},
        {"tables=shared in 16 bits", in_f32,
         [](const Asked& a) { return of_16_bits(a, has_direct_updates(a.schedule), "tables=shared"); }, true},
        {"server with dense=vectors and microbatches", "the server would need the factors of each",
         factors_of_micro_batches, true},
        {"server with kfac=N, N above 1", "weights come once a step: choose kfac=1",
         [](const Asked& a) {
             const bool several =
                 a.schedule.methods.get<Curvature>().period > 1 && a.schedule.methods.get<Averaging>().period == 0;
             return words(several && a.schedule.methods.get<Servers>().count > 0, "server with kfac=N, N above 1");
         },
         true},
        {"server with dense=vectors and shares", "servers multiply factors of as many rows of each worker",
         factors_of_shares, true},
    });
    return rows;
}

}  // namespace rehearse::run
