// SPDX-License-Identifier: Apache-2.0
// When a training has learnt enough.
#pragma once

#include <cstdint>
#include <deque>

#include "run/train.hpp"

namespace rehearse::run {

/// The loss of samples before they are learnt, each seen for the first time where data is made up, is that of a test
/// (prequential; Dawid 1984): a mean over the last `target_samples` of them says how well the model does.
class LossTarget {
public:
    explicit LossTarget(const Options& options) : loss_(options.target_loss), samples_(options.target_samples) {}

    /// Of a step, with the mean loss of its batch: what is reached now, over the last steps that have as many samples
    /// together, or all where there are fewer.
    TargetLoss after(double loss, std::int64_t batch) {
        if (loss_ <= 0) return {};
        steps_.push_back({loss, batch});
        sum_ += loss * static_cast<double>(batch);
        seen_ += batch;
        while (seen_ - steps_.front().batch >= samples_) {
            sum_ -= steps_.front().loss * static_cast<double>(steps_.front().batch);
            seen_ -= steps_.front().batch;
            steps_.pop_front();
        }
        const double mean = sum_ / static_cast<double>(seen_);
        return {mean, seen_, seen_ >= samples_ && mean <= loss_};
    }

private:
    struct Step {
        double loss;
        std::int64_t batch;
    };
    double loss_, sum_ = 0;
    std::int64_t samples_, seen_ = 0;
    std::deque<Step> steps_{};
};

}  // namespace rehearse::run
