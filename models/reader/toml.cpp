// SPDX-License-Identifier: Apache-2.0
#include "models/reader/toml.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace rehearse::models {

namespace {

constexpr int most_parts = 32;  // of a key; toml++ itself holds values to 256 levels

/// Behind the quoted text that begins at `at`; the end of the line where nothing ends it there.
std::size_t behind_quotes(std::string_view text, std::size_t at) {
    const char quote = text[at];
    for (++at; at < text.size() && text[at] != '\n'; ++at) {
        if (text[at] == quote) return at + 1;
        if (text[at] == '\\' && quote == '"' && at + 1 < text.size() && text[at + 1] != '\n') ++at;
    }
    return at;
}

/// The first line with a key of more parts than `most_parts`; 0 without one.
int line_of_deep_key(std::string_view text) {
    constexpr std::string_view between_keys = ",=[]{}#\n";
    int line = 1, parts = 1;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == '"' || c == '\'') {
            at = behind_quotes(text, at);
            continue;
        }
        if (c == '.' && ++parts > most_parts) return line;
        if (between_keys.find(c) != std::string_view::npos) parts = 1;
        if (c == '\n') ++line;
        ++at;
    }
    return 0;
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& origin) {
    if (const int line = line_of_deep_key(text); line > 0) {
        throw InputError(
            fmt::format("{}:{}: not TOML that is read here: a key of more than {} parts with points "
                        "between them",
                        origin, line, most_parts));
    }
    try {
        return toml::parse(text, origin);
    } catch (const toml::parse_error& error) {
        throw InputError(fmt::format("{}:{}: not TOML: {}", origin, error.source().begin.line, error.description()));
    }
}

}  // namespace rehearse::models
