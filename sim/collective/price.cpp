// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/price.hpp"

#include <algorithm>

#include "core/collectives/library.hpp"
#include "sim/collective/collectives.hpp"
#include "sim/modes/exact_collectives.hpp"

namespace rehearse::sim {

Seconds collective_time(const Call& call, const Mesh& mesh, const Machine& machine, Mode mode, ZScore z_score) {
    const Wiring wiring{machine, z_score};
    if (mode == Mode::exact && !of_library(call.algorithm)) {
        const Begun begun{call, Seconds{0}};
        std::vector<double> ready(static_cast<std::size_t>(ranks(mesh)), 0);
        return Seconds{std::ranges::max(follow(mesh, {&begun, 1}, wiring, std::move(ready)))};
    }
    Collectives collectives{mesh, wiring, mode == Mode::folded ? 0 : Collectives::few};
    Collectives::Progress progress;
    progress.ready.resize(static_cast<std::size_t>(ranks(mesh)));
    collectives.run(call, Seconds{0}, progress);
    return Seconds{std::ranges::max(progress.ready)};
}

Seconds CollectiveTimes::time(const Call& call) {
    Collectives::Progress progress;
    progress.ready.resize(static_cast<std::size_t>(ranks(mesh_)));
    collectives_.run(call, Seconds{0}, progress);
    return Seconds{std::ranges::max(progress.ready)};
}

}  // namespace rehearse::sim
