// SPDX-License-Identifier: Apache-2.0
// Which host this is, so that figures measured on another one are not taken for its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/machine.hpp"

namespace rehearse::models {

inline constexpr std::string_view this_host_name = "this-host";

struct Host {
    std::string hostname, cpu;
    std::int64_t cores = 0;  // that this process may use
    bool operator==(const Host&) const = default;
};
Host host_now();
std::string to_string(const Host& host);

/// The calibrated this-host; InputError when there is none yet or it was measured on another host.
Machine load_this_host();

/// On which kernel (by the number of its start), and on which of its cores, this process may run: "NUMBER:0,1". Other
/// hosts of a laboratory of network namespaces have the same kernel.
std::string core_set();

}  // namespace rehearse::models
