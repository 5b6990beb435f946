// SPDX-License-Identifier: Apache-2.0
// The kernels of a rank: which implementation each layer takes, and each prepared once.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/choices.hpp"

namespace rehearse::run {

using kernels::KernelSelection;

/// Layers of a part that compute, and how many of them do so on the host although there is a device.
struct PlacedLayers {
    int layers = 0, on_host = 0;
    std::set<std::string_view> kinds{};  // of those on the host
};

class KernelSet {
public:
    /// InputError where no implementation that the selection allows computes a layer.
    KernelSet(const Schedule& schedule, const RankClass& rank_class, const KernelSelection& selection);

    /// Returns the kernel of one layer's pass, as was chosen for the layer. Layers of the same problem share one: what
    /// differs between them lies in the buffers.
    kernels::Kernel& of_layer(int layer, const Problem& problem);
    /// Returns the kernel of a problem that is no layer's: an update, a product of matrices.
    kernels::Kernel& of_problem(const Problem& problem);
    /// Whoever runs each layer's forward pass says what is kept for the backward pass; null where nothing is computed.
    std::vector<const kernels::Backend*> forward_backends() const;
    PlacedLayers placed(const Network& network) const;

private:
    kernels::Kernel& prepared(const Problem& problem, const kernels::Choice& choice);

    KernelSelection selection_;
    std::vector<kernels::PassChoices> layers_;
    std::map<std::string, std::unique_ptr<kernels::Kernel>> prepared_;  // by problem, implementation and threads
};

}  // namespace rehearse::run
