// SPDX-License-Identifier: Apache-2.0
// Runs as others made them, simulated: what one step, or one collective, takes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "predict/framework.hpp"
#include "predict/predict.hpp"
#include "predict/spread.hpp"
#include "prices/prices.hpp"
#include "schedule/plan.hpp"
#include "validate/measure.hpp"

namespace rehearse::validate {

/// All that a step depends on.
/// Large: one member a thing that rows and rules say.
struct TrainingRun {
    std::string network, fuse = "off", machine, plan = "data";
    std::string layout;  // of images (predict/framework.hpp); empty: as kernels want them
    std::string loader;  // of samples, as predict --loader has it; empty: they are there
    std::string input,
        sample;           // the tier that samples are read from, and their size as stored; empty: in memory, as numbers
    std::string reading;  // how, as predict --reading has it; empty: at the tier's rates
    std::string software;       // values cross memory as often as under it; empty: as under the machine's own
    std::int64_t per_node = 0;  // devices of each node that the job gets; 0: all
    std::int64_t devices = 1;
    std::int64_t batch = 0;         // a copy of the network; or
    std::int64_t global_batch = 0;  // of all of them
    Precision precision = Precision::fp32;
    Optimizer optimizer = Optimizer::sgd;
    bool transforms = true;            // convolutions may take fewer multiplications
    std::optional<Bytes> workspace{};  // memory that the library gets for one; absent: as much as it asks for
    bool dense_gradients = false;      // gradients of strided convolutions multiply the zeros between their numbers
    bool dilated_in_batches = false;   // dilated convolutions are of images of every so many-th pixel
    std::optional<double>
        update_passes{};               // how often its kernels read or write a parameter; absent: one kernel for all
    Bandwidth update_rate{};           // of these, where one core makes them; 0: of the whole device
    predict::HostIssue issue{};        // of an operator
    bool update_after_sums = false;    // no weight is updated before all gradients have been summed
    predict::Statistics statistics{};  // of gradients, beside the update
    double framework_error = predict::framework_error;  // or what the row's mapping adds to it
    auto operator<=>(const TrainingRun&) const = default;
};

/// From a row's settings and columns. InputError says which configuration is missing.
TrainingRun training_run(const PublishedRow& row, const ReplaySettings& settings);

/// Of the network: each device, unless a setting says otherwise.
double copies(const TrainingRun& run, const ReplaySettings& settings);

/// A collective or a message by itself.
struct CollectiveRun {
    std::string kind, algorithm, machine;  // the fastest of several algorithms with | between them
    std::int64_t devices = 2, bytes = 0, per_node = 0;
    std::int64_t window = 1;  // messages under way, one after the other: the mean time of one counts
    Seconds before{};         // its first message goes
    auto operator<=>(const CollectiveRun&) const = default;
};
CollectiveRun collective_run(const PublishedRow& row, const ReplaySettings& settings);

/// Samples that are copied into the nodes before a training.
struct StagingRun {
    std::string machine, from, to;  // tiers
    std::int64_t nodes = 1, samples = 0, kept = 0;
    Bytes sample;
};
StagingRun staging_run(const PublishedRow& row, const ReplaySettings& settings);

/// A step, and what makes its band.
struct ReplayedStep {
    StepResult result;
    predict::Uncertainty uncertainty{};
};

/// A run whose step was published.
struct PilotRun {
    TrainingRun run;
    Seconds step;
};

/// Keeps networks, machines and steps that it was asked for.
class Replayer {
public:
    /// What predict says of job_of(run), anchored where `anchor` is given. InputError and InfeasibleError as predict.
    /// Whether it fits in memory is not asked: the run was made.
    ReplayedStep step(const TrainingRun& run, const std::optional<predict::Anchor>& anchor = {});
    StepResult time(const CollectiveRun& run, ZScore z_score = nominal);
    StepResult time(const StagingRun& run);
    /// predict::fitted of runs on rising numbers of devices.
    predict::Anchors fitted(const std::vector<PilotRun>& pilots);
    /// With only `per_node` devices of each node, where that is not 0.
    const Machine& machine(const std::string& name, std::int64_t per_node = 0);
    /// What a user would ask predict for.
    predict::Job job_of(const TrainingRun& run);
    /// Counted from 1: of the last device of the run.
    std::int64_t nodes(const TrainingRun& run);

private:
    using Step = std::tuple<TrainingRun, std::int64_t, double, double, double>;  // run, and its anchor's figures
    const Network& network(const std::string& name, const std::string& fuse);
    const predict::Setup& setup(const TrainingRun& run);

    std::map<std::pair<std::string, std::int64_t>, Machine> machines_;
    std::map<std::pair<std::string, std::string>, Network> networks_;
    std::optional<std::pair<TrainingRun, predict::Setup>> last_;
    std::map<Step, ReplayedStep> steps_;
};

}  // namespace rehearse::validate
