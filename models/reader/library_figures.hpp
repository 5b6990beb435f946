// SPDX-License-Identifier: Apache-2.0
// [collectives.figures] of a machine file: what its own tables say of its library, in place of what the library's file
// says.
#pragma once

#include <memory>
#include <string>

#include "core/collectives/library.hpp"
#include "models/reader/machine_reader.hpp"

namespace rehearse::models {

/// A library that has the table's figures for this transport (empty: the first), and for all generations of devices.
/// InputError where a figure cannot be.
std::shared_ptr<const CollectiveLibrary> with_figures(const CollectiveLibrary& library, const std::string& transport,
                                                      Reader table);

/// The table, with the figures in which `library` differs from `shipped`; empty where there are none.
std::string written_figures(const CollectiveLibrary& library, const CollectiveLibrary& shipped,
                            const std::string& transport);

}  // namespace rehearse::models
