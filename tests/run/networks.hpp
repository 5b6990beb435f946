// SPDX-License-Identifier: Apache-2.0
// Networks and schedules for tests of run.
#pragma once

#include <string>
#include <string_view>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "core/rotary.hpp"
#include "models/builder.hpp"
#include "models/models.hpp"
#include "models/zoo/transformer.hpp"
#include "schedule/plan.hpp"

namespace rehearse::test {

inline int add(Network& network, std::string name, Op op, std::vector<int> inputs) {
    Shape output = output_shape(op);
    const int block = block_called(network, name);
    network.layers.push_back({std::move(name), std::move(op), std::move(inputs), std::move(output), -1, block});
    return static_cast<int>(network.layers.size()) - 1;
}

/// Every way in which outputs are shared: `a` is read by four layers (one of them reads it through a Flatten's equal, a
/// Concat twice), branches meet again in an Add and a Concat, and a layer without weights reads the input.
///   input -> conv a -> bn -> relu r -> conv b -> sum -> cat(sum, r, pooled input) -> flatten -> fc -> loss
///                              `-----------------^ ^
///                              `-- conv c ---------'
inline Network branches() {
    Network n{.name = "branches", .layers = {}};
    const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    const auto conv = [&](std::int64_t channels) {
        return Conv{.channels = channels, .height = 6, .width = 6, .filters = 4, .window = same, .bias = true};
    };
    const int input = add(n, "input", Input{{2, 6, 6}}, {});
    const int a = add(n, "a", conv(2), {input});
    const int bn = add(n, "bn", BatchNorm{4, 6, 6}, {a});
    const int r = add(n, "r", Activation{Nonlinearity::relu, {4, 6, 6}}, {bn});
    const int b = add(n, "b", conv(4), {r});
    const int c = add(n, "c", conv(4), {r});
    const int sum = add(n, "sum", Add{{4, 6, 6}, 3}, {b, c, r});
    const int pool = add(n, "pool", rehearse::Pool{PoolKind::average, 2, 6, 6, same}, {input});
    const int cat = add(n, "cat", Concat{{4, 4, 2}, 6, 6}, {sum, r, pool});
    const int flat = add(n, "flatten", Flatten{{10, 6, 6}}, {cat});
    const int fc = add(n, "fc", MatMul{.m = 1, .n = 3, .k = 360}, {flat});
    add(n, "loss", SoftmaxLoss{3}, {fc});
    n.state = 8;
    check(n);
    return n;
}

inline Network dropping() {
    Network n{.name = "dropping", .layers = {}};
    int at = add(n, "input", Input{{32}}, {});
    at = add(n, "fc1", MatMul{.m = 1, .n = 64, .k = 32}, {at});
    at = add(n, "relu", Activation{Nonlinearity::relu, {64}}, {at});
    at = add(n, "drop", Dropout{{64}, 0.5}, {at});
    at = add(n, "fc2", MatMul{.m = 1, .n = 10, .k = 64}, {at});
    add(n, "loss", SoftmaxLoss{10}, {at});
    check(n);
    return n;
}

/// Volumes: convolution, strided convolution, batch norm, both pools.
inline Network volumes() {
    models::NetworkBuilder b("volumes", {2, 6, 6, 6});
    int at = b.conv("conv1", models::NetworkBuilder::input, 4, models::cube(3, 1, 1), true);
    at = b.max_pool("pool", b.relu("relu1", b.batch_norm("bn", at)), models::cube(2, 2));
    at = b.relu("relu2", b.conv("conv2", at, 5, models::cube(2, 1, 1)));
    b.loss(b.dense("fc", b.flatten("flatten", b.global_average_pool("mean", at)), 3));
    return b.build();
}

/// Images that ranks can share: statistics of whole images, windows that overlap and that skip rows, a shortcut,
/// dropout, a mean over all pixels.
inline Network images() {
    models::NetworkBuilder b("images", {2, 8, 8});
    int at = b.conv("conv1", models::NetworkBuilder::input, 4, models::square(3, 1, 1), true);
    at = b.max_pool("pool", b.relu("relu1", b.batch_norm("bn1", at)), models::square(3, 2, 1));
    const int shortcut = b.conv("shortcut", at, 6, models::square(1, 2));
    at = b.conv("conv2", b.dropout("drop", at, 0.75), 6, models::square(3, 2, 1));
    at = b.relu("relu2", b.add("sum", b.batch_norm("bn2", at), shortcut));
    b.loss(b.dense("fc", b.flatten("flatten", b.global_average_pool("mean", at)), 3));
    return b.build();
}

/// Volumes down and up again with a skip, one label a voxel.
inline Network small_unet() {
    models::NetworkBuilder b("small-unet", {2, 4, 4, 4});
    const auto conv = [&](const std::string& name, int from, std::int64_t filters) {
        const int x = b.conv(name, from, filters, models::cube(3, 1, 1), true);
        return b.relu(name + ".relu", b.batch_norm(name + ".bn", x));
    };
    const int skip = conv("down", models::NetworkBuilder::input, 3);
    const int low = conv("low", b.max_pool("pool", skip, models::cube(2, 2)), 4);
    const int up = b.conv_transpose("up", low, 3, models::cube(2, 2));
    b.pixel_loss(b.conv("scores", conv("join", b.concat("concat", {up, skip}), 3), 3, models::cube(1), true));
    return b.build();
}

/// Convolutions without padding, whose blocks move on by less than the ranks' rows.
inline Network shrinking() {
    models::NetworkBuilder b("shrinking", {1, 10, 10, 10});
    int at = b.relu("relu1", b.conv("conv1", models::NetworkBuilder::input, 3, models::cube(3), true));
    at = b.relu("relu2", b.conv("conv2", b.average_pool("pool1", at, models::cube(2, 2)), 4, models::cube(3), true));
    b.loss(b.dense("fc", b.flatten("flatten", at), 3));
    return b.build();
}

/// Down and up again with a skip, one label a pixel, its classes weighed; dilated, transposed, resized.
inline Network encoder_decoder() {
    models::NetworkBuilder b("encoder-decoder", {2, 8, 12});
    Window dilated = models::square(3, 1, 2);
    dilated.dilation_h = dilated.dilation_w = 2;
    const int skip = b.relu("relu1", b.conv("conv1", models::NetworkBuilder::input, 4, models::square(3, 1, 1), true));
    int at = b.relu("relu2", b.conv("conv2", b.max_pool("pool", skip, models::square(2, 2)), 6, dilated));
    const int up = b.conv_transpose("up", at, 4, models::square(2, 2), true);
    const int large = b.resize("resize", b.conv("narrow", at, 3, models::square(1)), 8, 12);
    at = b.concat("concat", {up, large, skip});
    b.pixel_loss(b.conv("scores", at, 3, models::square(1), true), {1, 2, 0.5});
    return b.build();
}

inline Network tiny_transformer(models::TransformerKind kind, double keep = 1) {
    return models::transformer({.name = "tiny",
                                .kind = kind,
                                .layers = 2,
                                .hidden = 16,
                                .heads = 2,
                                .vocabulary = 23,
                                .positions = 9,
                                .segments = 2,
                                .keep = keep},
                               8);
}

/// A decoder of sequences whose tokens, positions and heads 2 or 4 ranks can share.
inline Network tiny_decoder() {
    return models::transformer({.name = "tiny-decoder",
                                .kind = models::TransformerKind::decoder,
                                .layers = 2,
                                .hidden = 16,
                                .heads = 4,
                                .vocabulary = 24,
                                .positions = 8},
                               8);
}

/// As tiny_decoder, with four experts in place of each block's dense layers.
inline Network tiny_mixture() {
    return models::transformer({.name = "tiny-mixture",
                                .kind = models::TransformerKind::decoder,
                                .layers = 2,
                                .hidden = 16,
                                .heads = 4,
                                .vocabulary = 24,
                                .positions = 8,
                                .experts = 4},
                               8);
}

/// A language network whose scores have weights of their own, and not the transpose of the table of tokens.
inline Network untied(Network n) {
    n.name += "-untied";
    for (Layer& layer : n.layers) {
        auto* const dense = std::get_if<MatMul>(&layer.op);
        if (dense == nullptr || !dense->tied) continue;
        dense->tied = false;
        layer.weights_of = -1;
    }
    check(n);
    return n;
}

/// Two operators with trained shares, twice by the same ones, and a third that adds nothing.
inline Network mixed() {
    Network n{.name = "mixed", .layers = {}};
    int at = add(n, "input", Input{{16}}, {});
    const int all = add(n, "shares", Parameter{{2, 3}}, {});
    const int softmax = add(n, "softmax", SoftmaxAlong{{2, 3}, 1}, {all});
    for (const std::string edge : {"a", "b", "c"}) {
        std::vector<int> rows;
        rows.push_back(add(n, edge + ".dense", MatMul{.m = 1, .n = 16, .k = 16}, {at}));
        rows.push_back(add(n, edge + ".tanh", Activation{Nonlinearity::tanh, {16}}, {at}));
        for (int& row : rows)
            row = add(n, n.layers[static_cast<std::size_t>(row)].name + ".row", Flatten{{16}, {1, 16}}, {row});
        const Rearrangement join{.kind = "join", .inputs = {{1, 16}, {1, 16}}, .output = {2, 16}, .numbers = {0}};
        const int stack = add(n, edge + ".join", join, rows);
        const std::int64_t row = edge == "b" ? 1 : 0;
        const Rearrangement own{.kind = "slice", .inputs = {{2, 3}}, .output = {1, 2}, .numbers = {row, 1, 1, 1}};
        const int shares = add(n, edge + ".shares", own, {softmax});
        at = add(n, edge + ".mixed", BatchedMatMul{{1, 2}, {2, 16}}, {shares, stack});
        at = add(n, edge, Flatten{{1, 16}, {16}}, {at});
    }
    at = add(n, "end", MatMul{.m = 1, .n = 16, .k = 16}, {at});
    add(n, "loss", SoftmaxLoss{16}, {at});
    check(n);
    return n;
}

/// The network with its scores multiplied by a trained number that stands beside the samples.
inline Network with_share(Network n) {
    const Layer loss = n.layers.back();
    n.layers.pop_back();
    const int scores = loss.inputs.front();
    const Shape shape = n.layers[static_cast<std::size_t>(scores)].output;
    const int share = add(n, "share", Parameter{{1}}, {});
    const Elementwise product{.function = "mul", .shape = shape, .inputs = {shape, {1}}};
    add(n, loss.name, loss.op, {add(n, "shared", product, {scores, share})});
    check(n);
    return n;
}

/// Four heads of queries for two of keys and values, turned by their places.
inline Network grouped_heads() {
    Network n{.name = "grouped-heads", .layers = {}};
    const int input = add(n, "input", Input{{8, 12}}, {});
    const auto dense = [&](const std::string& name, int from, std::int64_t features) {
        return add(n, name, MatMul{.m = 8, .n = features, .k = n.layers[static_cast<std::size_t>(from)].output.back()},
                   {from});
    };
    const auto turned = [&](const std::string& name, int from, std::int64_t heads) {
        return add(n, name, rotary({8, 4 * heads}, {.size = 4, .turned = 4, .base = 100}, heads, {{8, 4}}), {from});
    };
    const int q = turned("turned_q", dense("q", input, 16), 4), k = turned("turned_k", dense("k", input, 8), 2);
    const Attention op{.heads = 4, .queries = 8, .keys = 8, .head_size = 4, .causal = true, .key_heads = 2};
    const int made = add(n, "attention", op, {q, k, dense("v", input, 8)});
    add(n, "loss", SoftmaxLoss{.classes = 5, .rows = 8}, {dense("scores", made, 5)});
    check(n);
    return n;
}

/// Numbers through a dense layer, ids through tables; their dot products through another.
inline Network tiny_dlrm(std::int64_t bags = 3) {
    Network n{.name = "tiny-dlrm", .layers = {}};
    const int input = add(n, "input", Input{{6}}, {});
    const int dense = add(n, "dense", MatMul{.m = 1, .n = 4, .k = 6}, {input});
    const int ids = add(n, "ids", Input{{bags * 5}, 50}, {});
    const int tables = add(n, "tables", EmbeddingBag{bags, 5, 50, 4}, {ids});
    const int both = add(n, "interaction", Interaction{bags + 1, 4}, {dense, tables});
    const MatMul scores{.m = 1, .n = 2, .k = 4 + (bags + 1) * bags / 2};
    add(n, "loss", SoftmaxLoss{2}, {add(n, "scores", scores, {both})});
    check(n);
    return n;
}

/// Four tokens of four values for four experts.
inline Network mixture() {
    const Routing routing{.tokens = 4, .width = 4, .experts = 4, .capacity = 2, .group = 1};
    Network n{.name = "mixture", .layers = {}};
    const int input = add(n, "input", Input{{4, 4}}, {});
    const int gate = add(n, "gate", MatMul{4, 4, 4, false}, {input});
    int at = add(n, "dispatch", DispatchTokens{routing}, {input, gate});
    at = add(n, "up", GroupedMatMul{.experts = 4, .rows = 2, .n = 6, .k = 4, .group = 1}, {at});
    at = add(n, "down", GroupedMatMul{.experts = 4, .rows = 2, .n = 4, .k = 6, .group = 1, .bias = false}, {at});
    at = add(n, "combine", CombineTokens{routing}, {at, gate});
    at = add(n, "mixed", MatMul{.m = 4, .n = 4, .k = 4}, {at});
    at = add(n, "again", MatMul{.m = 4, .n = 4, .k = 4}, {at});
    at = add(n, "flatten", Flatten{{4, 4}}, {at});
    at = add(n, "scores", MatMul{.m = 1, .n = 3, .k = 16}, {at});
    add(n, "loss", SoftmaxLoss{3}, {at});
    return n;
}

/// Images of which each channel, convolved, is a token for four experts.
inline Network mixture_of_images() {
    const Routing routing{.tokens = 4, .width = 16, .experts = 4, .capacity = 2, .group = 1};
    Network n{.name = "mixture-of-images", .layers = {}};
    const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    const int input = add(n, "input", Input{{2, 4, 4}}, {});
    const Conv conv{.channels = 2, .height = 4, .width = 4, .filters = 4, .window = same, .bias = true};
    const int bn = add(n, "bn", BatchNorm{4, 4, 4}, {add(n, "conv", conv, {input})});
    const int relu = add(n, "relu", Activation{Nonlinearity::relu, {4, 4, 4}}, {bn});
    const int tokens = add(n, "tokens", Flatten{{4, 4, 4}, {4, 16}}, {relu});
    const int gate = add(n, "gate", MatMul{4, 4, 16, false}, {tokens});
    int at = add(n, "dispatch", DispatchTokens{routing}, {tokens, gate});
    at = add(n, "up", GroupedMatMul{.experts = 4, .rows = 2, .n = 6, .k = 16, .group = 1}, {at});
    at = add(n, "down", GroupedMatMul{.experts = 4, .rows = 2, .n = 16, .k = 6, .group = 1, .bias = false}, {at});
    at = add(n, "combine", CombineTokens{routing}, {at, gate});
    at = add(n, "flatten", Flatten{{4, 16}}, {at});
    add(n, "loss", SoftmaxLoss{3}, {add(n, "scores", MatMul{.m = 1, .n = 3, .k = 64}, {at})});
    n.state = 8;
    check(n);
    return n;
}

/// Tables and numbers whose dot products are two tokens for four experts.
inline Network mixture_of_tables() {
    const Routing routing{.tokens = 2, .width = 7, .experts = 4, .capacity = 2, .group = 1};
    Network n{.name = "mixture-of-tables", .layers = {}};
    const int input = add(n, "input", Input{{6}}, {});
    const int dense = add(n, "dense", MatMul{.m = 1, .n = 4, .k = 6}, {input});
    const int ids = add(n, "ids", Input{{20}, 50}, {});
    const int tables = add(n, "tables", EmbeddingBag{4, 5, 50, 4}, {ids});
    const int both = add(n, "interaction", Interaction{5, 4}, {dense, tables});
    const int tokens = add(n, "tokens", Flatten{{14}, {2, 7}}, {both});
    const int gate = add(n, "gate", MatMul{2, 4, 7, false}, {tokens});
    int at = add(n, "dispatch", DispatchTokens{routing}, {tokens, gate});
    at = add(n, "up", GroupedMatMul{.experts = 4, .rows = 2, .n = 6, .k = 7, .group = 1}, {at});
    at = add(n, "down", GroupedMatMul{.experts = 4, .rows = 2, .n = 7, .k = 6, .group = 1, .bias = false}, {at});
    at = add(n, "combine", CombineTokens{routing}, {at, gate});
    at = add(n, "flatten", Flatten{{2, 7}}, {at});
    add(n, "loss", SoftmaxLoss{2}, {add(n, "scores", MatMul{.m = 1, .n = 2, .k = 14}, {at})});
    check(n);
    return n;
}

/// One host with as many devices as there are ranks.
inline Schedule schedule_of(const Network& network, std::string_view plan, std::int64_t ranks, std::int64_t batch,
                            Optimizer optimizer = Optimizer::sgd, Precision precision = Precision::fp32) {
    Machine machine;
    machine.name = "host";
    machine.nodes.push_back({"host", 1, {}, {}});
    for (std::int64_t i = 0; i < ranks; ++i) {
        machine.nodes[0].vertices.push_back({"core" + std::to_string(i), VertexKind::device, 0});
    }
    return schedule::make_schedule(network, machine, schedule::parse_plan(plan),
                                   {.devices = ranks,
                                    .batch_per_device = batch,
                                    .global_batch = {},
                                    .precision = precision,
                                    .optimizer = optimizer});
}

}  // namespace rehearse::test
