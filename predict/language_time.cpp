// SPDX-License-Identifier: Apache-2.0
#include "predict/language_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "predict/language_block.hpp"
#include "predict/spread.hpp"

namespace rehearse::predict {

namespace {

// DeepEP's kernels move 153 and 158 of 160 GB/s within a node of H800, and 43 to 47 GB/s between nodes by adapters of
// 50, where rings move 40 (github deepseek-ai/DeepEP, README; calibrate/llm/nodes.csv).
constexpr double of_dispatch_inside = 0.96, of_dispatch_outside = 44.0 / 40;
constexpr double of_all_to_all_outside = 0.75;  // of a ring's rate: many small messages
// That a collective within a node takes whatever it moves: 23 + 9 us of gathers, 26 + 8 of sums on eight B200 (github
// MooreThreads/SimuMax configs/system/b200_bf16_ceperm.json).
constexpr Seconds start{33e-6};
// Cards at their power limit differ by 5 % and more within a node of eight (Bekman, Machine Learning Engineering,
// github stas00/ml-engineering, "Not all accelerators are created equal"), which is the range of eight draws: 2.85
// standard deviations.
constexpr double spread_of_cards = 0.05 / 2.85;
// While weights and gradients pass, their kernels hold processors: 20 of 132 (DeepSeek-V3 2024, section 3.2.2, sets so
// many apart for messages).
constexpr double processors_of_messages = 20.0 / 132;
// Share of a tensor group's messages that asynchronous tensor parallelism hides: PyTorch's whole steps are 8 % shorter
// with it where a quarter of a step is messages (discuss.pytorch.org, "Introducing Async Tensor Parallelism", 2024);
// 8-bit products, beside which they go, take half as long and hide half. Megatron's own, of larger pieces by copy
// engines: assumed.
constexpr double hidden_by_pytorch = 0.3, hidden_by_megatron = 0.7;
// Bytes of an update a weight in f32: gradient, master weight and moments, read and written. PyTorch's also reads
// gradients for their norm and scales them.
constexpr double bytes_of_update = 30, bytes_of_update_pytorch = 40;

double number(std::int64_t value) { return static_cast<double>(value); }

class Messages {
public:
    Messages(const LanguageModel& model, const LanguagePlan& plan, const LanguageBlock& block, const LanguageNode& node)
        : m_(model), p_(plan), node_(node), block_(block) {
        tensor_ = number(p_.tensor);
        rows_ = Bytes{block.tokens() * number(m_.hidden) * block.element()};
    }

    Seconds of_block() const {
        const double c = number(p_.context);
        Seconds sum = p_.tensor > 1 ? of_tensor_group() : Seconds{0};
        // Keys and values of a ring are sent while others are worked on: what is left is the first part.
        if (p_.context > 1) sum += 2 * number(m_.key_heads) / number(m_.heads) / tensor_ * rows_ / c / ring(p_.context);
        return sum;
    }

    // Experts' rows go and come back in each pass, and once more where whole blocks are computed again (AutoModel's
    // apply_ac keeps the router's product alone; Megatron-Core's full granularity keeps nothing).
    Seconds of_experts(std::int64_t index) const {
        const double ways = p_.recompute == Recomputation::full ? 6 : 4;
        return p_.experts > 1 && m_.has_experts(index) ? ways * (of_experts() + start) : Seconds{0};
    }

    // Forward and backward. Megatron's ranks send their share of the rows, DeepSpeed's all of them.
    Seconds between_stages() const {
        const double shares = p_.software == LanguageSoftware::megatron_deepspeed ? 1 : tensor_;
        return p_.pipe == 1 ? Seconds{0} : 2 * rows_ / shares / within(p_.tensor * p_.pipe);
    }

