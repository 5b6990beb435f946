// SPDX-License-Identifier: Apache-2.0
#include "core/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/limits.hpp"

namespace rehearse {

namespace {

// A shared operator takes all weights of an earlier layer, as they are.
template <typename Fail>
void check_shared(const Network& network, std::size_t index, const Shared& shared, const Fail& fail) {
    const Layer& layer = network.layers[index];
    if (static_cast<std::size_t>(layer.weights_of) >= index) fail(layer, "it shares the weights of a later layer");
    const Layer& owner = network.layers[static_cast<std::size_t>(layer.weights_of)];
    if (weights(owner.op) != weights(shared.op->op)) fail(layer, fmt::format("'{}' has other weights", owner.name));
}

// A tied product takes the first weights of an earlier layer, transposed; nobody else shares weights.
template <typename Fail>
void check_tie(const Network& network, std::size_t index, const Fail& fail) {
    const Layer& layer = network.layers[index];
    const auto* dense = std::get_if<MatMul>(&layer.op);
    const bool tied = dense != nullptr && dense->tied;
    const auto* shared = std::get_if<Shared>(&layer.op);
    if ((tied || shared != nullptr) != (layer.weights_of >= 0))
        fail(layer, "a tied matmul or a shared operator, and no other layer, names whose weights it shares");
    if (layer.weights_of < 0) return;
    if (shared != nullptr) return check_shared(network, index, *shared, fail);
    if (dense->bias) fail(layer, "a tied matmul has no bias");
    if (static_cast<std::size_t>(layer.weights_of) >= index) fail(layer, "it shares the weights of a later layer");
    const Layer& owner = network.layers[static_cast<std::size_t>(layer.weights_of)];
    const std::vector<WeightTensor> tensors = weights(owner.op);
    if (tensors.empty() || tensors.front().shape != Shape{dense->n, dense->k}) {
        fail(layer, fmt::format("'{}' has no weights {} to share", owner.name, to_string(Shape{dense->n, dense->k})));
    }
}

// Integers are read by tables that are large enough for them, and by nobody else.
template <typename Fail>
void check_integers(const Network& network, const Layer& layer, const Fail& fail) {
    for (const int index : layer.inputs) {
        const auto* input = std::get_if<Input>(&network.layers[static_cast<std::size_t>(index)].op);
        const bool integers = input != nullptr && input->vocabulary > 0;
        if (integers != reads_integers(layer.op)) {
            fail(layer, integers ? "it reads integers, but is no table" : "a table reads integers, not this");
        }
        const auto* table = std::get_if<Embedding>(&computed(layer.op));
        const auto* bag = std::get_if<EmbeddingBag>(&computed(layer.op));
        const std::int64_t rows = table != nullptr ? table->vocabulary * table->parts
                                  : bag != nullptr ? bag->vocabulary
                                                   : 0;
        if (integers && input->vocabulary > rows) {
            fail(layer, fmt::format("ids go up to {}, but there are {} rows", input->vocabulary - 1, rows));
        }
    }
}

}  // namespace

void check(const Network& network) {
    const auto fail = [&](const Layer& layer, std::string_view why) {
        throw InputError(fmt::format("network '{}': layer '{}': {}", network.name, layer.name, why));
    };
    if (network.layers.empty()) throw InputError(fmt::format("network '{}' has no layers", network.name));
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        if (!names.insert(layer.name).second) fail(layer, "its name is used twice");
        check_tie(network, i, fail);
        std::vector<Shape> inputs;
        for (const int input : layer.inputs) {
            if (input < 0 || static_cast<std::size_t>(input) >= i) fail(layer, "it reads a layer that comes later");
            inputs.push_back(network.layers[static_cast<std::size_t>(input)].output);
        }
        check_integers(network, layer, fail);
        try {
            const Shape output = output_shape(layer.op, inputs);
            if (output != layer.output) {
                fail(layer, fmt::format("its output is {}, not {}", to_string(output), to_string(layer.output)));
            }
            const std::int64_t weights = parameters(layer.op);
            if (product_of(output) > most_elements || weights < 0 || static_cast<double>(weights) > most_elements) {
                fail(layer,
                     fmt::format("its output of {} or its weights are larger than any tensor here", to_string(output)));
            }
        } catch (const InputError& error) {
            fail(layer, error.what());
        }
    }
}

