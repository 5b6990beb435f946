// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recorded_profile.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace rehearse::calibrate {

std::vector<StepCalls> steps_of(std::span<const Recording> recordings) {
    std::vector<StepCalls> steps;
    for (const Recording& recording : recordings) {
        const bool warm = recording.steps.size() >= 3;
        for (std::size_t i = 0; i < recording.calls.size();) {
            const int step = recording.calls[i].step;
            std::size_t end = i;
            while (end < recording.calls.size() && recording.calls[end].step == step) ++end;
            if (step > 0 || !warm) steps.push_back({&recording, step, i, end - i});
            i = end;
        }
    }
    if (steps.empty()) {
        throw InputError(fmt::format("{}: no training step with an operator in it", recordings.front().path));
    }
    return steps;
}

// FNV-1a (Fowler, Noll, Vo).
std::uint64_t signature(const StepCalls& step) {
    std::uint64_t hash = 14695981039346656037U;
    const auto add = [&](std::string_view text) {
        for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
        hash = (hash ^ 0xFFU) * 1099511628211U;
    };
    std::int64_t before = -1;
    for (std::size_t i = 0; i < step.calls; ++i) {
        add(step.name(i));
        add(step.shapes(i));
        const std::int64_t number = step.call(i).sequence;
        hash = (hash ^ static_cast<std::uint64_t>(number < 0 || before < 0 ? number >= 0 : number - before)) *
               1099511628211U;
        if (number >= 0) before = number;
    }
    return hash;
}

}  // namespace rehearse::calibrate
