// SPDX-License-Identifier: Apache-2.0
// What completions and manual pages take from a command's options.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rehearse::cli {

/// The options that have a long name, in the order of --help; `--help` itself among them.
std::vector<const CLI::Option*> named_options(const CLI::App& command);

/// Whether a word must follow the option.
bool takes_value(const CLI::Option& option);

/// What may follow an option where only some words may (`table`, `csv`, `json` of --format) or where we know names
/// (networks of --model); empty where anything may, as sizes and files.
std::vector<std::string> words_of(const CLI::Option& option);

/// What may stand behind a command without an option's name (networks of `models`, kinds of `bench`), where we know it.
std::vector<std::string> positional_words(const CLI::App& command);

/// Whether a file may stand where these words may.
bool takes_file(const CLI::Option& option);

/// An option's text without its default and range, those of `--help` in brackets at its end.
std::string short_text(const CLI::Option& option);

}  // namespace rehearse::cli
