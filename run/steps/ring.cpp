// SPDX-License-Identifier: Apache-2.0
#include "run/steps/ring.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::run {

namespace {

using kernels::BlockRows;

/// Rows of queries, keys or values in a layer's inputs, packed or one by one.
struct Lying {
    std::size_t input = 0;
    std::int64_t first = 0, width = 0, row = 0;  // of a row, in elements
};
struct Parts {
    Lying q, k, v;
};
Parts parts_of(const Attention& op) {
    const std::int64_t q = query_width(op), k = key_width(op), v = value_width(op), all = q + k + v;
    if (!op.packed) return {{0, 0, q, q}, {1, 0, k, k}, {2, 0, v, v}};
    return {{0, 0, q, all}, {0, q, k, all}, {0, q + k, v, all}};
}

void copy_rows(std::int64_t count, std::int64_t width, BlockRows<const float> from, BlockRows<float> to) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::copy_n(from.data + i * from.row, width, to.data + i * to.row);
    }
}

/// In a block, all samples' keys come before their values.
template <typename T>
std::pair<BlockRows<T>, BlockRows<T>> keys_and_values(const Attention& op, std::int64_t samples, T* block) {
    return {{block, key_width(op)}, {block + samples * op.keys * key_width(op), value_width(op)}};
}

}  // namespace

Ring::Ring(RankContext& rank, GradientSums& gradients) : rank_(rank), gradients_(gradients) {
    std::int64_t block = 0, queries = 0;
    for (std::size_t i = 0; i < rank.part().network.layers.size(); ++i) {
        if (!has(static_cast<int>(i))) continue;
        const auto& op = std::get<Attention>(rank.part().network.layers[i].op);
        block = std::max(block, rank.micro_batch() * ring_block(op));
        queries = std::max(queries, rank.micro_batch() * op.queries * query_width(op));
    }
    if (block == 0) return;
    own_ = rank.coordinates[at(axis_index(rank.schedule.mesh, "context"))];
    for (std::vector<float>* two : {&keys_, &sums_, &made_}) two->resize(at(2 * block));
    diff_queries_.resize(at(queries));
}

bool Ring::has(int layer) const { return ring_of(rank_.schedule, rank_.part(), layer) > 1; }

Ring::Of Ring::of(int layer, int micro_batch) const {
    return {std::get<Attention>(rank_.part().network.layers[at(layer)].op), layer, micro_batch,
            ring_of(rank_.schedule, rank_.part(), layer)};
}

// Steps of a layer's pass come as ring_turns has them, once more where the backward pass computes it again.
RingTurn Ring::next(const Of& of, Pass pass) {
    const std::vector<RingTurn> turns = ring_turns(pass, of.ranks);
    return turns[next_[{of.layer, of.micro_batch, pass}]++ % turns.size()];
}

float* Ring::log_sums(const Of& of) {
    std::vector<float>& sums =
        log_sums_[{of.layer, turn_of(rank_.rank_class, of.micro_batch) % rank_.rank_class.slots}];
    sums.resize(at(rank_.micro_batch() * of.op.heads * of.op.queries));
    return sums.data();
}

kernels::AttentionBlock Ring::block(const Of& of, int turn) const {
    const Parts parts = parts_of(of.op);
    const auto& inputs = rank_.part().network.layers[at(of.layer)].inputs;
    const auto rows = [&](const Lying& lying) {
        const kernels::ConstView input = rank_.tensors.layer(inputs[lying.input], of.micro_batch).output;
        return BlockRows<const float>{input.data() + lying.first, lying.row};
    };
    const std::int64_t samples = rank_.micro_batch(), from = (own_ - turn + of.ranks) % of.ranks;
    Attention op = of.op;
    op.packed = false;
    kernels::AttentionBlock block{.op = op,
                                  .batch = samples,
                                  .strictly = op.causal && from > own_,
                                  .q = rows(parts.q),
                                  .k = rows(parts.k),
                                  .v = rows(parts.v)};
    if (turn == 0) return block;
    const float* const come = keys_.data() + turn % 2 * samples * ring_block(op);
    std::tie(block.k, block.v) = keys_and_values(op, samples, come);
    return block;
}

