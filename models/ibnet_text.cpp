// SPDX-License-Identifier: Apache-2.0
#include "models/ibnet_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "core/error.hpp"

namespace rehearse::models::ibnet {

namespace {

// Gigabytes a second of the width and speed that a line ends with; 0 where it has none.
double rate_of(const std::string& line) {
    constexpr std::array<std::pair<std::string_view, double>, 7> rates{{{"4xXDR", 100e9},
                                                                        {"4xNDR", 50e9},
                                                                        {"4xHDR", 25e9},
                                                                        {"2xHDR", 12.5e9},
                                                                        {"2xNDR", 25e9},
                                                                        {"4xEDR", 12.5e9},
                                                                        {"4xFDR", 6.8e9}}};
    for (const auto& [word, bytes] : rates) {
        if (line.find(word) != std::string::npos) return bytes;
    }
    return 0;
}

}  // namespace

// Below "Switch" its ports: [1] "H-..."[1] leads to a host's adapter, [2] "S-..." to another switch.
Text parse(std::string_view text, const std::string& origin) {
    Text all;
    std::istringstream in{std::string{text}};
    Switch* current = nullptr;
    int number = 0;
    const auto quoted = [&](const std::string& line, std::size_t from = 0) {
        const std::size_t begin = line.find('"', from), end = line.find('"', begin + 1);
        if (begin == std::string::npos || end == std::string::npos)
            throw InputError(fmt::format("{}:{}: no name in quotation marks: right would be the text of ibnetdiscover",
                                         origin, number));
        return std::pair{line.substr(begin + 1, end - begin - 1), end + 1};
    };
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.starts_with("Switch")) {
            current = &all.switches[quoted(line).first];
        } else if (line.starts_with("Ca")) {
            current = nullptr;
            const auto [name, end] = quoted(line);
            if (line.find('"', end) != std::string::npos) all.described[name] = quoted(line, end).first;
        } else if (line.starts_with("[") && current != nullptr) {
            const auto [peer, end] = quoted(line);
            if (peer.starts_with("H")) {
                const bool port = end < line.size() && line[end] == '[';
                const std::string card = peer + ':' + (port ? line.substr(end + 1, line.find(']', end) - end - 1) : "");
                current->cards.insert(card);
                all.cards.insert(card);
                all.rate = std::max(all.rate, rate_of(line));
            } else if (peer.starts_with("S")) {
                Trunk& trunk = current->others[peer];
                ++trunk.ports;
                trunk.rate += rate_of(line);
            }
        }
    }
    return all;
}

}  // namespace rehearse::models::ibnet
