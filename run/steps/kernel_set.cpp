// SPDX-License-Identifier: Apache-2.0
#include "run/steps/kernel_set.hpp"

#include <fmt/format.h>

#include "core/index.hpp"
#include "core/precision.hpp"

namespace rehearse::run {

KernelSet::KernelSet(const Schedule& schedule, const RankClass& rank_class, const KernelSelection& selection)
    : selection_(selection) {
    for (const Layer& layer : rank_class.part.network.layers) {
        const bool computes = has_pass(layer.op, Pass::forward) && !std::holds_alternative<Communication>(layer.op);
        layers_.push_back(computes ? kernels::choose_passes(computed(layer.op), micro_batch_size(schedule, rank_class),
                                                            compute_type(schedule.precision, layer.op), selection)
                                   : kernels::PassChoices{});
    }
}

kernels::Kernel& KernelSet::of_layer(int layer, const Problem& problem) {
    return prepared(problem, of(layers_[at(layer)], problem.pass));
}

kernels::Kernel& KernelSet::of_problem(const Problem& problem) {
    return prepared(problem,
                    of(kernels::choose_passes(problem.op, problem.batch, problem.type, selection_), problem.pass));
}

kernels::Kernel& KernelSet::prepared(const Problem& problem, const kernels::Choice& choice) {
    auto& kernel =
        prepared_[fmt::format("{}/{}/{}", to_string(problem), kernels::full_name(*choice.backend), choice.threads)];
    if (kernel == nullptr) kernel = kernels::prepare(choice, problem, selection_.scratch_limit);
    return *kernel;
}

std::vector<const kernels::Backend*> KernelSet::forward_backends() const {
    std::vector<const kernels::Backend*> backends;
    for (const kernels::PassChoices& choices : layers_) backends.push_back(of(choices, Pass::forward).backend);
    return backends;
}

PlacedLayers KernelSet::placed(const Network& network) const {
    PlacedLayers placed;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const kernels::Backend* const backend = of(layers_[i], Pass::forward).backend;
        if (backend == nullptr) continue;
        ++placed.layers;
        if (selection_.device == nullptr || selection_.device->owns(*backend)) continue;
        ++placed.on_host;
        placed.kinds.emplace(kind_of(network.layers[i].op));
    }
    return placed;
}

}  // namespace rehearse::run
