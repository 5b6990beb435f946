// SPDX-License-Identifier: Apache-2.0
// Which kernels a program takes, and which parts of a network run does not execute.
#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "run/program.hpp"
#include "run/random.hpp"

namespace rehearse::run {

void Program::choose_backends(const Wish& wish) {
    const auto& layers = part().network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const int origin = part().origins[i].layer;
        layer_keys_.push_back(origin < 0 ? 0 : layer_key(schedule_.network.layers[at(origin)].name));
        const bool computes =
            has_pass(layers[i].op, Pass::forward) && !std::holds_alternative<Communication>(layers[i].op);
        choices_.push_back(computes ? kernels::choose_passes(layers[i].op, micro_batch_size(schedule_, rank_class_),
                                                             compute_type(schedule_.precision, layers[i].op), wish)
                                    : kernels::PassChoices{});
        has_loss_ = has_loss_ || is_loss(layers[i].op);
        if (std::holds_alternative<ChannelSums>(layers[i].op) && schedule_.precision != Precision::fp32) {
            throw InputError(
                fmt::format("layer '{}' sums what spatial cuts: run does that in fp32 only, not in {}: sums of squares "
                            "do not fit into 16 bits",
                            layers[i].name, to_string(schedule_.precision)));
        }
        check_tie(i);
    }
    check_inputs();
}

void Program::check_inputs() const {
    if (schedule_.control > 0 || schedule_.whole_variables) {
        throw InputError(
            fmt::format("plan '{}': control and variables=whole say what other frameworks add, and are only "
                        "predicted; leave them out to run",
                        schedule_.plan));
    }
    const auto& layers = part().network.layers;
    bool integers = false;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto* input = std::get_if<Input>(&layers[i].op);
        if (input != nullptr && (input->vocabulary > 0 ? std::exchange(integers, true) : i > 0)) {
            throw InputError(
                fmt::format("network '{}' has a second input, '{}': run feeds one of numbers, the first "
                            "layer, and one of integers",
                            schedule_.network.name, layers[i].name));
        }
        const bool fed =
            !reads_integers(layers[i].op) || std::holds_alternative<Input>(layers[at(layers[i].inputs.front())].op);
        if (!fed) {
            throw InputError(
                fmt::format("layer '{}' reads ids of another stage: run does not send integers", layers[i].name));
        }
    }
}

void Program::check_tie(std::size_t layer) const {
    const int origin = part().origins[layer].layer;
    if (origin < 0 || part().network.layers[layer].weights_of >= 0) return;
    if (schedule_.network.layers[at(origin)].weights_of < 0) return;
    throw InputError(
        fmt::format("layer '{}' shares weights with another stage: run does not sum their gradients with "
                    "zero=3 or schedule=pipedream, or where three layers share them",
                    part().network.layers[layer].name));
}

}  // namespace rehearse::run
