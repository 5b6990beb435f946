// SPDX-License-Identifier: Apache-2.0
// The steps of recordings, call by call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/recording.hpp"

namespace rehearse::calibrate {

/// One step of one rank: some of Recording::calls.
struct StepCalls {
    const Recording* recording = nullptr;
    int step = 0;
    std::size_t first = 0, calls = 0;
    const RecordedCall& call(std::size_t i) const { return recording->calls[first + i]; }
    std::string_view name(std::size_t i) const { return recording->name_of(call(i)); }
    std::string_view shapes(std::size_t i) const { return recording->texts[call(i).shapes]; }
};

/// All steps; of three or more of a rank without the first, a warm-up. InputError where there are none.
std::vector<StepCalls> steps_of(std::span<const Recording> recordings);

/// Equal where names, shapes and the steps of autograd's numbers are.
std::uint64_t signature(const StepCalls& step);

}  // namespace rehearse::calibrate
