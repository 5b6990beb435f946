// SPDX-License-Identifier: Apache-2.0
// What searches have simulated, in a SQLite file: one that was interrupted goes on, several at once share the work.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "search/search.hpp"

namespace rehearse::search {

/// Empty, or why this build keeps nothing: "built without SQLite (...)".
std::string_view absent_store();

class Store {
public:
    /// `job`: all that a result depends on beside plan and devices: network, machine, batch, precision, optimizer,
    /// limit of memory, version. Makes the file where it is missing. InputError: not a file of ours; BackendError: it
    /// cannot be written.
    Store(const std::string& path, std::string job);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// Good as long as the store lives. A claim is another's to take when the process that made it has
    /// ended, as far as it can be seen from this host, or after two minutes.
    Others others();

private:
    class Plans;
    std::unique_ptr<Plans> plans_;
};

}  // namespace rehearse::search
