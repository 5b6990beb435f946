// SPDX-License-Identifier: Apache-2.0
// How wide what is printed may be.
#pragma once

#include <cstddef>

namespace rehearse::cli {

/// Characters of a line of help and of a table: as the variable COLUMNS or the terminal says, 60 to 100; 100 where
/// neither says anything, as in files and pipes.
std::size_t most_columns();

}  // namespace rehearse::cli
