// SPDX-License-Identifier: Apache-2.0
#include "core/quoting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace rehearse {

namespace {

constexpr std::uint32_t no_character = 0xFFFFFFFF;

struct Decoded {
    std::uint32_t point = no_character;
    std::size_t bytes = 1;
};

// The first character of a text that is not empty (RFC 3629): no overlong forms, no surrogates, nothing above 10FFFF.
Decoded decode(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return {first, 1};
    const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
    std::uint32_t point = first & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0U) != 0x80) return {};
        point = point << 6U | (byte(i) & 0x3FU);
    }
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    return point < least[bytes] || point > 0x10FFFF || surrogate ? Decoded{} : Decoded{point, bytes};
}

bool is_readable(std::uint32_t point) {
    if (point == '\n' || point == '\t') return true;
    if (point < 0x20 || (point >= 0x7F && point < 0xA0) || point > 0x10FFFF) return false;
    const bool turns = (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
    return !turns && (point & 0xFFFEU) != 0xFFFE;
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const auto [point, bytes] = decode(text);
        const std::string_view now = text.substr(0, bytes);
        if (is_readable(point)) {
            result += now;
        } else {
            for (const char c : now) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
        text.remove_prefix(bytes);
    }
    return result;
}

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string{text};
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted += '"';
}

}  // namespace rehearse
