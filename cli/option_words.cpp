// SPDX-License-Identifier: Apache-2.0
#include "cli/option_words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

#if REHEARSE_HAS_BENCH
#include "cli/bench.hpp"
#endif
#include "core/text.hpp"
#include "models/frameworks.hpp"
#include "models/machine_names.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

namespace {

// "table|csv|json"; not "NAME|FILE.toml", whose capitals stand for something.
bool is_list_of_words(std::string_view text) {
    return text.find('|') != std::string_view::npos && std::ranges::all_of(text, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '|' || c == '-' || c == '_';
           });
}

template <typename Named>
std::vector<std::string> names_of(const Named& all) {
    std::vector<std::string> names;
    for (const auto& each : all) names.emplace_back(each.name);
    return names;
}

}  // namespace

std::vector<const CLI::Option*> named_options(const CLI::App& command) {
    std::vector<const CLI::Option*> options;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->get_lnames().empty()) options.push_back(option);
    }
    return options;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

std::vector<std::string> words_of(const CLI::Option& option) {
    if (!takes_value(option)) return {};
    const std::string& name = option.get_lnames().front();
    if (name == "model") return names_of(models::zoo());
    if (name == "machine") return models::machine_names();
    if (name == "framework") return names_of(models::frameworks());
    std::vector<std::string> words;
    if (const std::string text = option.get_option_text(); is_list_of_words(text)) {
        for (const std::string_view word : split(text, '|')) words.emplace_back(word);
    }
    return words;
}

std::vector<std::string> positional_words(const CLI::App& command) {
    const std::string& name = command.get_name();
    if (name == "models") return names_of(models::zoo());
    if (name == "machines") return models::machine_names();
    if (name == "frameworks") return names_of(models::frameworks());
    if (name == "machine") return {"new"};
    if (name == "completion") return {"bash", "zsh", "fish"};
#if REHEARSE_HAS_BENCH
    if (name == "bench") return bench_kinds();
#endif
    std::vector<std::string> words;
    if (name == "manual") {
        for (const CLI::App* each : command.get_parent()->get_subcommands({})) words.push_back(each->get_name());
    }
    return words;
}

bool takes_file(const CLI::Option& option) {
    return takes_value(option) && !is_list_of_words(option.get_option_text());
}

std::string short_text(const CLI::Option& option) {
    std::string text = option.get_description();
    if (const std::size_t bracket = text.rfind(" ["); bracket != std::string::npos && text.ends_with(']'))
        text.erase(bracket);
    return text;
}

}  // namespace rehearse::cli
