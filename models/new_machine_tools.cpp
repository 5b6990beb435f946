// SPDX-License-Identifier: Apache-2.0
// What nvidia-smi topo -m and lstopo (as XML) tell of a node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/lstopo_text.hpp"
#include "models/new_machine.hpp"

namespace rehearse::models {

namespace {

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream in{line};
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

bool starts(const std::string& word, std::string_view with) {
    return word.starts_with(with) && word.size() > with.size() && word[with.size()] >= '0' && word[with.size()] <= '9';
}
bool is_gpu(const std::string& word) { return starts(word, "GPU"); }
bool is_nic(const std::string& word) { return starts(word, "NIC") || word.starts_with("mlx") || starts(word, "hsi"); }

std::optional<std::int64_t> links_in(const std::string& cell) {
    if (!starts(cell, "NV")) return std::nullopt;
    return parse_int(cell.substr(2), cell);
}

// Gigabytes a second and direction of one NVLink, and links of a device, by the device's generation.
struct NvLink {
    std::string_view device;
    double rate;
    std::int64_t links;
};
constexpr std::array nvlinks{NvLink{"p100", 20e9, 4},  NvLink{"v100", 25e9, 6},  NvLink{"a100", 25e9, 12},
                             NvLink{"h100", 25e9, 18}, NvLink{"h200", 25e9, 18}, NvLink{"gh200", 25e9, 18},
                             NvLink{"b200", 50e9, 18}, NvLink{"gb200", 50e9, 18}};

NvLink nvlink_of(const std::string& device) {
    const auto found =
        std::ranges::find_if(nvlinks, [&](const NvLink& each) { return device.starts_with(each.device); });
    return found == nvlinks.end() ? NvLink{"", 25e9, 18} : *found;
}

struct Row {
    std::string name;
    std::vector<std::string> cells;  // by the columns of GPUs and NICs
    std::int64_t numa = 0;
};

struct Matrix {
    std::vector<std::string> columns;
    std::vector<Row> rows;
};

// 0 nearest.
constexpr std::array<std::string_view, 7> nearness{"X", "PIX", "PXB", "PHB", "NODE", "SOC", "SYS"};
int distance(const std::string& cell) { return static_cast<int>(std::ranges::find(nearness, cell) - nearness.begin()); }

void check_cells(const Row& row, const std::string& here) {
    for (const std::string& cell : row.cells) {
        if (links_in(cell) || std::ranges::find(nearness, cell) != nearness.end()) continue;
        throw InputError(
            fmt::format("{}: '{}' is no connection as nvidia-smi topo -m writes them: NV and a number, or {}. Of "
                        "other devices give --device-link",
                        here, cell, join(nearness)));
    }
}

Matrix matrix_in(std::string_view text, const std::string& origin) {
    std::istringstream in{std::string{text}};
    Matrix matrix;
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        // Colors, with which the tool underlines the first line.
        for (std::size_t at = 0; (at = line.find('\x1b')) != std::string::npos;)
            line.erase(at, line.find('m', at) == std::string::npos ? std::string::npos : line.find('m', at) - at + 1);
        const std::vector<std::string> words = words_of(line);
        if (words.empty()) continue;
        if (matrix.columns.empty()) {
            if (!is_gpu(words.front())) continue;
            if (words.size() > 1 && (words[1] == "X" || links_in(words[1])))
                throw InputError(
                    fmt::format("{}:{}: the line above, which names the columns, is missing: right would "
                                "be the whole text of nvidia-smi topo -m",
                                origin, number));
            for (const std::string& word : words) {
                if (!is_gpu(word) && !is_nic(word)) break;
                matrix.columns.push_back(word);
            }
            continue;
        }
        if (!is_gpu(words.front()) && !is_nic(words.front())) continue;
        const std::size_t cells = matrix.columns.size();
        if (words.size() < cells + 1)
            throw InputError(
                fmt::format("{}:{}: {} has {} entries for {} columns: right would be the whole text of "
                            "nvidia-smi topo -m",
                            origin, number, words.front(), words.size() - 1, cells));
        Row row{words.front(), {words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(cells)}};
        if (words.size() > cells + 2 && words[cells + 2].find_first_not_of("0123456789") == std::string::npos)
            row.numa = parse_int(words[cells + 2], origin);
        check_cells(row, fmt::format("{}:{}", origin, number));
        matrix.rows.push_back(std::move(row));
        if (matrix.rows.size() == cells) break;  // a legend follows
    }
    if (matrix.rows.empty())
        throw InputError(fmt::format("{}: no table of nvidia-smi topo -m: its first line has GPU0", origin));
    for (const std::string& column : matrix.columns) {
        if (std::ranges::find(matrix.rows, column, &Row::name) == matrix.rows.end())
            throw InputError(
                fmt::format("{}: the row of {} is missing: right would be the whole text of nvidia-smi "
                            "topo -m",
                            origin, column));
    }
    return matrix;
}

// By NVLinks: one rate for all where every two devices have as many, else pair by pair.
void link_devices(NewMachine& machine, const Matrix& matrix, const std::string& source) {
    const NvLink of = nvlink_of(machine.device);
    std::set<std::int64_t> counts;
    machine.device_link.reset();
    machine.pairs.clear();
    std::vector<std::size_t> devices;  // their columns, and their rows
    for (std::size_t c = 0; c < matrix.columns.size() && c < matrix.rows.size(); ++c)
        if (is_gpu(matrix.columns[c]) && is_gpu(matrix.rows[c].name)) devices.push_back(c);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        for (std::size_t k = i + 1; k < devices.size(); ++k) {
            const std::int64_t links = links_in(matrix.rows[devices[i]].cells[devices[k]]).value_or(0);
            counts.insert(links);
            if (links == 0) continue;
            machine.pairs.push_back(
                {static_cast<std::int64_t>(i),
                 static_cast<std::int64_t>(k),
                 {Bandwidth{of.rate * static_cast<double>(links)},
                  fmt::format("{}: {} NVLink{} of {} GB/s", source, links, links == 1 ? "" : "s", of.rate / 1e9)}});
        }
    }
    if (counts.size() != 1 || *counts.begin() == 0) return;
    const std::int64_t links = *counts.begin();
    machine.switched = links * (machine.devices.value - 1) > of.links;
    machine.device_link = machine.pairs.front().link;
    machine.device_link->source += machine.switched ? " to the switches" : " between every two";
    machine.pairs.clear();
}

}  // namespace

