// SPDX-License-Identifier: Apache-2.0
// Words for error messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

/// The candidate nearest to `word` by edit distance, when near enough to be a typing error; else empty.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

/// " (did you mean 'resnet50'?)" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

/// "a, b, c".
std::string join(std::span<const std::string_view> words, std::string_view separator = ", ");

std::vector<std::string_view> split(std::string_view text, char separator);

/// The whole of `text` as an integer or a number; InputError naming `what` otherwise.
std::int64_t parse_int(std::string_view text, std::string_view what);
double parse_number(std::string_view text, std::string_view what);

}  // namespace rehearse
