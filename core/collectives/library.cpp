// SPDX-License-Identifier: Apache-2.0
#include "core/collectives/library.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace rehearse {

namespace {

struct Told {
    std::mutex mutex;
    std::map<std::pair<std::string, std::string>, CollectiveSoftware> by_machine;
};
Told& told() {
    static Told all;
    return all;
}

}  // namespace

CollectiveSoftware collectives_of(const Machine& machine) {
    const std::scoped_lock lock{told().mutex};
    const auto found = told().by_machine.find({machine.origin, machine.name});
    return found == told().by_machine.end() ? CollectiveSoftware{} : found->second;
}

void tell_collectives(const Machine& machine, CollectiveSoftware software) {
    const std::scoped_lock lock{told().mutex};
    told().by_machine.insert_or_assign({machine.origin, machine.name}, std::move(software));
}

}  // namespace rehearse