NewMachine with_nvidia_topology(NewMachine machine, std::string_view text, const std::string& origin) {
    const Matrix matrix = matrix_in(text, origin);
    const std::string source = "nvidia-smi topo -m";
    std::map<std::int64_t, std::int64_t> processors;  // by NUMA node
    machine.devices = {0, source};
    machine.nics = {0, source};
    machine.device_at.clear();
    machine.nic_at.clear();
    for (const Row& row : matrix.rows) {
        if (is_gpu(row.name))
            machine.device_at.push_back(processors.try_emplace(row.numa, std::ssize(processors)).first->second);
    }
    machine.devices.value = std::ssize(machine.device_at);
    for (const Row& row : matrix.rows) {
        int nearest = 100;
        std::int64_t at = 0;
        for (std::size_t c = 0; c < matrix.columns.size(); ++c) {
            if (!is_gpu(matrix.columns[c]) || !is_nic(row.name)) continue;
            const std::string& cell = row.cells[c];
            const auto gpu = static_cast<std::size_t>(parse_int(matrix.columns[c].substr(3), origin));
            if (distance(cell) < nearest && gpu < machine.device_at.size()) at = machine.device_at[gpu];
            nearest = std::min(nearest, distance(cell));
        }
        if (is_nic(row.name)) machine.nic_at.push_back(at);
    }
    machine.nics.value = std::ssize(machine.nic_at);
    if (machine.nic_at.empty()) machine.nics = {1, ""};
    machine.processors = std::max<std::int64_t>(1, std::ssize(processors));
    link_devices(machine, matrix, source);
    return machine;
}

NewMachine with_lstopo(NewMachine machine, const std::string& path) {
    lstopo::Node node = lstopo::parse(read_file(path), path);
    machine.processors = std::max<std::int64_t>(1, node.packages);
    if (!node.cards.empty()) machine.devices = {std::ssize(node.cards), "lstopo"};
    if (!node.ports.empty()) machine.nics = {std::ssize(node.ports), "lstopo"};
    machine.device_at = std::move(node.cards);
    machine.nic_at = std::move(node.ports);
    return machine;
}

}  // namespace rehearse::models
