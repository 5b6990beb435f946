// SPDX-License-Identifier: Apache-2.0
// Networks and machines small enough to be drawn and counted by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

inline int add(Network& network, std::string name, Op op, std::vector<int> inputs) {
    Shape output = output_shape(op);
    const int block = block_called(network, name);
    network.layers.push_back({std::move(name), std::move(op), std::move(inputs), std::move(output), -1, block});
    return static_cast<int>(network.layers.size()) - 1;
}

/// 4 -> a (15 parameters) -> 3 -> relu -> b (8 parameters) -> 2 -> loss.
inline Network two_dense() {
    Network n{.name = "two-dense", .layers = {}};
    int at = add(n, "input", Input{{4}}, {});
    at = add(n, "a", MatMul{.m = 1, .n = 3, .k = 4}, {at});
    at = add(n, "relu", Activation{Nonlinearity::relu, {3}}, {at});
    at = add(n, "b", MatMul{.m = 1, .n = 2, .k = 3}, {at});
    add(n, "loss", SoftmaxLoss{2}, {at});
    return n;
}

/// A batch norm on the input itself (4 parameters), a residual block round c (36), then flatten and dense f (54).
///   input 2x3x3 -> bn -> c -> sum -> flatten -> drop -> f -> loss
///                   `---------^
inline Network residual() {
    Network n{.name = "residual", .layers = {}};
    const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    const int input = add(n, "input", Input{{2, 3, 3}}, {});
    const int bn = add(n, "bn", BatchNorm{2, 3, 3}, {input});
    const int c = add(n, "c", Conv{.channels = 2, .height = 3, .width = 3, .filters = 2, .window = same}, {bn});
    const int sum = add(n, "sum", Add{{2, 3, 3}, 2}, {bn, c});
    const int flat = add(n, "flatten", Flatten{{2, 3, 3}}, {sum});
    const int drop = add(n, "drop", Dropout{{18}, 0.5}, {flat});
    const int f = add(n, "f", MatMul{.m = 1, .n = 3, .k = 18, .bias = false}, {drop});
    add(n, "loss", SoftmaxLoss{3}, {f});
    n.state = 4;
    return n;
}

/// `layers` dense layers of width 8, layer i with 72 parameters, without activations between them.
inline Network tower(int layers) {
    Network n{.name = "tower", .layers = {}};
    int at = add(n, "input", Input{{8}}, {});
    for (int i = 0; i < layers; ++i) at = add(n, "dense" + std::to_string(i), MatMul{.m = 1, .n = 8, .k = 8}, {at});
    add(n, "loss", SoftmaxLoss{8}, {at});
    return n;
}

inline NodeKind node_of(std::int64_t devices, std::int64_t count) {
    NodeKind kind{.name = "n" + std::to_string(devices), .count = count, .vertices = {}, .links = {}};
    for (std::int64_t i = 0; i < devices; ++i) {
        kind.vertices.push_back({"gpu" + std::to_string(i), VertexKind::device, 0});
    }
    kind.vertices.push_back({"nic", VertexKind::nic, -1});
    return kind;
}

/// 4 nodes of 6 devices.
inline Machine sixes() {
    Machine machine;
    machine.name = "sixes";
    machine.nodes = {node_of(6, 4)};
    return machine;
}

inline Schedule schedule_of(const Network& network, std::string_view plan, std::int64_t devices,
                            std::int64_t batch = 10, Precision precision = Precision::fp32) {
    return make_schedule(network, sixes(), parse_plan(plan),
                         {.devices = devices, .batch_per_device = batch, .precision = precision});
}

/// "fc 4x3 < input" a layer: name, weights, what it reads.
inline std::string layers_and_weights(const Part& part) {
    std::string text;
    for (const Layer& layer : part.network.layers) {
        text += layer.name;
        for (const WeightTensor& tensor : weights(layer.op)) text += " " + to_string(tensor.shape);
        for (const int input : layer.inputs) text += " < " + part.network.layers[static_cast<std::size_t>(input)].name;
        text += "\n";
    }
    return text;
}

}  // namespace rehearse::schedule
