// SPDX-License-Identifier: Apache-2.0
#include "schedule/remarks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::schedule {

std::vector<std::string> guess_warnings(const Network& network) {
    const double guessed = guessed_share(network);
    if (!(guessed > 0)) return {};
    return {fmt::format("{}: {:.1f} % of the bytes that cross memory are of unknown operators, whose time is guessed",
                        network.name, 100 * guessed)};
}

std::vector<std::string> notes_of_plan(const Network& network, const Schedule& schedule) {
    std::vector<std::string> notes;
    for (const std::string& note : schedule.network.notes) {
        if (std::ranges::find(network.notes, note) == network.notes.end()) notes.push_back(note);
    }
    return notes;
}

}  // namespace rehearse::schedule
