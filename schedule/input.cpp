// SPDX-License-Identifier: Apache-2.0
#include "schedule/input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {

namespace {

void check_sample(const InputData& input) {
    if (input.sample > Bytes{}) return;
    throw InputError(fmt::format("a sample of {} cannot be read from '{}': give its size as stored, like 110kB",
                                 to_string(input.sample), input.tier));
}

// Ranks along a tensor axis have a share each, those along spatial axes a block of each sample, and copies of the first
// stage their micro-batches.
double samples_read(const Schedule& schedule, const RankClass& rank_class) {
    std::int64_t sharing = axis_size(schedule.mesh, "tensor");
    for (const char* axis : spatial_axes) sharing *= axis_size(schedule.mesh, axis);
    return static_cast<double>(batch_of(schedule, rank_class)) / static_cast<double>(sharing * rank_class.copies);
}

// Before all that the class does: one after the other, and each stream's first step after the last.
void put_first(RankClass& rank_class, const std::vector<Load>& loads) {
    const auto count = static_cast<int>(loads.size());
    std::set<Stream> begun;
    for (Step& step : rank_class.steps) {
        for (int& before : step.after) before += count;
        if (begun.insert(step.stream).second && step.after.empty()) step.after.push_back(count - 1);
    }
    std::vector<Step> steps;
    for (const Load& load : loads) steps.push_back({fmt::format("load:{}", load.tier), Stream::io, load, {}});
    rank_class.steps.insert(rank_class.steps.begin(), steps.begin(), steps.end());
}

}  // namespace

bool reads_samples(const Schedule& schedule, const RankClass& rank_class) {
    const Part& part = rank_class.part;
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const int origin = part.origins[i].layer;
        if (!std::holds_alternative<Input>(part.network.layers[i].op) || origin < 0) continue;
        if (std::holds_alternative<Input>(schedule.network.layers[static_cast<std::size_t>(origin)].op)) return true;
    }
    return false;
}

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
    check_sample(input);
    bool read = false;
    for (RankClass& rank_class : schedule.classes) {
        if (!reads_samples(schedule, rank_class)) continue;
        const Bytes all = input.sample * samples_read(schedule, rank_class);
        rank_class.steps.push_back({fmt::format("load:{}", input.tier), Stream::io, Load{input.tier, all}, {}});
        read = true;
    }
    require(read, "some ranks work on the network's input");
}

void add_inline_input(Schedule& schedule, const InputData& input, const std::vector<std::string>& by) {
    if (!input.tier.empty()) check_sample(input);
    bool read = false;
    for (RankClass& rank_class : schedule.classes) {
        if (!reads_samples(schedule, rank_class)) continue;
        const double samples = samples_read(schedule, rank_class);
        std::vector<Load> loads;
        if (!input.tier.empty()) loads.push_back({input.tier, input.sample * samples});
        for (const std::string& tier : by) loads.push_back({tier, sample_size(schedule.network) * samples});
        if (!loads.empty()) put_first(rank_class, loads);
        read = true;
    }
    require(read, "some ranks work on the network's input");
}

}  // namespace rehearse::schedule
