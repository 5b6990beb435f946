// SPDX-License-Identifier: Apache-2.0
// Words of tables that stand for one of a few values.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "models/csv.hpp"

namespace rehearse::validate {

/// InputError with file and line where the word is none of `choices`.
template <typename Value>
Value chosen(const models::Csv& table, std::size_t row, std::string_view column,
             const std::map<std::string, Value, std::less<>>& choices) {
    const auto found = choices.find(table.text(row, column));
    if (found != choices.end()) return found->second;
    std::vector<std::string_view> words;
    for (const auto& [word, value] : choices) words.emplace_back(word);
    table.fail(row, fmt::format("{} is '{}': one of {}", column, table.text(row, column), join(words)));
}

}  // namespace rehearse::validate
