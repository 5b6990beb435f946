// SPDX-License-Identifier: Apache-2.0
// MPI libraries by their decision tables: which all-reduce each takes for so many ranks and bytes. models/mpi/*.toml
// hold them with their sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/collectives/collective.hpp"
#include "core/units.hpp"

namespace rehearse::models {

/// A library of a version. `text` is its name, or its name and version: "openmpi", "openmpi(4.0)".
struct MpiLibrary {
    struct Band {
        std::int64_t ranks = 0;       // fewer than so many; 0: any number
        std::vector<double> bytes;    // fewer than so many take the algorithm of the same place
        std::vector<Algorithm> take;  // one more
    };
    std::string name, source;
    double leaders = 0;  // bytes up to which one rank of a node speaks for the others
    std::vector<Band> bands;

    /// For `ranks` ranks, `per_node` on each node, and so much data. InputError never: tables are checked when read.
    Algorithm all_reduce(std::int64_t ranks, std::int64_t per_node, Bytes data) const;
};

struct MpiLibraryName {
    std::string_view name, summary;
};
std::vector<MpiLibraryName> mpi_libraries();
bool is_mpi_library(std::string_view text);
/// The newest version that is not newer than the one named. InputError where it is older than any that is known, or is
/// not a version.
MpiLibrary mpi_library(std::string_view text);

}  // namespace rehearse::models
