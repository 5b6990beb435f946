// SPDX-License-Identifier: Apache-2.0
// How many learners a device trains at the same time, and with which batch, to reach an accuracy soonest (Koliousis et
// al. 2019, Crossbow): hardware efficiency is simulated, statistical efficiency the model of the critical batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/job.hpp"
#include "predict/prediction.hpp"

namespace rehearse::search {

struct LearnersRequest {
    predict::Job job;  // its batch is not looked at, nor is the number of learners in its plan
    std::int64_t devices = 1;
    std::vector<std::int64_t> batches;  // samples of a micro-batch that a learner takes, to be tried
    std::int64_t most = 16;             // learners of a device
    double gain = 0.05;                 // a learner is added as long as it gains so much of throughput
};

/// One number of learners with one batch each.
struct LearnersPoint {
    std::int64_t batch = 0, learners = 1;
    std::string plan;
    predict::Point point{};
    double gain = 0;     // of throughput, over a learner less
    bool tuned = false;  // by Crossbow's auto-tuner, among the points of this batch
};

struct LearnersResult {
    std::vector<LearnersPoint> points;  // batch after batch, those that the auto-tuner tries; empty: nothing fits
    std::size_t best = 0;               // of all: least time to accuracy where that is known, else highest throughput
    bool by_accuracy = false;           // which of both
};

/// Crossbow's auto-tuner for each batch: one learner more as long as that gains throughput, fits, and takes no more
/// samples a step than the data set has. InputError for a plan that has learners or local already or no data axis, for
/// batches that are all beyond the data set, and as predict::predict.
LearnersResult search_learners(const LearnersRequest& request);

}  // namespace rehearse::search