    // Groups of data parallelism stand furthest apart. A node's part of a group goes by the adapters of its devices,
    // never faster than within the node; there, rings of all tensor groups may pass the same links. Members of a group
    // stand `every` devices apart: those that have the same expert as far as there are ranks of experts.
    Seconds of_weights(double weights, double ranks, double every, double bytes) const {
        if (ranks <= 1) return Seconds{0};
        const bool apart = p_.tensor * p_.data * p_.context > node_.half;
        const double reached = !apart ? 1 : p_.tensor > 1 ? node_.several_across : node_.across;
        Bandwidth rate = node_.inside * (reached / (node_.shared ? tensor_ : 1));
        if (p_.tensor * p_.pipe * p_.data * p_.context > node_.devices) {
            const double on_a_node = std::min(ranks, std::max(1.0, number(node_.devices) / every));
            rate = std::min(node_.inside, on_a_node * node_.outside);
        }
        return Bytes{bytes * weights * (ranks - 1) / ranks} / rate;
    }

private:
    // A row goes to each of its experts, or once to each device that has some of them. Where these stand on several
    // nodes it goes once to each node that has some of them and is copied there to the others' devices (DeepEP, and
    // Megatron-Core's dispatcher by it: DeepSeek-V3 2024, section 3.2.2), choices being spread evenly over nodes, or
    // over as many as the router allows a row.
    Seconds of_experts() const {
        const double top = number(m_.top), e = number(p_.experts);
        const Bytes rows = rows_ / tensor_;
        const auto distinct = [top](double places) { return places * (1 - std::pow(1 - 1 / places, top)); };
        const bool once = p_.expert_rows == ExpertRows::once;
        const double copies = once ? distinct(e) : top;
        const Bandwidth inside = (once ? of_dispatch_inside : node_.all_to_all) *
                                 (p_.experts > node_.half ? node_.all_to_all_across : 1) * node_.inside;
        if (p_.experts <= node_.devices) return copies * (e - 1) / e * rows / inside;
        const double nodes = e / number(node_.devices);
        const double allowed = p_.nodes_of_row > 0 ? std::min(nodes, number(p_.nodes_of_row)) : nodes;
        const double sent = p_.expert_rows == ExpertRows::each ? top : distinct(allowed);
        const Bandwidth outside = (once ? of_dispatch_outside : of_all_to_all_outside) * node_.outside;
        return std::max(sent * (nodes - 1) / nodes * rows / outside, copies * rows / inside);
    }

    // Rows are gathered before, and results summed after attention and the feed-forward layer, in each pass. With
    // sequence parallelism what was gathered is not kept: backward gathers twice more. A full recomputation does both
    // again. 8-bit operands are gathered as such unless they are scaled by rows. PyTorch gathers and sums along the
    // first dimension and copies rows before or after (torch.distributed._functional_collectives).
    Seconds of_tensor_group() const {
        const bool full = p_.recompute == Recomputation::full;
        const double gathers = full ? 6 : p_.sequence_parallel ? 5 : 4;
        const double sums = full ? 6 : p_.sequence_parallel && !p_.is_pytorch() ? 5 : 4;
        const bool cast = p_.type == DataType::fp8 && p_.float8 != Float8Scaling::rowwise;
        const Seconds sent = (tensor_ - 1) / tensor_ * rows_ / ring(p_.tensor);
        const Seconds one = sent + (p_.is_pytorch() ? block_.moved(2 * rows_.value) : Seconds{0});
        const double most = p_.is_pytorch() ? hidden_by_pytorch : hidden_by_megatron;
        const double hidden = !p_.async_tensor ? 0 : p_.type == DataType::fp8 ? most / 2 : most;
        return (1 - hidden) * ((gathers * (cast ? 0.5 : 1) + sums) * one + (gathers + sums) * start);
    }

    Bandwidth within(std::int64_t devices) const { return devices <= node_.devices ? node_.inside : node_.outside; }
    Bandwidth ring(std::int64_t devices) const { return (devices > node_.half ? node_.across : 1) * within(devices); }

