// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/error.hpp"

namespace rehearse {

namespace {

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row.back();
}

template <typename T>
T parse_whole(std::string_view text, std::string_view what, std::string_view kind) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
        throw InputError(fmt::format("{}: '{}' is beyond what is counted here", what, text));
    }
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw InputError(fmt::format("{}: '{}' is not {}", what, text, kind));
    }
    return value;
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
    std::string_view best;
    std::size_t best_distance = 1 + std::max<std::size_t>(2, word.size() / 3);
    for (const std::string_view candidate : candidates) {
        // Each letter more or less is a step: a long text of a stranger is near to no name, and costs nothing.
        const std::size_t longer = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
        if (longer >= best_distance) continue;
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance && distance < candidate.size()) {
            best = candidate;
            best_distance = distance;
        }
    }
    return std::string{best};
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    const std::string candidate = nearest(word, candidates);
    return candidate.empty() ? "" : fmt::format(" (did you mean '{}'?)", candidate);
}

std::string join(std::span<const std::string_view> words, std::string_view separator) {
    return fmt::format("{}", fmt::join(words.begin(), words.end(), separator));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::int64_t parse_int(std::string_view text, std::string_view what) {
    return parse_whole<std::int64_t>(text, what, "a whole number");
}

double parse_number(std::string_view text, std::string_view what) {
    const double value = parse_whole<double>(text, what, "a number");
    if (!std::isfinite(value)) throw InputError(fmt::format("{}: '{}' is not a number", what, text));
    return value;
}

}  // namespace rehearse
