// SPDX-License-Identifier: Apache-2.0
// What a stage would hand on to the next one, wherever it ended.
#pragma once

#include <vector>

#include "core/schedule.hpp"
#include "schedule/axes/stages.hpp"

namespace rehearse::schedule {

/// By layer, whether all ranks along `axis` make the same output and have the same gradient of it: of a copy each has a
/// part of the gradient, of a layer with cut weights a part of the output.
std::vector<bool> same_on_all(const Part& part, const std::string& axis);

/// Of one sample and rank: tensors that go to the next stage, and gradients that come back from it.
struct HandOver {
    std::int64_t outputs = 0, output_elements = 0;
    std::int64_t gradients = 0, gradient_elements = 0;
    bool operator==(const HandOver&) const = default;
};

/// By the end of a stage, from 0 to layers.size(): all that layers before it made and one behind it reads. Where ranks
/// share that (Scatter), each its piece. What ranks gather for one reader stays with the reader, as cut_stages has it.
std::vector<HandOver> hand_overs(const Part& part, const Scatter& scatter);

}  // namespace rehearse::schedule
