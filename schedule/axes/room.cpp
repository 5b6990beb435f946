// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/room.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/index.hpp"
#include "schedule/memory.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {
namespace {

/// Of the classes of one stage (of each of its copies, one for each share of samples), the one with the least room.
std::vector<Tightest> tightest_of_stages(const Schedule& schedule, const Machine& machine) {
    const std::vector<Tightest> classes = tightest_of_classes(schedule, machine);
    const std::int64_t of_a_place = std::ssize(classes) / axis_size(schedule.mesh, "pipe");
    std::vector<Tightest> worst(at(stages(schedule)));
    for (const Tightest& each : classes) {
        Tightest& most = worst[at(stage_at(schedule, each.rank_class / of_a_place).stage)];
        if (most.device == nullptr || each.share() > most.share()) most = each;
    }
    return worst;
}

bool all_fit(std::span<const Tightest> stages) {
    return std::ranges::all_of(stages, [](const Tightest& t) { return t.fits(); });
}

/// What a weight and an element of an output take on a stage.
struct Rates {
    double parameter = 0, element = 0;
};

class RoomFinder {
public:
    RoomFinder(const Part& part, const CutWithin& cut_within, std::size_t stages)
        : layers_(part.network.layers), cut_within_(cut_within), margins_(stages, 1) {}

    /// Other ends, going by what the stages take when cut at `ends`.
    std::optional<std::vector<int>> next(std::span<const int> ends, std::span<const Tightest> stages) {
        Room room;
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const Rates rates = rates_of(s == 0 ? 0 : ends[s - 1], ends[s], stages[s].use);
            std::vector<double>& needed = room.needed.emplace_back();
            for (const Layer& layer : layers_) {
                needed.push_back(rates.parameter * static_cast<double>(parameters(layer.op)) +
                                 rates.element * static_cast<double>(elements(layer.output)));
            }
            room.available.push_back((stages[s].device->memory.value - stages[s].use.communication).value *
                                     margins_[s]);
        }
        std::optional<std::vector<int>> found = cut_within_(room);
        if (found && std::ranges::equal(*found, ends)) {  // it takes more than its layers' shares of it
            for (std::size_t s = 0; s < stages.size(); ++s) {
                if (!stages[s].fits()) margins_[s] *= 0.9;
            }
        }
        return found;
    }

private:
    Rates rates_of(int begin, int end, const MemoryUse& use) const {
        double weights = 0, outputs = 0;
        for (int i = begin; i < end; ++i) {
            weights += static_cast<double>(parameters(layers_[at(i)].op));
            outputs += static_cast<double>(elements(layers_[at(i)].output));
        }
        const Bytes kept = use.weights + use.master_weights + use.gradients + use.optimizer;
        const Bytes passing = use.activations + use.activation_gradients;
        return {weights > 0 ? kept.value / weights : 0, outputs > 0 ? passing.value / outputs : 0};
    }

    const std::vector<Layer>& layers_;
    const CutWithin& cut_within_;
    std::vector<double> margins_;  // of each stage's memory: less where sums of layers' shares said too little
};

}  // namespace

Schedule with_room(Schedule balanced, std::vector<int> ends, const Part& part, const Machine& machine,
                   const CutWithin& cut_within, const StageCut& cut) {
    std::vector<Tightest> stages = tightest_of_stages(balanced, machine);
    if (all_fit(stages)) return balanced;
    RoomFinder finder{part, cut_within, stages.size()};
    for (int turn = 0; turn < 4; ++turn) {
        std::optional<std::vector<int>> other = finder.next(ends, stages);
        if (!other) break;
        ends = *std::move(other);
        Schedule made = cut(ends);
        stages = tightest_of_stages(made, machine);
        if (all_fit(stages)) return made;
    }
    return balanced;
}

}  // namespace rehearse::schedule
