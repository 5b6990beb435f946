// SPDX-License-Identifier: Apache-2.0
// A step of a schedule with all that it touches, so that nothing is left to decide while the clock runs.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/backend.hpp"
#include "kernels/device.hpp"

namespace rehearse::run {

/// `sum += part`, where several layers read one output, or micro-batches give to one gradient.
struct Addition {
    kernels::View sum;
    kernels::ConstView part;
    bool first = false;    // `sum = part`
    kernels::View wide{};  // where `part` is of another type than `sum`: room for it in that type
};

/// A step of the compute stream has a kernel, or takes its piece of a tensor; the others have `data`: what is sent,
/// received or worked on together.
struct ReadyStep {
    const Step* step = nullptr;
    kernels::Kernel* kernel = nullptr;
    kernels::Buffers buffers;
    kernels::View data;
    kernels::View on_device{};            // what of a device's memory is summed, where `data` is staged as it is
    std::span<std::byte> room{};          // of a collective's slots, where what comes in them is read afterwards
    std::function<void()> before, after;  // before the data are sent, after they have come or been computed
    bool host_works = true;               // in these two: a device is waited for first
    std::vector<Addition> additions;      // then
    bool is_loss = false;
    kernels::ConstView scaled{};  // gradients, of an update where the loss is scaled
};

/// Does what follows when a step's data are there, on the host: its `after`, then its additions.
void finish(const ReadyStep& ready);
/// Does the same on the device that has computed the step.
void finish(const ReadyStep& ready, kernels::Device& device);

}  // namespace rehearse::run
