// SPDX-License-Identifier: Apache-2.0
#include "schedule/input.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::schedule {

namespace {

// A later stage of a pipeline gets what its neighbour computed, not samples.
bool reads_samples(const Schedule& schedule, const RankClass& rank_class) {
    const Part& part = rank_class.part;
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const int origin = part.origins[i].layer;
        if (!std::holds_alternative<Input>(part.network.layers[i].op) || origin < 0) continue;
        if (std::holds_alternative<Input>(schedule.network.layers[static_cast<std::size_t>(origin)].op)) return true;
    }
    return false;
}

}  // namespace

Bytes sample_size(const Network& network) {
    Bytes sum;
    for (const Layer& layer : network.layers) {
        const auto* input = std::get_if<Input>(&layer.op);
        if (input == nullptr) continue;
        sum += Bytes{input->vocabulary > 0 ? 8.0 : 4.0} * static_cast<double>(elements(input->shape));
    }
    return sum;
}

void add_input(Schedule& schedule, const InputData& input) {
    if (!(input.sample > Bytes{})) {
        throw InputError(fmt::format("a sample of {} cannot be read from '{}': give its size as stored, like 110kB",
                                     to_string(input.sample), input.tier));
    }
    const int tensor = axis_index(schedule.mesh, "tensor");
    const std::int64_t sharing = tensor < 0 ? 1 : schedule.mesh.axes[static_cast<std::size_t>(tensor)].size;
    bool read = false;
    for (RankClass& rank_class : schedule.classes) {
        if (!reads_samples(schedule, rank_class)) continue;
        const double samples = static_cast<double>(batch_of(schedule, rank_class)) / static_cast<double>(sharing);
        rank_class.steps.push_back(
            {fmt::format("load:{}", input.tier), Stream::io, Load{input.tier, input.sample * samples}, {}});
        read = true;
    }
    require(read, "some ranks work on the network's input");
}

}  // namespace rehearse::schedule
