// SPDX-License-Identifier: Apache-2.0
// Samples on their way to a program: made in memory of the host, brought to where the program reads them. What the host
// wrote there itself, a device would have to fetch page by page in the middle of a step.
#pragma once

#include <cstddef>
#include <memory>

#include "run/data/prefetch.hpp"
#include "run/program.hpp"

namespace rehearse::run {

/// Room for all samples of a step of a program; pinned, where it has a device.
class Handover {
public:
    explicit Handover(Program& program);
    const ReadBatch& room() const { return room_; }
    bool is_of(const Program& program) const { return &program == program_; }

private:
    const Program* program_;
    std::shared_ptr<std::byte> memory_;
    ReadBatch room_;
};

/// Where the program reads it, when it returns. InputError: a label that asks for nothing, which a device's kernels do
/// not leave out.
void bring(const ReadBatch& batch, Program& program);

}  // namespace rehearse::run
