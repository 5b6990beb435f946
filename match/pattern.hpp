// SPDX-License-Identifier: Apache-2.0
// Regular expressions of users, in time that no expression and no text can blow up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::match {

/// Whether letters of the other case match, too.
enum class Case { matters, ignored };

/// A regular expression in RE2's syntax (https://github.com/google/re2/wiki/Syntax), compiled. Matching takes time in
/// proportion to the text. Copies share what was compiled; several threads may match at once.
class Pattern {
public:
    /// InputError "--filter '(': not a regular expression: missing ): (" with `what` in front where `expression` is
    /// none, is too deeply nested, too large, or needs lookaround or references to groups.
    explicit Pattern(std::string_view expression, std::string_view what, Case letters = Case::matters);

    /// Whether a part of `text` matches.
    bool is_in(std::string_view text) const;

    /// Where the whole of `text` matches: what each group of the expression matched, empty for a group that took no
    /// part. Nothing where it does not match.
    std::optional<std::vector<std::string>> groups_of(std::string_view text) const;

private:
    class Compiled;
    std::shared_ptr<const Compiled> compiled_;
};

}  // namespace rehearse::match
