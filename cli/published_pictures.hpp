// SPDX-License-Identifier: Apache-2.0
// Charts of published rows and their predictions.
#pragma once

#include <string>
#include <vector>

#include "validate/replay_rows.hpp"

namespace rehearse::cli {

/// InputError where `folder` is a file, or has pictures that nobody allowed to replace.
void check_charts(const std::string& folder, bool force);

/// One SVG a system, machine and metric into the folder, which is made; the files written, older ones replaced.
/// InputError when the folder cannot be.
std::vector<std::string> draw_published(const std::vector<validate::ReplayedRow>& rows, const std::string& folder);

}  // namespace rehearse::cli
