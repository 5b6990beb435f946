// SPDX-License-Identifier: Apache-2.0
#include "run/data/labels.hpp"

#include <algorithm>

#include "run/tensors.hpp"

namespace rehearse::run {

std::optional<Labels> labels_of(const Network& network) {
    const SoftmaxLoss* const loss = labelled_loss(network);
    if (loss == nullptr) return std::nullopt;
    Labels labels{.shape = loss->image, .classes = loss->classes};
    if (loss->rows > 1) labels.shape = {loss->rows};
    if (labels.shape.empty()) labels.shape = {1};
    const auto layer = std::ranges::find_if(
        network.layers, [](const Layer& each) { return std::holds_alternative<SoftmaxLoss>(each.op); });
    if (layer->given != nullptr && !layer->given->places.empty()) labels.places = layer->given->places.front();
    return labels;
}

}  // namespace rehearse::run
