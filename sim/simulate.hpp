// SPDX-License-Identifier: Apache-2.0
// (Schedule, Machine, prices) in, predicted Timeline out.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "prices/prices.hpp"
#include "sim/host/pace.hpp"

namespace rehearse::sim {

/// exact: every message of every rank is a SimGrid flow. folded: one program a rank class, collectives priced round by
/// round on the whole fabric. automatic: exact up to `exact_limit` ranks, else folded.
enum class Mode { automatic, folded, exact };
std::string_view to_string(Mode mode);

struct Options {
    Mode mode = Mode::automatic;
    std::int64_t exact_limit = 64;
    int iterations = 1;
    ZScore z_score = nominal;           // of every price, compute and communication
    std::optional<ZScore> messages{};   // of messages instead
    std::vector<double> pace{};         // by rank: how much longer its kernels take (paces); empty: all as priced
    std::vector<double> server_pace{};  // by server: the same of what it computes; empty: all as priced
    double quorum = 1;  // of each class's ranks, beginning with the fastest, that a step waits for (folded)
    std::vector<Degraded> degraded{};
    std::vector<std::int64_t> nodes{};  // by node of the job: the machine's (placed_nodes); empty: the same
    bool links = false;                 // the timeline says what links carried and which events are of one message
    Noise noise{};                      // with servers: of each step anew (others are sampled step by step: paces)
};

/// What no step of this schedule on this machine beats, whatever it waits for (sim/check/certificate.hpp).
struct Bounds {
    Seconds compute;  // the most that a rank's kernels need at peak rate and memory bandwidth
    Seconds
        wire;  // the most that a rank's collectives need of its links, or a class's, or its loads, of its nodes' NICs
};

/// Two halves of steps whose rates differ by less are of a steady state.
inline constexpr double settled_drift = 0.01;

struct Prediction {
    Timeline timeline;  // exact: all ranks; folded: the first of each kind; with servers: of each group, servers
    Mode mode = Mode::folded;
    std::int64_t flows = 0;  // messages priced or simulated
    Bounds bounds{};
    /// With servers: how many updates were by gradients at weights that 0, 1, 2, ... other updates had come after.
    std::vector<std::int64_t> staleness{};
    /// With servers: by how much the rates of the two halves of what the step is the mean of differ (a share).
    double drift = 0;
};

/// InputError for what cannot be simulated. Every prediction has passed its certificate (certificate.hpp); logic_error
/// when it did not, which is a bug of ours.
Prediction simulate(const Schedule& schedule, const Machine& machine, const Options& options);

/// One schedule on one machine, simulated several times: as it is, and at the ends of its band. What does not change
/// from one simulation to the next is made once: links and routes, prices of steps, rounds of collectives and where
/// they meet. Results are those of simulate(), to the last bit where SimGrid follows no messages.
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
    std::unique_ptr<const Machine> alone_;  // of one rank on a host whose messages nobody measured: it sends none
    const Machine& machine_;
    bool checked_ = false;
    std::vector<std::unique_ptr<Setting>> settings_;  // the first one's prices and rounds serve the others
};

}  // namespace rehearse::sim
