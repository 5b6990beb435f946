// SPDX-License-Identifier: Apache-2.0
// Algorithm `auto`: which one is fastest for how much data, as measured.
#pragma once

#include <vector>

#include "core/collectives/collective.hpp"
#include "core/units.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::kernels {

/// Of one kind of collective on one group.
class AlgorithmChoice {
public:
    void add(Bytes size, const Algorithm& algorithm, Seconds time);
    bool empty() const { return rows_.empty(); }
    /// The fastest at the measured size that is nearest by its ratio; of equally fast ones the first in the alphabet.
    /// Not of an empty one.
    Algorithm best(Bytes size) const;

private:
    struct Row {
        Bytes size;
        Algorithm algorithm;
        Seconds time;
    };
    std::vector<Row> rows_;
};

/// Collective: runs every algorithm of the kind that needs no group of nodes, on 1 KiB, 32 KiB, 1 MiB and 16 MiB or
/// what of it is not more than `most`, some hundredths of a second in all on a local host. All ranks get the same.
AlgorithmChoice measure_choice(Communicator& communicator, CollectiveKind kind, Bytes most);

}  // namespace rehearse::kernels
