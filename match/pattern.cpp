// SPDX-License-Identifier: Apache-2.0
#include "match/pattern.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include "core/error.hpp"

namespace rehearse::match {

namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

RE2::Options options_of(Case letters) {
    RE2::Options options;
    options.set_log_errors(false);  // what is wrong goes into our error, not to stderr
    options.set_case_sensitive(letters == Case::matters);
    return options;
}

/// "\1" to "\9", but not of "\\1", an escaped backslash.
bool refers_to_groups(std::string_view expression) {
    for (std::size_t i = 0; i + 1 < expression.size(); ++i) {
        if (expression[i] != '\\') continue;
        const char next = expression[++i];
        if (next >= '1' && next <= '9') return true;
    }
    return false;
}

std::string why_not(const RE2& expression) {
    const bool looks_around = expression.error_code() == RE2::ErrorBadPerlOp;
    if (looks_around || refers_to_groups(expression.pattern())) {
        return expression.error() + " (there is no lookahead, lookbehind or reference to a group)";
    }
    return expression.error();
}

}  // namespace

class Pattern::Compiled : public RE2 {
public:
    using RE2::RE2;
};

Pattern::Pattern(std::string_view expression, std::string_view what, Case letters)
    : compiled_(std::make_shared<const Compiled>(piece(expression), options_of(letters))) {
    constexpr std::size_t shown = 200;
    if (compiled_->ok()) return;
    const std::string why = why_not(*compiled_);
    throw InputError(fmt::format("{} '{}{}': not a regular expression: {}{}", what, expression.substr(0, shown),
                                 expression.size() > shown ? "..." : "", why.substr(0, shown),
                                 why.size() > shown ? "..." : ""));
}

bool Pattern::is_in(std::string_view text) const { return RE2::PartialMatch(piece(text), *compiled_); }

std::optional<std::vector<std::string>> Pattern::groups_of(std::string_view text) const {
    const int count = compiled_->NumberOfCapturingGroups() + 1;
    std::vector<re2::StringPiece> found(static_cast<std::size_t>(count));
    if (!compiled_->Match(piece(text), 0, text.size(), RE2::ANCHOR_BOTH, found.data(), count)) return std::nullopt;
    std::vector<std::string> groups;
    for (std::size_t i = 1; i < found.size(); ++i) groups.emplace_back(found[i].data(), found[i].size());
    return groups;
}

}  // namespace rehearse::match
