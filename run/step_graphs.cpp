// SPDX-License-Identifier: Apache-2.0
#include "run/step_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace rehearse::run {

namespace {

// Whether all training steps give the device the same numbers beside what lies in its memory: masks, corrections of
// moments and scales of losses are a step's own.
bool repeats(const Schedule& schedule, Program& program) {
    return schedule.optimizer == Optimizer::sgd && !program.scale().on() &&
           std::ranges::none_of(program.part().network.layers,
                                [](const Layer& layer) { return std::holds_alternative<Dropout>(layer.op); });
}

// Whether a step is not over before what it gives to the device is.
bool waits_for_device(const Program& program, const ReadyStep& ready) {
    return ((ready.before || ready.after) && ready.host_works) || (ready.is_loss && !program.counts_loss_at_end());
}

}  // namespace

StepGraphs::StepGraphs(const Schedule& schedule, Program& program, bool wanted)
    : program_(program), wanted_(wanted), repeats_(wanted && repeats(schedule, program)) {
    if (!wanted) return;
    if (program.device() == nullptr) throw InputError("--graphs: of a GPU's kernels, so with --device cuda");
    const PlacedLayers placed = program.placed();
    if (placed.on_host == 0) return;
    throw InputError(fmt::format("--graphs: {} of {} layers are left to the host ({}), which waits for the GPU",
                                 placed.on_host, placed.layers, fmt::join(placed.kinds, ", ")));
}

void StepGraphs::begin_training_step() { ++training_steps_; }

void StepGraphs::begin(std::size_t index, bool alone) {
    if (!wanted_ || training_steps_ < 2) return;
    if (alone || waits_for_device(program_, program_.steps()[index])) return flush();
    if (open_ != nullptr || given_) return;
    kernels::Device::Graph& graph = graphs_[index];
    if (repeats_ && graph != nullptr) {
        program_.device()->replay(graph);
        given_ = true;
        return;
    }
    open_ = &graph;
    program_.device()->begin_capture();
}

void StepGraphs::flush() {
    given_ = false;
    kernels::Device::Graph* const graph = std::exchange(open_, nullptr);
    if (graph == nullptr) return;
    program_.device()->end_capture(*graph);
    program_.device()->replay(*graph);
}

}  // namespace rehearse::run
