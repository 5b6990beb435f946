// SPDX-License-Identifier: Apache-2.0
#include "models/fuse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"

namespace rehearse::models {
namespace {

constexpr std::array names{
    FusionName{Fusion::conv_relu, "conv-relu", "convolution, with or without bias, and ReLU"},
    FusionName{Fusion::matmul_relu, "matmul-relu", "dense layer and ReLU"},
    FusionName{Fusion::matmul_gelu, "matmul-gelu", "dense layer and GELU"},
    FusionName{Fusion::bn_relu, "bn-relu", "batch normalization and ReLU"},
    FusionName{Fusion::bn_add_relu, "bn-add-relu", "batch normalization, the sum with a shortcut, and ReLU if any"},
};

bool is_activation(const Op& op, Nonlinearity kind) {
    const auto* activation = std::get_if<Activation>(&op);
    return activation != nullptr && activation->kind == kind;
}

// `op` with `next` in it, where one of the fusions makes one operator of the two.
std::optional<Op> joined(const Op& op, const Op& next, const Fusions& fusions) {
    if (const Conv* conv = as_conv2d(op)) {
        if (conv->relu || !fusions.contains(Fusion::conv_relu) || !is_activation(next, Nonlinearity::relu)) return {};
        Conv both = *conv;
        both.relu = true;
        return both;
    }
    if (const auto* dense = std::get_if<MatMul>(&op)) {
        MatMul both = *dense;
        if (fusions.contains(Fusion::matmul_relu) && is_activation(next, Nonlinearity::relu)) {
            both.activation = Nonlinearity::relu;
        }
        if (fusions.contains(Fusion::matmul_gelu) && is_activation(next, Nonlinearity::gelu)) {
            both.activation = Nonlinearity::gelu;
        }
        return dense->activation || !both.activation ? std::nullopt : std::optional<Op>{both};
    }
    const auto* norm = std::get_if<BatchNorm>(&op);
    if (norm == nullptr || norm->relu) return {};
    BatchNorm both = *norm;
    const auto* add = std::get_if<Add>(&next);
    both.add = norm->add || add != nullptr;
    both.relu = is_activation(next, Nonlinearity::relu);
    const bool one_more = add != nullptr ? !norm->add && add->inputs == 2 : both.relu;
    if (!one_more || !fusions.contains(both.add ? Fusion::bn_add_relu : Fusion::bn_relu)) return {};
    return both;
}

// "a.b.bn" and "a.b.relu" as "a.b.bn+relu".
std::string joined_name(const std::string& first, const std::string& next) {
    const std::size_t prefix = first.rfind('.', first.find('+')) + 1;  // 0 when there is no dot
    return fmt::format("{}+{}", first, next.starts_with(first.substr(0, prefix)) ? next.substr(prefix) : next);
}

class Fuser {
public:
    Fuser(const Network& network, const Fusions& fusions)
        : network_(network), fusions_(fusions), readers_(consumers(network)), taken_(network.layers.size()) {}

    Network result() {
        for (std::size_t i = 0; i < network_.layers.size(); ++i) {
            if (!taken_[i]) grow(static_cast<int>(i));
        }
        Network fused{network_.name, {}, network_.state, network_.notes};
        std::vector<int> place(network_.layers.size(), -1);
        for (std::size_t i = 0; i < network_.layers.size(); ++i) {
            if (!ends_here_[i]) continue;
            auto& [layer, members] = *ends_here_[i];
            for (int& input : layer.inputs) input = place[at(input)];
            if (layer.weights_of >= 0) layer.weights_of = place[at(layer.weights_of)];
            for (const int member : members) place[at(member)] = static_cast<int>(fused.layers.size());
            fused.layers.push_back(std::move(layer));
        }
        check(fused);
        return fused;
    }

private:
    struct Group {
        Layer layer;  // its inputs are still places in the old network
        std::vector<int> members;
    };

    // The layer with all that can be joined to it, one after the other.
    void grow(int first) {
        Group group{network_.layers[at(first)], {first}};
        for (;;) {
            const int last = group.members.back();
            if (readers_[at(last)].size() != 1) break;
            const int next = readers_[at(last)].front();
            const Layer& joins = network_.layers[at(next)];
            const std::optional<Op> op = taken_[at(next)] ? std::nullopt : joined(group.layer.op, joins.op, fusions_);
            if (!op) break;
            for (const int input : joins.inputs) {
                if (input != last) group.layer.inputs.push_back(input);
            }
            group.layer.op = *op;
            group.layer.name = joined_name(group.layer.name, joins.name);
            group.members.push_back(next);
        }
        for (const int member : group.members) taken_[at(member)] = true;
        const std::size_t last = at(group.members.back());
        ends_here_[last] = std::move(group);
    }

    const Network& network_;
    const Fusions& fusions_;
    std::vector<std::vector<int>> readers_;
    std::vector<bool> taken_;
    std::vector<std::optional<Group>> ends_here_ = std::vector<std::optional<Group>>(taken_.size());
};

}  // namespace

std::span<const FusionName> fusion_names() { return names; }

Fusions parse_fusions(std::string_view text) {
    Fusions found;
    if (text == "off") return found;
    std::vector<std::string_view> words{"on", "off"};
    for (const FusionName& each : names) {
        words.push_back(each.name);
        if (text == "on") found.insert(each.fusion);
    }
    if (text == "on") return found;
    for (const std::string_view word : split(text, ',')) {
        const auto known = std::ranges::find(names, word, &FusionName::name);
        if (known == names.end()) {
            throw InputError(fmt::format("--fuse '{}': '{}' is not one of {}{}", text, word, join(words),
                                         did_you_mean(word, words)));
        }
        found.insert(known->fusion);
    }
    return found;
}

Network fuse(const Network& network, const Fusions& fusions) { return Fuser{network, fusions}.result(); }

}  // namespace rehearse::models