std::int64_t parameters(const Network& network) {
    std::int64_t sum = 0;
    for (const Layer& layer : network.layers) sum += parameters(layer.op);
    return sum;
}

Flops flops(const Network& network, Pass pass, std::int64_t batch) {
    Flops sum;
    for (const Layer& layer : network.layers) sum += flops(layer.op, pass, batch);
    return sum;
}

Bytes activation_bytes(const Network& network, DataType type) {
    Bytes sum;
    for (const Layer& layer : network.layers) sum += size_of(type) * static_cast<double>(elements(layer.output));
    return sum;
}

double guessed_share(const Network& network) {
    double unknown = 0, all = 0;
    for (const Layer& layer : network.layers) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            const double bytes = bytes_moved(layer.op, pass, DataType::f32).value;
            all += bytes;
            if (std::holds_alternative<Unknown>(layer.op)) unknown += bytes;
        }
    }
    return all > 0 ? unknown / all : 0;
}

std::vector<std::vector<int>> consumers(const Network& network) {
    std::vector<std::vector<int>> result(network.layers.size());
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        for (const int input : network.layers[i].inputs) {
            result[static_cast<std::size_t>(input)].push_back(static_cast<int>(i));
        }
    }
    return result;
}

namespace {

constexpr std::string_view digits = "0123456789";

bool is_number(std::string_view part) {
    return !part.empty() && part.find_first_not_of(digits) == std::string_view::npos;
}

// The block that a module's path lies in: its first part where that counts ("layer3" of "layer3.fc1"), else all up to
// the numbers that count the path ("model.layers.3" of "model.layers.3.mlp.up_proj", "features.1.0"), in a stage's
// "layers.0.blocks.1" up to the second; else the first part.
std::string_view block_name(std::string_view name) {
    const std::string_view first = name.substr(0, name.find('.'));
    if (first.find_first_of(digits) != std::string_view::npos) return first;
    std::size_t numbered = 0;  // the end of the numbers found
    for (std::size_t begin = 0; begin < name.size();) {
        const std::size_t end = std::min(name.find('.', begin), name.size());
        const std::string_view part = name.substr(begin, end - begin);
        if (is_number(part)) numbered = end;
        if (numbered > 0 && numbered < end && part != "blocks") break;
        begin = end + 1;
    }
    return numbered > 0 ? name.substr(0, numbered) : first;
}

}  // namespace

int block_called(const Network& network, std::string_view name) {
    const std::string_view wanted = block_name(name);
    int most = -1;
    for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
        if (block_name(layer->name) == wanted) return layer->block;
        most = std::max(most, layer->block);
    }
    return most + 1;
}

std::optional<int> find_layer(const Network& network, std::string_view name) {
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        if (network.layers[i].name == name) return static_cast<int>(i);
    }
    return std::nullopt;
}

std::vector<bool> needs_input_gradient(const Network& network) {
    std::vector<bool> trainable(network.layers.size());  // this layer or one before it has weights
    std::vector<bool> needed(network.layers.size());
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        for (const int input : network.layers[i].inputs) {
            needed[i] = needed[i] || trainable[static_cast<std::size_t>(input)];
        }
        const auto* communication = std::get_if<Communication>(&network.layers[i].op);
        const bool received =
            communication != nullptr && communication->movement == Movement::receive && communication->gradient;
        trainable[i] =
            needed[i] || received || parameters(network.layers[i].op) > 0 || network.layers[i].weights_of >= 0;
    }
    return needed;
}

}  // namespace rehearse
