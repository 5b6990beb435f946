// SPDX-License-Identifier: Apache-2.0
// The files that a command will write, looked at before it begins to work.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace rehearse::cli {

/// InputError where two options of `command` name one file to write, of which the second would replace the first, or
/// where --output cannot be written or would replace a file without --force.
void check_outputs(const CLI::App& command);

}  // namespace rehearse::cli
