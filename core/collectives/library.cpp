// SPDX-License-Identifier: Apache-2.0
#include "core/collectives/library.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace rehearse {

namespace {

struct Told {
    std::mutex mutex;
    std::map<std::string, CollectiveSoftware> by_origin;
};
Told& told() {
    static Told all;
    return all;
}

}  // namespace

CollectiveSoftware collectives_of(const Machine& machine) {
    const std::scoped_lock lock{told().mutex};
    const auto found = told().by_origin.find(machine.origin);
    return found == told().by_origin.end() ? CollectiveSoftware{} : found->second;
}

void tell_collectives(const Machine& machine, CollectiveSoftware software) {
    const std::scoped_lock lock{told().mutex};
    told().by_origin.insert_or_assign(machine.origin, std::move(software));
}

}  // namespace rehearse
