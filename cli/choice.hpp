// SPDX-License-Identifier: Apache-2.0
// An option that is one of a few words, or a figure with its unit.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "core/units.hpp"

namespace rehearse::cli {

template <typename Value>
Option* add_choice(CommandLine& app, const std::string& name, Value& value,
                   std::vector<std::pair<std::string_view, Value>> choices, const std::string& help) {
    std::vector<std::string_view> words;
    std::string_view now;
    for (const auto& [word, meaning] : choices) {
        if (now.empty() && meaning == value) now = word;
        words.push_back(word);
    }
    const auto set = [&value, choices = std::move(choices), words, name](const std::string& given) {
        for (const auto& [word, meaning] : choices) {
            if (word == given) return void(value = meaning);
        }
        unfit(name, fmt::format("'{}' is not one of {}{}", given, join(words), did_you_mean(given, words)));
    };
    return app.add_option_function<std::string>(name, set, help)
        ->option_text(join(words, "|"))
        ->default_str(std::string{now});
}

/// What stands behind `option`; InputError "--sample: '57mb' is not a size: ...".
template <typename Quantity>
Quantity quantity_of(std::string_view option, std::string_view text) {
    try {
        return parse_quantity<Quantity>(text);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", option, error.what()));
    }
}

}  // namespace rehearse::cli
