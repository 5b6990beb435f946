// SPDX-License-Identifier: Apache-2.0
// What `rehearse study` trains at a point of its space, on one rank, and what a step of it takes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/trainer.hpp"
#include "study/rounds.hpp"

namespace rehearse::cli {

/// Of all trials of a study.
struct StudyJob {
    std::string model = "gpt-h{width}-a2-l{depth}-v64@16", strategy = "halving", data = "synthetic", machine;
    std::vector<std::string> space;
    std::int64_t batch = 8;
    Optimizer optimizer = Optimizer::sgd;
    study::Settings settings;
};

/// What one point of the space asks for.
struct Asked {
    std::string model;
    std::int64_t batch = 1;
    std::map<std::string, double> values;  // of the training
    std::string text;
};

class StudyTrials {
public:
    /// Keeps a reference. InputError for what --space or --machine cannot be.
    explicit StudyTrials(const StudyJob& job);

    const study::Settings& settings() const { return settings_; }
    bool predicts() const { return machine_.has_value(); }
    std::int64_t devices() const { return device_count(*machine_); }  // of the machine that it predicts on
    Asked asked(const study::Point& point) const;
    const Network& network(const std::string& model);
    /// Of one training step, in seconds: predicted on the machine. Without one in operations, so that ranks get alike.
    double cost_of_step(const study::Point& point);
    /// How `run` trains it up to `until` steps; its checkpoint is a folder, or "" for none.
    run::Options training(const Asked& asked, const std::string& checkpoint, bool goes_on, int until) const;

private:
    const StudyJob& job_;
    study::Settings settings_;
    std::vector<study::Parameter> space_;
    std::optional<Machine> machine_;
    std::map<std::string, Network> networks_;
    std::map<std::string, double> costs_;
};

/// Trains on all ranks, each the turns that are its own; checkpoints lie in a folder that goes with this.
class StudyTraining {
public:
    /// Keeps references. All ranks make one together.
    StudyTraining(StudyTrials& trials, const StudyJob& job, const kernels::Communicator& world, kernels::Choices tuned);
    ~StudyTraining();
    StudyTraining(const StudyTraining&) = delete;
    StudyTraining& operator=(const StudyTraining&) = delete;

    /// Called by all ranks together; each gets the results of all.
    study::Results train(const std::vector<study::Trial>& trials, const std::vector<study::Turn>& turns,
                         const study::Division& division);

private:
    std::string folder_of(int trial) const;
    run::Result train_one(const study::Trial& trial, const study::Turn& turn);

    StudyTrials& trials_;
    const StudyJob& job_;
    const kernels::Communicator& world_;
    kernels::Choices tuned_;
    std::string folder_;
};

}  // namespace rehearse::cli
