// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include "sim/simulator.hpp"

namespace rehearse::sim {

std::string_view to_string(Mode mode) {
    switch (mode) {
        case Mode::automatic:
            return "auto";
        case Mode::folded:
            return "folded";
        case Mode::exact:
            return "exact";
    }
    return "?";
}

Prediction simulate(const Schedule& schedule, const Machine& machine, const Options& options) {
    return Simulator{schedule, machine}.simulate(options);
}

}  // namespace rehearse::sim
