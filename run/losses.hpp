// SPDX-License-Identifier: Apache-2.0
// What a rank's training step came to: the loss of its samples, and how well their pixels are told apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/rank_context.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

class Losses {
public:
    /// InputError where the network has no loss.
    explicit Losses(const RankContext& rank);

    void begin_step();
    /// Adds a forward pass of a loss that has been computed.
    void count(const ReadyStep& ready);

    /// Loss of each of this rank's samples, summed since begin_step; 0 on a rank that does not compute it.
    double sum() const { return sum_; }
    bool has_loss() const { return has_loss_; }
    /// Classes of the network's loss where it has one label a pixel; else 0.
    std::int64_t pixel_classes() const { return pixel_classes_; }
    /// Of such: how many pixels of each class (rows) this rank's scores took for which (columns), since begin_step;
    /// pixels whose label has no weight are left out.
    std::span<const double> confusion() const { return confusion_; }

private:
    void count_pixels(const ReadyStep& ready);
    /// The same numbers, where the host reads them: in `room`, if they lie on a device.
    template <typename T>
    std::span<const T> here(std::span<const T> numbers, kernels::Device::Memory& room);

    kernels::Device* device_;
    kernels::Device::Memory losses_, scores_, labels_;  // room for what is looked at
    double sum_ = 0;
    bool has_loss_ = false;
    std::int64_t micro_batch_, pixel_classes_ = 0;
    std::vector<double> class_weights_;
    std::vector<double> confusion_;
};

/// Intersection over union of each class that occurs or is taken for one, their mean.
double mean_iou(std::span<const double> confusion, std::int64_t classes);

}  // namespace rehearse::run
