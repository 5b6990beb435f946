// SPDX-License-Identifier: Apache-2.0
// Where the making of a rank class's steps has come to: what all share who add steps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/index.hpp"
#include "core/schedule.hpp"
#include "schedule/steps.hpp"

namespace rehearse::schedule {

inline constexpr int none = -1;

struct StepContext {
    StepContext(const Schedule& of, const Plan& by, const StepOptions& how, RankClass& made);

    const std::vector<Layer>& layers() const { return part.network.layers; }
    /// "conv1:forward", of several micro-batches "conv1:forward#2".
    std::string name_of(int layer, std::string_view what, std::string_view suffix) const;
    /// The new step's index. Of `after` what is `none`, or on the same stream, is left out.
    int append(std::string name, Stream stream, Action action, std::vector<int> after);

    /// Whether the item's micro-batch is the last of the class.
    bool in_last() const;
    /// Along the pipeline, how far it is to the rank of the stage so much further that has the item's micro-batch.
    std::int64_t places_to(int stages_on) const;

    const Schedule& schedule;
    const Plan& plan;
    const StepOptions& options;
    const RankClass& rank_class;
    const Part& part;
    std::vector<Step>& steps;
    std::int64_t samples;        // of a micro-batch
    Item item{};                 // of the order that is being made now
    int last_compute = none;     // step
    std::vector<int> output_by;  // by layer: the step of another stream that gives its output in this item
    /// By layer: steps of other streams that give a part of the gradient of its output in this item.
    std::vector<std::vector<int>> gradient_by;
    std::vector<int> bucket_of;     // by layer
    std::vector<int> ready_by;      // by bucket: the step that last brought its gradients together
    std::vector<int> weights_by{};  // steps that bring new weights inside a step: whatever is computed next waits
};

}  // namespace rehearse::schedule
