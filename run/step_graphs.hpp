// SPDX-License-Identifier: Apache-2.0
// What a training step gives to a device, given as graphs: one for each run of compute steps between two places where
// the host waits for the device, or another thread for one of the steps.
#pragma once

#include <cstddef>
#include <map>

#include "kernels/device.hpp"
#include "run/program.hpp"

namespace rehearse::run {

class StepGraphs {
public:
    /// Not `wanted`: every call does nothing. InputError where layers are left to the host.
    StepGraphs(const Schedule& schedule, Program& program, bool wanted);

    /// Step 0 of a training runs kernel by kernel: kernels make what they keep at their first start.
    void begin_training_step();
    /// Before step `index` of the compute stream: it becomes part of a graph, but where `alone`, or where it waits for
    /// the device itself.
    void begin(std::size_t index, bool alone);
    /// Whether the step that has begun is in a graph that the device has been given already: only its numbers count.
    bool given() const { return given_; }
    /// What was kept so far is given to the device: now others may wait for it.
    void flush();

private:
    Program& program_;
    bool wanted_, repeats_;
    int training_steps_ = 0;                                // begun
    std::map<std::size_t, kernels::Device::Graph> graphs_;  // by their first step
    kernels::Device::Graph* open_ = nullptr;                // what is kept is for it
    bool given_ = false;
};

}  // namespace rehearse::run
