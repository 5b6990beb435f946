// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/control.hpp"

namespace rehearse::sim {

namespace {

// A look-up by the tensor's name and an entry in a list, on a core of a server: general knowledge, unverified. Machines
// with other cores say so (messaging.across.request).
constexpr Seconds usual_request{1e-6};

// Levels below the root of a tree of `children` a rank.
int levels(std::int64_t ranks, std::int64_t children) {
    int count = 0;
    for (std::int64_t held = 1, level = 1; held < ranks; ++count) held += level *= children;
    return count;
}

}  // namespace

Seconds control_time(int control, std::int64_t ranks, std::int64_t tensors, const Machine& machine) {
    if (control == 0 || ranks < 2) return Seconds{0};
    const Seconds request = machine.across.request.source.empty() ? usual_request : machine.across.request.value;
    const Seconds message = machine.fabric.latency.value + machine.across.overhead.value;
    const auto noted = [&](std::int64_t children) { return request * static_cast<double>(children * tensors); };
    if (control == 1) return noted(ranks - 1) + message * static_cast<double>(1 + levels(ranks, 2));
    const double depth = levels(ranks, control);
    return (noted(control) + message * 2) * depth;
}

}  // namespace rehearse::sim
