// SPDX-License-Identifier: Apache-2.0
#include "models/ibnet_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/error.hpp"

namespace rehearse::models::ibnet {

namespace {

using Known = std::pair<std::string_view, double>;

// Bytes a second of one lane: 8 bits of 10 are data up to QDR, 64 of 66 from FDR10 on.
constexpr std::array<Known, 9> lanes{{{"SDR", 0.25e9},
                                      {"DDR", 0.5e9},
                                      {"QDR", 1e9},
                                      {"FDR10", 1.25e9},
                                      {"FDR", 1.7e9},
                                      {"EDR", 3.125e9},
                                      {"HDR", 6.25e9},
                                      {"NDR", 12.5e9},
                                      {"XDR", 25e9}}};
constexpr std::array<Known, 5> widths{{{"1", 1}, {"2", 2}, {"4", 4}, {"8", 8}, {"12", 12}}};

double value_of(std::span<const Known> table, std::string_view word) {
    const auto found = std::ranges::find(table, word, &Known::first);
    return found == table.end() ? 0 : found->second;
}

// Digits, an x and what follows, outside of quotation marks: the width and speed that a line ends with.
std::string rate_word(const std::string& line) {
    std::string outside;
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        outside += quoted ? ' ' : c;
    }
    std::istringstream words{outside};
    std::string found;
    for (std::string word; words >> word;) {
        const std::size_t x = word.find_first_not_of("0123456789");
        if (x != std::string::npos && x > 0 && word[x] == 'x' && word[0] != '0' && x + 1 < word.size()) found = word;
    }
    return found;
}

class Reader {
public:
    explicit Reader(const std::string& origin) : origin_(origin) {}

    // Below "Switch" its ports: [1] "H-..."[1] leads to a host's adapter, [2] "S-..." to another switch.
    void take(const std::string& line) {
        ++number_;
        if (line.starts_with("Switch")) {
            current_ = &text_.switches[quoted(line).first];
        } else if (line.starts_with("Ca")) {
            current_ = nullptr;
            const auto [name, end] = quoted(line);
            describe(name, line, end);
        } else if (line.starts_with("[") && current_ != nullptr) {
            take_port(line);
        }
    }

    Text finish() {
        std::set<std::string> within;  // switches
        for (const auto& [adapter, said] : text_.described) {
            if (said.find(aggregation_node) != std::string::npos) within.insert(adapter);
        }
        const auto is_within = [&](const std::string& card) {
            return within.contains(card.substr(0, card.rfind(':')));
        };
        std::erase_if(text_.cards, [&](const auto& card) { return is_within(card.first); });
        for (auto& [name, each] : text_.switches) std::erase_if(each.cards, is_within);
        return std::move(text_);
    }

private:
    // How the part of a switch that sums for SHARP describes itself, a port of which ends at an adapter.
    static constexpr std::string_view aggregation_node = "Aggregation Node";

    std::pair<std::string, std::size_t> quoted(const std::string& line, std::size_t from = 0) const {
        const std::size_t begin = line.find('"', from), end = line.find('"', begin + 1);
        if (begin == std::string::npos || end == std::string::npos)
            throw InputError(fmt::format("{}:{}: no name in quotation marks: right would be the text of ibnetdiscover",
                                         origin_, number_));
        return {line.substr(begin + 1, end - begin - 1), end + 1};
    }

    void describe(const std::string& adapter, const std::string& line, std::size_t from) {
        if (line.find('"', from) != std::string::npos) text_.described[adapter] = quoted(line, from).first;
    }

    void take_port(const std::string& line) {
        const auto [peer, end] = quoted(line);
        const std::string word = rate_word(line);
        const double rate = rate_of(word);
        if (rate == 0 && !word.empty()) text_.unknown_rates.insert(word);
        if (peer.starts_with("H")) {
            const bool port = end < line.size() && line[end] == '[';
            const std::string card = peer + ':' + (port ? line.substr(end + 1, line.find(']', end) - end - 1) : "");
            current_->cards.insert(card);
            text_.cards[card] = {peer, rate};
            if (!text_.described.contains(peer)) describe(peer, line, end);
        } else if (peer.starts_with("S")) {
            Trunk& trunk = current_->others[peer];
            ++trunk.ports;
            trunk.unknown += rate == 0 ? 1 : 0;
            trunk.rate += rate;
        }
    }

    std::string origin_;
    Text text_;
    Switch* current_ = nullptr;
    int number_ = 0;
};

// Whether a description is the vendor's, "MT4123 ConnectX6   Mellanox Technologies", and no host's.
bool is_of_vendor(const std::string& said) {
    return said.find("Mellanox Technologies") != std::string::npos || said.find("ConnectX") != std::string::npos;
}

}  // namespace

double rate_of(std::string_view word) {
    const std::size_t x = word.find('x');
    if (x == std::string_view::npos) return 0;
    return value_of(widths, word.substr(0, x)) * value_of(lanes, word.substr(x + 1));
}

Text parse(std::string_view text, const std::string& origin) {
    Reader reader(origin);
    std::istringstream in{std::string{text}};
    for (std::string line; std::getline(in, line);) reader.take(line);
    return reader.finish();
}

Nodes nodes_of(const Text& text) {
    std::map<std::string, std::set<std::string>> adapters;  // by what is said of them
    for (const auto& [adapter, said] : text.described) adapters[said].insert(adapter);
    using Port = std::tuple<std::size_t, std::string, std::string>;  // short names first: mlx5_2 before mlx5_10
    std::map<std::string, std::set<Port>> nodes;
    Nodes found;
    for (const auto& [name, card] : text.cards) {
        const auto said = text.described.find(card.adapter);
        if (said == text.described.end() || adapters.at(said->second).size() > 1 || is_of_vendor(said->second)) {
            ++found.unnamed;
            found.ports[name] = {name};
            continue;
        }
        const std::size_t space = said->second.find(' ');
        const std::string device = space == std::string::npos ? "" : said->second.substr(space + 1);
        nodes[said->second.substr(0, space)].insert({device.size(), device, name});
    }
    for (const auto& [node, ports] : nodes) {
        for (const Port& port : ports) found.ports[node].push_back(std::get<2>(port));
    }
    return found;
}

void take_away(Text& text, const std::set<std::string>& ports) {
    std::erase_if(text.cards, [&](const auto& card) { return ports.contains(card.first); });
    std::set<std::string> bare;
    for (auto& [name, each] : text.switches) {
        const auto taken = std::erase_if(each.cards, [&](const std::string& card) { return ports.contains(card); });
        if (taken > 0 && each.cards.empty()) bare.insert(name);
    }
    // One that a leaf is joined to is a spine.
    std::erase_if(bare, [&](const std::string& name) {
        return std::ranges::any_of(text.switches.at(name).others, [&](const auto& other) {
            const auto found = text.switches.find(other.first);
            return found != text.switches.end() && !found->second.cards.empty();
        });
    });
    std::erase_if(text.switches, [&](const auto& each) { return bare.contains(each.first); });
    for (auto& [name, each] : text.switches)
        std::erase_if(each.others, [&](const auto& other) { return bare.contains(other.first); });
}

}  // namespace rehearse::models::ibnet