    const LanguageModel& m_;
    const LanguagePlan& p_;
    const LanguageNode& node_;
    const LanguageBlock& block_;
    double tensor_ = 1;
    Bytes rows_;
};

struct StageTime {
    Seconds compute, messages;
    Seconds both() const { return compute + messages; }
};

StageTime stage_time(const LanguageModel& model, const LanguagePlan& plan, const LanguageBlock& block,
                     const Messages& messages, StageIndex stage) {
    StageTime time;
    Seconds experts{};
    const auto add = [&](std::int64_t index) {
        time.compute += block.block(index).both();
        time.messages += messages.of_block();
        experts += messages.of_experts(index);
    };
    const StageBlocks blocks = blocks_of(model, plan, stage);
    for (std::int64_t i = blocks.first; i < blocks.first + blocks.count; ++i) add(i);
    if (stage + 1 == plan.pipe) {
        time.compute += block.scores().both();
        for (std::int64_t token = 0; token < model.extra_tokens; ++token) {
            add(model.layers - 1);
            time.compute += block.joined_rows().both() + block.scores().both();
        }
    }
    if (plan.experts_beside) {
        const Seconds beside = std::min(experts, time.compute);
        experts = experts - beside + processors_of_messages * beside;
    }
    time.messages += experts + messages.between_stages();
    return time;
}

// How many times as long the slowest card of a plan takes as the cards whose slowest the board's shares contain.
double waiting(const LanguagePlan& plan, const LanguageBoard& board) {
    const auto slowest = [](std::int64_t cards) { return slowest_of(number(cards), number(cards), spread_of_cards); };
    return std::max(1.0, slowest(plan.tensor * plan.pipe * plan.data * plan.context) / slowest(board.cards));
}

// Where gradients are summed beside computation, weights gathered: those of ZeRO 3 beside every micro-batch. Else sums
// begin with the last micro-batch's backward pass and gathers end with the first one's forward pass; of interleaved
// stages all chunks but the last one then have the other chunks' micro-batches, `pipe` in turn, before them.
Seconds room_for_sums(const LanguagePlan& plan, Seconds microbatch) {
    if (plan.zero == 3 && !plan.weights_kept) return number(plan.microbatches) * microbatch;
    const double chunks = number(plan.chunks);
    return std::min(number(plan.microbatches), 1 + number(plan.pipe - 1) * (chunks - 1) / chunks) * microbatch;
}

/// Bytes a weight that gathers and sums of a step move between ranks, and that their copies move in memory.
struct WeightBytes {
    double sent = 0, copied = 0;
};

WeightBytes weight_bytes(const LanguagePlan& plan, double element) {
    if (plan.zero < 3) {
        const double summed = plan.half_sums ? element : 4;
        return {plan.zero == 0 ? 2 * summed : summed + element, 0};
    }
    // Gathered for each pass of a micro-batch, tensor-wise in 8 bits; summed in f32 by FSDP2, as they are by FSDP1.
    // FSDP2 copies what it gathered to the weights' places (read, written), gradients to one buffer (2 read, 4
    // written); FSDP1's weights are views, gradients are added into one.
    const bool second = plan.software == LanguageSoftware::pytorch;
    const bool cast = second && plan.type == DataType::fp8 && plan.float8 == Float8Scaling::tensorwise;
    const double gathered = cast ? 1 : element;
    const double count = plan.weights_kept ? 1 : number(plan.microbatches);
    return {count * ((plan.weights_kept ? 1 : 2) * gathered + (second ? 4 : element)),
            count * (second ? 4 * gathered + 6 : 3 * element)};
}

}  // namespace

Seconds total(const LanguageTime& time) {
    return time.compute + time.messages + time.bubble + time.gradients + time.update;
}

LanguageTime language_time(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device,
                           const LanguageNode& node) {
    if (device.tiles == nullptr || !device.peak.contains(plan.type))
        throw InputError(fmt::format("device '{}' has no [device.tiles] or no peak of {}: a closed form needs both",
                                     device.name, to_string(plan.type)));
    const LanguageBlock block{model, plan, device, node.board};
    const Messages messages{model, plan, block, node};
    StageTime slowest;
    Seconds all{};
    double dense = 0, experts = 0, cast = 0;
    for (StageIndex stage{0}; stage < plan.pipe; ++stage) {
        const StageTime time = stage_time(model, plan, block, messages, stage);
        all += time.both();
        if (time.both() > slowest.both()) slowest = time;
        const BlockWeights weights = stage_weights(model, plan, stage);
        dense = std::max(dense, weights.dense);
        experts = std::max(experts, weights.experts);
        double products = 0;
        const StageBlocks blocks = blocks_of(model, plan, stage);
        for (std::int64_t i = blocks.first; i < blocks.first + blocks.count; ++i) {
            const BlockWeights some = weights_of(model, plan, i);
            products += some.dense + some.experts;
        }
        cast = std::max(cast, products);
    }
    LanguageTime result;
    const Seconds computed = number(plan.microbatches) * slowest.compute;
    result.compute = waiting(plan, node.board) * computed;
    result.messages = number(plan.microbatches) * slowest.messages;
    result.bubble = (all - slowest.both()) * (1 / number(plan.chunks));
    const double ranks = plan.ranks_of_weights(), replicas = plan.replicas_of_expert();
    const WeightBytes bytes = weight_bytes(plan, block.element());
    const double tensor = number(plan.tensor), every = std::max(tensor, number(plan.experts));
    const Seconds sums = messages.of_weights(dense, ranks, tensor, bytes.sent) +
                         messages.of_weights(experts, replicas, every, bytes.sent);
    const Seconds room = room_for_sums(plan, slowest.compute);
    const Seconds beside = plan.zero == 3 ? processors_of_messages * std::min(sums, computed) : Seconds{0};
    result.gradients = plan.overlap ? std::max(Seconds{0}, sums - room) + beside : sums;
    result.gradients += block.moved(bytes.copied * (dense + experts));
    const double shares = plan.zero >= 1 ? ranks : 1, expert_shares = plan.zero >= 1 ? replicas : 1;
    const double touched =
        (plan.is_pytorch() ? bytes_of_update_pytorch : bytes_of_update) * (dense / shares + experts / expert_shares);
    // Read in 16 bits and written both ways.
    const double casts = plan.casts_weights_once() ? 4 * cast : 0;
    result.update = block.moved(touched + (plan.zero == 3 ? 0 : 4 * (dense + experts)) + casts);
    return result;
}

}  // namespace rehearse::predict
