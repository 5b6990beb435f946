// SPDX-License-Identifier: Apache-2.0
// What holds of every data-parallel schedule.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

struct Setting {
    Network network;
    std::string plan;
    std::int64_t devices;
};

std::vector<Setting> settings() {
    std::vector<Setting> result;
    for (const Network& network : {two_dense(), residual(), tower(1), tower(9)}) {
        for (const std::string plan : {"data:bucket=1B", "data:bucket=600B:first=1B", "data:bucket=1kB:first=300B",
                                       "data", "data:bucket=600B:overlap=off"}) {
            for (const std::int64_t devices : {1, 2, 6, 24}) result.push_back({network, plan, devices});
        }
    }
    return result;
}

template <typename Property>
void for_each_setting(Property holds) {
    for (const Setting& setting : settings()) {
        SCOPED_TRACE(setting.network.name + ", " + setting.plan + " on " + std::to_string(setting.devices));
        const Schedule schedule = schedule_of(setting.network, setting.plan, setting.devices);
        holds(setting, schedule, schedule.classes.at(0).steps);
    }
}

TEST(AnyDataParallel, RunsEachPassOnceAndForwardFirst) {
    for_each_setting([](const Setting&, const Schedule& schedule, const std::vector<Step>& steps) {
        std::set<std::string> names;
        std::map<int, int> forward_at;
        for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
            const Step& step = steps[static_cast<std::size_t>(i)];
            EXPECT_TRUE(names.insert(step.name).second) << step.name << " runs twice";
            const auto* compute = std::get_if<Compute>(&step.action);
            if (compute == nullptr) continue;
            const Layer& layer = schedule.network.layers[static_cast<std::size_t>(compute->layer)];
            EXPECT_TRUE(has_pass(layer.op, compute->problem.pass)) << step.name;
            EXPECT_EQ(compute->problem.op, layer.op);
            if (compute->problem.pass == Pass::forward) {
                forward_at[compute->layer] = i;
                for (const int input : layer.inputs) EXPECT_LT(input, compute->layer);
            } else {
                EXPECT_TRUE(forward_at.contains(compute->layer)) << step.name << " runs before its forward pass";
            }
        }
        for (const Layer& layer : schedule.network.layers) {
            EXPECT_EQ(names.contains(layer.name + ":forward"), has_pass(layer.op, Pass::forward)) << layer.name;
            if (has_pass(layer.op, Pass::backward_weights)) {
                EXPECT_TRUE(names.contains(layer.name + ":backward_weights"));
            }
        }
    });
}

// What the backward pass of a layer needs has been made: the gradients of all that read its output.
TEST(AnyDataParallel, GoesBackwardsFromTheLossWithoutAGap) {
    for_each_setting([](const Setting&, const Schedule& schedule, const std::vector<Step>& steps) {
        const std::vector<std::vector<int>> readers = consumers(schedule.network);
        std::set<int> done;  // layers whose inputs' gradients exist
        for (const Step& step : steps) {
            const auto* compute = std::get_if<Compute>(&step.action);
            if (compute == nullptr || compute->problem.pass == Pass::forward) continue;
            for (int reader : readers[static_cast<std::size_t>(compute->layer)]) {
                const auto op_of = [&](int i) { return schedule.network.layers[static_cast<std::size_t>(i)].op; };
                if (std::holds_alternative<Flatten>(op_of(reader))) {
                    reader = readers[static_cast<std::size_t>(reader)].at(0);
                }
                EXPECT_TRUE(done.contains(reader)) << step.name;
            }
            if (compute->problem.pass == Pass::backward_data) done.insert(compute->layer);
        }
    });
}

TEST(AnyDataParallel, PutsEachGradientIntoOneBucketAndUpdatesItOnce) {
    for_each_setting([](const Setting& setting, const Schedule& schedule, const std::vector<Step>& steps) {
        std::multiset<int> layers;
        std::int64_t elements = 0;
        for (const Bucket& bucket : schedule.classes.at(0).part.buckets) {
            layers.insert(bucket.layers.begin(), bucket.layers.end());
            elements += bucket.elements;
        }
        EXPECT_EQ(elements, parameters(schedule.network));
        for (std::size_t i = 0; i < schedule.network.layers.size(); ++i) {
            EXPECT_EQ(layers.count(static_cast<int>(i)), parameters(schedule.network.layers[i].op) > 0 ? 1U : 0U);
        }
        std::vector<int> reduced, updated;
        for (const Step& step : steps) {
            if (const auto* reduce = std::get_if<Communicate>(&step.action)) reduced.push_back(reduce->bucket());
            const auto* update = std::get_if<Update>(&step.action);
            if (update == nullptr) continue;
            updated.push_back(update->bucket);
            EXPECT_EQ(std::get<SgdUpdate>(update->problem.op).count,
                      schedule.classes.at(0).part.buckets[static_cast<std::size_t>(update->bucket)].elements);
        }
        EXPECT_EQ(updated.size(), schedule.classes.at(0).part.buckets.size());
        EXPECT_TRUE(std::ranges::is_sorted(updated));
        if (setting.devices > 1) {
            EXPECT_EQ(reduced, updated);
        }
        if (setting.devices == 1) {
            EXPECT_TRUE(reduced.empty());
        }
    });
}

TEST(AnyDataParallel, SendsABucketOnlyWhenItsGradientsAreMade) {
    for_each_setting([](const Setting& setting, const Schedule& schedule, const std::vector<Step>& steps) {
        std::set<int> made;
        const bool overlap = parse_plan(setting.plan).overlap;
        int last_compute = -1;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (std::holds_alternative<Compute>(steps[i].action)) last_compute = static_cast<int>(i);
        }
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const Step& step = steps[i];
            for (const int before : step.after) EXPECT_LT(before, static_cast<int>(i));
            if (const auto* compute = std::get_if<Compute>(&step.action)) {
                const Op& op = schedule.network.layers[static_cast<std::size_t>(compute->layer)].op;
                const Pass gradient =
                    has_pass(op, Pass::backward_weights) ? Pass::backward_weights : Pass::backward_data;
                if (compute->problem.pass == gradient) made.insert(compute->layer);
            } else if (const auto* reduce = std::get_if<Communicate>(&step.action)) {
                ASSERT_EQ(step.after.size(), 1U);
                const std::vector<int>& layers =
                    schedule.classes.at(0).part.buckets[static_cast<std::size_t>(reduce->bucket())].layers;
                for (const int layer : layers) EXPECT_TRUE(made.contains(layer)) << step.name;
                const auto& awaited = std::get<Compute>(steps[static_cast<std::size_t>(step.after[0])].action);
                if (overlap) {
                    EXPECT_EQ(awaited.layer, layers.back()) << "not a step later than its last gradient";
                }
                if (!overlap) {
                    EXPECT_EQ(step.after[0], last_compute);
                }
            }
        }
    });
}

}  // namespace
}  // namespace rehearse::schedule
