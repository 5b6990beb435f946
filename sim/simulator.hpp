// SPDX-License-Identifier: Apache-2.0
// One schedule on one machine, simulated several times: as it is, and at the ends of its band.
#pragma once

#include <memory>
#include <vector>

#include "sim/simulate.hpp"

namespace rehearse::sim {

/// What does not change from one simulation to the next is made once: links and routes, prices of steps, rounds of
/// collectives and where they meet. Results are those of simulate(), to the last bit where SimGrid follows no messages.
class Simulator {
public:
    /// Keeps references.
    Simulator(const Schedule& schedule, const Machine& machine);
    Simulator(const Simulator&) = delete;
    Simulator& operator=(const Simulator&) = delete;
    ~Simulator();

    Prediction simulate(const Options& options);
    /// How long summarize() says that a step of it takes. One iteration in folded mode is not written down as a
    /// timeline, and has no certificate.
    Seconds step(const Options& options);

private:
    struct Setting;
    void check_once(const Options& options);
    Setting& setting(const Options& options);

    const Schedule& schedule_;
    const Machine& machine_;
    bool checked_ = false;
    std::vector<std::unique_ptr<Setting>> settings_;  // the first one's prices and rounds serve the others
};

}  // namespace rehearse::sim
