// SPDX-License-Identifier: Apache-2.0
#include "study/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::study {

namespace {

InputError wrong(std::string_view text, std::string_view why) {
    return InputError(
        fmt::format("--space '{}': {}; write NAME=A|B|C, NAME=LOW..HIGH or NAME=LOW..HIGH:log", text, why));
}

bool is_whole(std::string_view number) { return number.find_first_of(".eE") == std::string_view::npos; }

}  // namespace

Parameter parse_parameter(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) throw wrong(text, "the name is missing");
    Parameter parameter{.name = std::string{text.substr(0, equals)}};
    std::string_view values = text.substr(equals + 1);
    const std::size_t dots = values.find("..");
    if (dots == std::string_view::npos) {
        for (const std::string_view each : split(values, '|')) {
            if (each.empty()) throw wrong(text, "a choice is empty");
            parameter.choices.emplace_back(each);
        }
        if (parameter.choices.size() < 2) throw wrong(text, "one choice alone is none");
        return parameter;
    }
    parameter.logarithmic = values.ends_with(":log");
    if (parameter.logarithmic) values.remove_suffix(4);
    const std::string_view low = values.substr(0, dots), high = values.substr(dots + 2);
    const std::string where = fmt::format("--space '{}'", text);
    parameter.low = parse_number(low, where);
    parameter.high = parse_number(high, where);
    parameter.whole = is_whole(low) && is_whole(high);
    if (!(parameter.low < parameter.high)) throw wrong(text, "the first number is below the second");
    if (parameter.logarithmic && !(parameter.low > 0)) throw wrong(text, "logarithms are of numbers above 0");
    return parameter;
}

std::string value_at(const Parameter& parameter, double place) {
    place = std::clamp(place, 0.0, 1.0);
    if (!parameter.choices.empty()) {
        const auto count = static_cast<double>(parameter.choices.size());
        return parameter.choices[static_cast<std::size_t>(std::min(std::floor(place * count), count - 1))];
    }
    const double extent = parameter.high - parameter.low;
    double value = parameter.logarithmic ? parameter.low * std::pow(parameter.high / parameter.low, place)
                                         : parameter.low + place * (extent + (parameter.whole ? 1 : 0));
    if (!parameter.whole) return fmt::format("{:.6g}", value);
    value = std::min(parameter.logarithmic ? std::round(value) : std::floor(value), parameter.high);
    return fmt::format("{}", static_cast<long long>(value));
}

bool names(std::string_view text, const Parameter& parameter) {
    return text.find("{" + parameter.name + "}") != std::string_view::npos;
}

std::string with_values(std::string_view text, std::span<const Parameter> space, const Point& point) {
    std::string made;
    while (!text.empty()) {
        const std::size_t open = text.find('{');
        made += text.substr(0, open);
        if (open == std::string_view::npos) break;
        const std::size_t close = text.find('}', open);
        if (close == std::string_view::npos) throw InputError(fmt::format("--model '{}': a brace is not closed", text));
        const std::string_view name = text.substr(open + 1, close - open - 1);
        const auto found = std::ranges::find(space, name, &Parameter::name);
        if (found == space.end())
            throw InputError(fmt::format("--model: '{{{}}}' is no parameter: give it by --space {}=...", name, name));
        made += value_at(*found, point[static_cast<std::size_t>(found - space.begin())]);
        text.remove_prefix(close + 1);
    }
    return made;
}

}  // namespace rehearse::study
