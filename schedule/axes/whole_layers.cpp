// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/whole_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::schedule {

bool is_worth_sharing(const Op& op) {
    const Op& made = computed(op);
    return std::holds_alternative<MatMul>(made) || std::holds_alternative<GroupedMatMul>(made) ||
           std::holds_alternative<BatchedMatMul>(made) || std::holds_alternative<Conv>(made) ||
           std::holds_alternative<Embedding>(made) || std::holds_alternative<Attention>(made);
}

std::vector<std::string> notes_of_whole(const Network& network, std::span<const std::size_t> layers,
                                        const Sharing& sharing) {
    constexpr double worth_a_note = 0.01;
    double operations = 0, weights = 0;
    for (const std::size_t index : layers) {
        operations += flops(network.layers[index].op, Pass::forward).value;
        weights += static_cast<double>(parameters(network.layers[index].op));
    }
    operations /= std::max(1.0, flops(network, Pass::forward).value);
    weights /= static_cast<double>(std::max<std::int64_t>(1, parameters(network)));
    std::vector<std::string> shares;
    if (operations >= worth_a_note) shares.push_back(fmt::format("{:.0f} % of the operations", 100 * operations));
    if (sharing.of_weights && weights >= worth_a_note)
        shares.push_back(fmt::format("{:.0f} % of the weights", 100 * weights));
    if (shares.empty()) return {};
    const std::size_t more = layers.size() - 1;
    return {fmt::format("each of the {} ranks along {} has all of '{}'{}, {}, which could not be cut", sharing.parts,
                        sharing.axis, network.layers[layers.front()].name,
                        more == 0 ? "" : fmt::format(" and of {} more", more), fmt::join(shares, " and "))};
}

}  // namespace rehearse::schedule
