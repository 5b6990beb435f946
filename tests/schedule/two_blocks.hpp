// SPDX-License-Identifier: Apache-2.0
// A transformer of two blocks, and what its ranks bring together.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "models/zoo/transformer.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// A decoder of two blocks of width 8, on 6 of 12 words.
inline Network two_blocks() {
    return models::transformer(
        {.name = "two", .layers = 2, .hidden = 8, .heads = 4, .vocabulary = 12, .positions = 6, .keep = 1}, 6);
}

/// Collectives of one layer of one micro-batch, by kind, each of so many elements.
inline std::map<CollectiveKind, int> collectives_of_layer(const char* plan, std::int64_t elements,
                                                          const Network& network = two_blocks(),
                                                          const std::string& block = "layer1.") {
    Machine machine;
    machine.name = "host";
    machine.nodes.push_back({"host", 1, {}, {}});
    for (int i = 0; i < 2; ++i) machine.nodes[0].vertices.push_back({"gpu", VertexKind::device, 0});
    const Schedule schedule = make_schedule(network, machine, parse_plan(plan), {.devices = 2, .batch_per_device = 6});
    std::map<CollectiveKind, int> count;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr || !step.name.starts_with(block) || action->micro_batch != 1) continue;
        EXPECT_EQ(action->elements, elements) << step.name;
        ++count[action->kind];
    }
    return count;
}

}  // namespace rehearse::schedule
