// SPDX-License-Identifier: Apache-2.0
#include "cli/help.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cli/option_notes.hpp"
#include "core/problem_forms.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

namespace {

constexpr std::size_t option_column = 30;

// The first characters of a word that is too long for a line.
std::size_t break_of(std::string_view word, std::size_t room) {
    const std::size_t at = word.substr(0, room).find_last_of(",|:/)");
    return at == std::string_view::npos || at < room / 3 ? room : at + 1;
}

class Formatter : public CLI::Formatter {
public:
    std::string make_option(const CLI::Option* option, bool is_positional) const override {
        std::string name = make_option_name(option, is_positional);
        name = name.substr(0, name.find('{'));  // of a flag that switches off
        std::string left = "  " + name + make_option_opts(option);
        if (left.size() + 1 > option_column) {
            left += '\n' + std::string(option_column, ' ');
        } else {
            left.resize(option_column, ' ');
        }
        return left + wrapped(make_option_desc(option), option_column, most_columns()) + '\n';
    }
    std::string make_description(const CLI::App* app) const override {
        return wrapped(CLI::Formatter::make_description(app), 0);
    }
    std::string make_subcommand(const CLI::App* sub) const override {
        std::string left = "  " + sub->get_name();
        left.resize(option_column, ' ');
        return left + wrapped(sub->get_description(), option_column) + '\n';
    }
    std::string make_footer(const CLI::App* app) const override { return "\n" + app->get_footer() + "\n"; }
};

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// "[6,48]" of a list as 6,48.
std::string default_of(const CLI::Option& option) {
    std::string text = option.get_default_str();
    if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
    return text;
}

std::string range_of(const OptionNote& note) {
    if (!note.least) return std::string{note.range};
    return fmt::format("{} {:g}{}{}{}", note.is_above ? "above" : "at least", *note.least,
                       note.range.empty() ? "" : " ", note.range,
                       note.most ? fmt::format(", at most {}", static_cast<std::int64_t>(*note.most)) : "");
}

CLI::Validator checked(const OptionNote& note) {
    return CLI::Validator(
        [&note](const std::string& text) {
            double value = 0;
            if (!CLI::detail::lexical_cast(text, value)) return std::string{};  // no number: CLI11 says so
            const bool enough = note.is_above ? value > *note.least : value >= *note.least;
            return enough && (!note.most || value <= *note.most) ? std::string{}
                                                                 : fmt::format("{}: {}", text, range_of(note));
        },
        "");
}

void note_range(CLI::App& command, CLI::Option& option) {
    const OptionNote* note = note_of(command.get_name(), option.get_lnames().front());
    std::vector<std::string> said;
    if (note != nullptr) {
        if (const std::string range = range_of(*note); !range.empty()) said.push_back(range);
        if (note->least) option.check(checked(*note));
    }
    if (note != nullptr && !note->otherwise.empty()) {
        said.push_back(fmt::format("default: {}", note->otherwise));
    } else if (option.get_required()) {
        said.emplace_back("required");
    } else if (const std::string text = default_of(option); !text.empty()) {
        said.push_back(fmt::format("default: {}", text));
    }
    if (!said.empty()) option.description(fmt::format("{} [{}]", option.get_description(), fmt::join(said, "; ")));
}

template <typename Number>
bool is_decimal(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return false;
    // Single precision holds it, as many options do: no number turns into 0 or infinity without a word.
    if constexpr (std::is_floating_point_v<Number>) {
        using Single = std::numeric_limits<float>;
        return value == 0 || (std::abs(value) >= Single::min() && std::abs(value) <= Single::max());
    }
    const std::size_t first = text.starts_with('-') ? 1 : 0;
    return text.size() == first + 1 || text[first] != '0';
}

/// What CLI11 makes of numbers is strtol's: "010" is 8, "0x10" is 16, "" is 0, and 1e23 is the largest there is. All of
/// these are refused before it sees them.
void read_strictly(CLI::Option& option) {
    std::string type = option.get_type_name();  // "INT", or "INT:NONNEGATIVE" where it is checked, too
    type = type.substr(0, type.find(':'));
    const auto check = [&](auto is_good, std::string_view what) {
        option.transform(CLI::Validator(
            [is_good, what](const std::string& text) {
                return is_good(text) ? std::string{} : fmt::format("'{}': {}", text, what);
            },
            ""));
    };
    constexpr std::string_view whole = "a whole number, in decimal digits without leading zeros, of at most 64 bits";
    if (type == "INT") check(is_decimal<std::int64_t>, whole);
    if (type == "UINT") check(is_decimal<std::uint64_t>, whole);
    constexpr std::string_view real = "a number in decimal digits: 0, or of a size from 1.2e-38 to 3.4e38";
    if (type == "FLOAT") check(is_decimal<double>, real);
}

void annotate(CLI::App& command, CLI::Option& option) {
    if (is_flag(option)) return;
    if (!option.get_lnames().empty()) note_range(command, option);
    read_strictly(option);
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t most) {
    const std::size_t room = most - indent;
    std::string result;
    std::size_t used = 0;
    const auto width = [](std::string_view word) {
        return static_cast<std::size_t>(
            std::ranges::count_if(word, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
    };
    const auto next_line = [&] {
        result += '\n' + std::string(indent, ' ');
        used = 0;
    };
    for (std::string_view word : split(text, ' ')) {
        if (used > 0 && used + 1 + width(word) > room) next_line();
        if (used > 0) result += ' ', ++used;
        while (width(word) > room - used) {
            const std::size_t part = break_of(word, room - used);
            result += word.substr(0, part);
            word.remove_prefix(part);
            next_line();
        }
        result += word;
        used += width(word);
    }
    return result;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Formatter>(); }

void annotate(CLI::App& command) {
    for (CLI::Option* option : command.get_options()) annotate(command, *option);
}

std::string problems_help(std::string_view command) {
    if (command != "bench" && command != "explain") return {};
    std::string text =
        wrapped(
            "Problem strings: KIND:nBATCH[:]SIZES[:WORDS...]:TYPE:PASS with TYPE f32, f16 or bf16 and PASS forward, "
            "backward_data, backward_weights or update (of optimizers); SIZES are of one sample:",
            0) +
        '\n';
    for (const ProblemForm& form : problem_forms())
        text += fmt::format("  {}\n    {}\n", form.example, wrapped(form.meaning, 4));
    text += "Operators with sizes of other letters are printed by `rehearse bench layer --suite NETWORK --list`.\n";
    return text;
}

}  // namespace rehearse::cli
