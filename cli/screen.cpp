// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace rehearse::cli {

namespace {

constexpr std::size_t least = 60, most = 100;

std::size_t asked_columns() {
    if (const char* text = std::getenv("COLUMNS")) {
        const std::string_view digits{text};
        std::size_t columns = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
        if (error == std::errc{} && end == digits.data() + digits.size() && columns > 0) return columns;
    }
    winsize size{};
    if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return most;
}

}  // namespace

std::size_t most_columns() {
    static const std::size_t columns = std::clamp(asked_columns(), least, most);
    return columns;
}

}  // namespace rehearse::cli
