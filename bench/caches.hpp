// SPDX-License-Identifier: Apache-2.0
// The data caches of this host, and its memory.
#pragma once

#include <string>
#include <vector>

#include "core/units.hpp"

namespace rehearse::bench {

struct Cache {
    int level = 1;
    Bytes size;         // of one
    int sharers = 1;    // logical CPUs that share one
    int instances = 1;  // on the host
};

/// From the innermost; of Linux's sysfs under `root`, which tests replace. Where it says nothing: 32 KiB, 1 MiB and 32
/// MiB, as if each CPU had its own first two.
std::vector<Cache> data_caches(const std::string& root = "/sys/devices/system/cpu");

/// What can still be had without swapping: the kernel's estimate, or what is left of the control group's limit.
Bytes available_memory();

}  // namespace rehearse::bench
