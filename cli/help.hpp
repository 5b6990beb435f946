// SPDX-License-Identifier: Apache-2.0
// What `rehearse COMMAND --help` says beside the options' own words: defaults, units and ranges, the columns of the
// command's tables, and the grammar of its problem strings.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/screen.hpp"

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace rehearse::cli {

/// Lines of at most `most` characters; those after the first begin with `indent` spaces. A word that is longer is
/// broken behind a comma, bar, colon, slash or bracket.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t most = most_columns());

/// Options one below the other, their texts wrapped.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// To each option of a command: its range, which is also checked, and its default, or what happens without it.
void annotate(CLI::App& command);

/// "Columns of its tables: ..." for the footer of --help; "" for a command without tables.
std::string columns_help(std::string_view command);

/// How problems are written, an example an operator: for bench and explain; "" for other commands.
std::string problems_help(std::string_view command);

}  // namespace rehearse::cli