void Ring::prepare(ReadyStep& ready, const Compute& compute) {
    const Of of = this->of(compute.layer, compute.micro_batch);
    const RingTurn turn = next(of, compute.problem.pass);
    require(turn.what == RingTurn::What::attend, "a ring's steps are in their order");
    const LayerTensors own = rank_.tensors.layer(compute.layer, compute.micro_batch);
    const kernels::AttentionBlock block = this->block(of, turn.turn);
    const std::int64_t width = result_width(of.op), samples = rank_.micro_batch();
    float* const sums = log_sums(of);
    if (compute.problem.pass == Pass::forward) {
        const BlockRows<float> dst{own.output.data(), width};
        ready.before = [block, first = turn.turn == 0, dst, sums] {
            kernels::attend_to_block(block, first, dst, sums);
        };
        return;
    }
    const BlockRows<float> queries{diff_queries_.data(), query_width(of.op)};
    const auto [k, v] = keys_and_values(of.op, samples, made_.data() + turn.turn % 2 * samples * ring_block(of.op));
    const kernels::BlockGradients tensors{.dst = {own.output.data(), width},
                                          .diff_dst = {own.diff.data(), width},
                                          .log_sums = sums,
                                          .diff_q = queries,
                                          .diff_k = k,
                                          .diff_v = v};
    const std::int64_t cleared = turn.turn == 0 ? samples * of.op.queries * queries.row : 0;
    ready.before = [block, tensors, cleared] {
        std::fill_n(tensors.diff_q.data, cleared, 0.0F);
        kernels::gradients_of_block(block, tensors);
    };
}

void Ring::prepare(ReadyStep& ready, const Communicate& communicate) {
    const Of of = this->of(communicate.layer(), communicate.micro_batch);
    const RingTurn turn = next(of, communicate.pass);
    require(turn.what != RingTurn::What::attend, "a ring's steps are in their order");
    if (turn.what == RingTurn::What::keys) return hand_keys_on(ready, of, turn.turn);
    hand_gradients_on(ready, of, turn.turn);
}

// What comes with turn t lies in the block t % 2; the rank's own are laid there for the first one.
void Ring::hand_keys_on(ReadyStep& ready, const Of& of, int turn) {
    const std::int64_t samples = rank_.micro_batch(), size = samples * ring_block(of.op);
    float* const blocks = keys_.data();
    ready.data = std::span{blocks, at(2 * size)};
    if (turn > 1) return;
    const auto [k, v] = keys_and_values(of.op, samples, blocks);
    ready.before = [own = block(of, 0), k = k, v = v, rows = samples * of.op.keys] {
        copy_rows(rows, k.row, own.k, k);
        copy_rows(rows, v.row, own.v, v);
    };
}

// The sum so far has come into the second block.
void Ring::hand_gradients_on(ReadyStep& ready, const Of& of, int turn) {
    const std::int64_t size = rank_.micro_batch() * ring_block(of.op);
    ready.data = std::span{sums_.data(), at(2 * size)};
    const float* const made = made_.data() + (turn - 1) % 2 * size;
    ready.before = [made, size, sent = sums_.data(), first = turn == 1] {
        for (std::int64_t i = 0; i < size; ++i) sent[i] = first ? made[i] : sent[size + i] + made[i];
    };
    if (turn == of.ranks) give_gradients(ready, of);
}

// They have come home; those of the queries have been there all the time.
void Ring::give_gradients(ReadyStep& ready, const Of& of) {
    const std::int64_t samples = rank_.micro_batch(), size = samples * ring_block(of.op);
    const std::size_t inputs = rank_.part().network.layers[at(of.layer)].inputs.size();
    std::vector<kernels::View> diffs;
    for (std::size_t i = 0; i < inputs; ++i) {
        diffs.push_back(gradients_.give_received(ready, of.layer, static_cast<int>(i), of.micro_batch));
    }
    const float* const home = sums_.data() + size;
    ready.after = [op = of.op, samples, diffs, home, queries = diff_queries_.data()] {
        const auto give = [&](const Lying& to, std::int64_t rows, BlockRows<const float> from) {
            const kernels::View diff = diffs[to.input];
            if (!diff.empty()) copy_rows(samples * rows, to.width, from, {diff.data() + to.first, to.row});
        };
        const Parts parts = parts_of(op);
        const auto [k, v] = keys_and_values(op, samples, home);
        give(parts.q, op.queries, {queries, query_width(op)});
        give(parts.k, op.keys, k);
        give(parts.v, op.keys, v);
    };
}

}  // namespace rehearse::run
