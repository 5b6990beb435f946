// SPDX-License-Identifier: Apache-2.0
// Who has taken work from a file that several processes share, and whether they still run.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::store {

/// Names this process among all of all hosts and times: boot, namespace of process numbers, number, and when it began.
std::string this_process();

/// Whether the process that this_process() named has ended. False where that cannot be known: it may be of another
/// host.
bool has_ended(std::string_view process);

}  // namespace rehearse::store
