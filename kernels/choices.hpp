// SPDX-License-Identifier: Apache-2.0
// Which implementation runs each pass of an operator: what the user asks for, else what was measured to be fastest,
// else the first in the order of backends().
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/device.hpp"

namespace rehearse::kernels {

struct Choice {
    const Backend* backend = nullptr;
    int threads = 0;  // of the kernel; 0: as many as the caller has
    bool operator==(const Choice&) const = default;
};

/// The fastest of each problem, by to_string(problem).
using Choices = std::map<std::string, Choice>;

/// Which kernels a caller lets choose_passes() select.
struct KernelSelection {
    std::string backend{}, algorithm{};  // see choose(); empty: the best
    Bytes scratch_limit = default_scratch_limit;
    Choices tuned{};  // not looked at where a backend, an algorithm or a device is asked for
    Device* device = nullptr;
};

/// Of each pass; without a backend where the operator has no such pass.
using PassChoices = std::array<Choice, 4>;
inline const Choice& of(const PassChoices& choices, Pass pass) { return choices[static_cast<std::size_t>(pass)]; }

/// Passes may differ, except where a backend keeps a workspace from forward to backward: all passes of such an operator
/// come from one backend. A tuned choice that does not support its problem here, or needs more scratch memory than
/// allowed, is not followed. InputError as choose().
PassChoices choose_passes(const Op& op, std::int64_t batch, DataType type, const KernelSelection& selection);

/// How many of the operator's passes are what `selection.tuned` says.
int count_tuned(const Op& op, std::int64_t batch, DataType type, const KernelSelection& selection,
                const PassChoices& choices);

/// Every implementation that runs the problem within `limit`, each once: not a whole library whose algorithms are
/// listed (it takes one of them), and the reference only where it is alone. Those that cannot are added to `refusals`,
/// with the reason, where a caller gives one.
std::vector<const Backend*> implementations(const Problem& problem, Bytes limit, std::string* refusals = nullptr);

/// The kernel of a choice: while it is made and run the calling thread has `choice.threads` OpenMP threads.
std::unique_ptr<Kernel> prepare(const Choice& choice, const Problem& problem, Bytes limit);

}  // namespace rehearse::kernels
