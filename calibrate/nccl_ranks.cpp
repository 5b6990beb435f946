// SPDX-License-Identifier: Apache-2.0
#include "calibrate/nccl_ranks.hpp"

#include <algorithm>
#include <set>

namespace rehearse::calibrate {

namespace {

Communicator communicator_of(const std::vector<RankLine>& lines, const std::string* group) {
    Communicator found;
    std::set<std::string_view> hosts;
    for (const RankLine& line : lines) {
        if (group != nullptr && line.group != *group) continue;
        ++found.ranks;
        hosts.insert(line.host);
    }
    found.hosts = hosts.contains("") ? 0 : std::ssize(hosts);
    return found;
}

}  // namespace

RankLine rank_line(const std::vector<std::string_view>& words) {
    RankLine line;
    for (std::size_t i = 2; i + 1 < words.size(); ++i) {
        if (words[i] == "Group" && line.group.empty()) line.group = words[i + 1];
        if (words[i] == "on" && line.host.empty()) line.host = words[i + 1];
    }
    return line;
}

std::vector<Communicator> communicators(const std::vector<RankLine>& lines, std::int64_t otherwise) {
    std::vector<Communicator> found;
    std::set<std::string> groups;
    for (const RankLine& line : lines) groups.insert(line.group);
    if (groups.size() > 1) {
        const Communicator first = communicator_of(lines, &*groups.begin());
        const bool alike = std::ranges::all_of(
            groups, [&](const std::string& group) { return communicator_of(lines, &group).ranks == first.ranks; });
        if (alike && first.ranks > 1) found.push_back(first);
    }
    found.push_back(lines.empty() ? Communicator{otherwise, 0} : communicator_of(lines, nullptr));
    return found;
}

}  // namespace rehearse::calibrate
