// SPDX-License-Identifier: Apache-2.0
// Algorithm `auto` from what `rehearse bench --out` has written.
#pragma once

#include <string>

#include "bench/collectives.hpp"
#include "kernels/comm/choice.hpp"

namespace rehearse::cli {

/// Rank 0 reads the file; all ranks get the same choice. InputError when it is no such file or has no sample of this
/// kind, type and number of ranks.
kernels::AlgorithmChoice read_choice(const std::string& path, const bench::Traffic& traffic,
                                     const kernels::Communicator& ranks);

}  // namespace rehearse::cli
