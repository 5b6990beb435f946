// SPDX-License-Identifier: Apache-2.0
// Recurrent networks as published. Language models of Penn Treebank (Zaremba et al. 2014, section 4.1): words, two
// layers of LSTM with dropout before, between and behind, scores of 10,000 words. A network that hears ten keywords,
// silence and all else (Zhang et al. 2017, "Hello Edge", its largest GRU: 400 units, ten numbers for each 20 ms of a
// second, sizes of the authors' train_commands). Layers have two biases a gate, as PyTorch's and cuDNN's, and begin
// with zeros; a training that hands states from one stretch of text to the next computes the same.
#include "models/zoo/recurrent.hpp"

#include <array>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/builder.hpp"
#include "models/zoo/gnmt.hpp"

namespace rehearse::models {
namespace {

Shape rows(std::int64_t count, std::int64_t width) { return {count, width}; }

// {steps, directions, hidden} seen as rows.
int layer(NetworkBuilder& b, const std::string& name, int from, std::int64_t hidden, const char* cell) {
    const std::int64_t steps = b.shape(from).front();
    const int made = b.layer(
        name, Recurrent{.cell = cell, .steps = steps, .inputs = b.shape(from).back(), .hidden = hidden}, {from});
    return b.layer(name + ".rows", Flatten{b.shape(made), rows(steps, hidden)}, {made});
}

Network language_model(std::string name, std::int64_t steps, std::int64_t hidden, double keep) {
    constexpr std::int64_t words = 10'000;
    NetworkBuilder b(std::move(name), Input{{steps}, words});
    const auto drop = [&](const std::string& where, int x) { return keep < 1 ? b.dropout(where, x, keep) : x; };
    int x = b.layer("embedding", Embedding{steps, words, hidden}, {NetworkBuilder::input});
    x = layer(b, "lstm1", drop("dropout1", x), hidden, "lstm");
    x = drop("dropout3", layer(b, "lstm2", drop("dropout2", x), hidden, "lstm"));
    x = b.layer("scores", MatMul{.m = steps, .n = words, .k = hidden}, {x});
    b.layer("loss", SoftmaxLoss{.classes = words, .rows = steps}, {x});
    return b.build();
}

Network lstm_ptb_small(std::int64_t steps) { return language_model("lstm-ptb-small", steps, 200, 1); }
Network lstm_ptb_medium(std::int64_t steps) { return language_model("lstm-ptb-medium", steps, 650, 0.5); }
Network lstm_ptb_large(std::int64_t steps) { return language_model("lstm-ptb-large", steps, 1500, 0.35); }

Network gru_keywords(std::int64_t steps) {
    constexpr std::int64_t numbers = 10, hidden = 400, classes = 12;
    NetworkBuilder b("gru-keywords", {steps, numbers});
    const int heard = layer(b, "gru", NetworkBuilder::input, hidden, "gru");
    const Rearrangement last{"slice", {b.shape(heard)}, {1, hidden}, {steps - 1, 0, 1, 1}};
    const int state = b.layer("last", last, {heard});
    b.loss(b.dense("scores", b.flatten("flatten", state), classes));
    return b.build();
}

struct Named {
    std::string_view name;
    std::int64_t steps;
    Network (*build)(std::int64_t steps);
};
constexpr std::array networks{
    Named{"lstm-ptb-small", 20, lstm_ptb_small}, Named{"lstm-ptb-medium", 35, lstm_ptb_medium},
    Named{"lstm-ptb-large", 35, lstm_ptb_large}, Named{"gru-keywords", 49, gru_keywords}, Named{"gnmt", 50, gnmt}};

}  // namespace

std::optional<Network> load_recurrent(std::string_view name) {
    constexpr std::int64_t most = 100'000;
    const std::size_t at = name.find('@');
    for (const Named& each : networks) {
        if (each.name != name.substr(0, at)) continue;
        if (at == std::string_view::npos) return each.build(each.steps);
        const std::int64_t steps = parse_int(name.substr(at + 1), fmt::format("steps of '{}'", name));
        if (steps < 2 || steps > most)
            throw InputError(fmt::format("network '{}': {} steps; 2 to {} can be", name, steps, most));
        Network network = each.build(steps);
        network.name = name;
        return network;
    }
    return std::nullopt;
}

}  // namespace rehearse::models
