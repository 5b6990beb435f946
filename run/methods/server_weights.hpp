// SPDX-License-Identifier: Apache-2.0
// The weights that a parameter server keeps, and what it makes of each push.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "run/methods/method.hpp"
#include "run/program.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// Gradients of dense layers from the sufficient factors that workers send instead.
class Products {
public:
    explicit Products(const KernelSelection& selection) : selection_(selection) {}

    void multiply(const PushPull& push_pull, std::span<const float> factors, kernels::View gradient);

private:
    const KernelSelection& selection_;
    std::map<int, std::unique_ptr<kernels::Kernel>> kernels_;  // by bucket
};

/// What a server keeps of a rank of the workers, and does with what comes from there.
class KeptPlace {
public:
    /// Of the first worker's rank.
    KeptPlace(const Schedule& schedule, int server, RankIndex rank, const Options& options);

    const std::vector<const PushPull*>& pushes() const { return pushes_; }
    void visit_state(const UseNumbers& use);
    /// What has come is in `memory`, where the answer is then.
    void take(const PushPull& push, std::span<float> memory);

private:
    void pull(std::span<float> model, int bucket);

    const Schedule& schedule_;
    KernelSelection selection_;
    Schedule kept_;
    Program program_;
    Products products_;
    std::vector<const PushPull*> pushes_;
    std::map<int, ReadyStep*> update_of_;     // by bucket
    std::map<int, std::vector<float>> last_;  // by bucket: where the average was, if it goes on by its last step
};

}  // namespace rehearse::run
