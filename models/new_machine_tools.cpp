// SPDX-License-Identifier: Apache-2.0
// What nvidia-smi topo -m tells of a node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
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

std::optional<std::int64_t> links_in(const std::string& cell) {
    if (!starts(cell, "NV")) return std::nullopt;
    return parse_int(cell.substr(2), cell);
}

// Bytes a second and direction of one NVLink, and links of a device, by the device's generation.
struct NvLink {
    std::string_view device;
    double rate;
    std::int64_t links;
    std::string_view source = "";
};
// Of the RTX A6000 and the A40 as of the RTX 3090: 112.5 GB/s by four links in both directions together.
constexpr std::array nvlinks{
    NvLink{"p100", 20e9, 4},
    NvLink{"v100", 25e9, 6},
    NvLink{"rtx5000", 25e9, 1, " (NVIDIA's white paper of Turing)"},
    NvLink{"a100", 25e9, 12},
    NvLink{"rtx3090", 14.0625e9, 4, " (NVIDIA's white paper of GA102)"},
    NvLink{"h100", 25e9, 18},
    NvLink{"h200", 25e9, 18},
    NvLink{"gh200", 25e9, 18},
    NvLink{"b200", 50e9, 18},
    NvLink{"gb200", 50e9, 18},
};

NvLink nvlink_of(const std::string& device) {
    const auto found =
        std::ranges::find_if(nvlinks, [&](const NvLink& each) { return device.starts_with(each.device); });
    return found == nvlinks.end() ? NvLink{"", 25e9, 18, " (assumed of this device)"} : *found;
}

struct Row {
    std::string name;
    std::vector<std::string> cells;  // by the columns of GPUs and NICs
    std::string numa, cores;         // "0", "0-31,64-95"; empty where the tool does not say it
};

struct Matrix {
    std::vector<std::string> columns;
    std::vector<Row> rows;
    bool says_numa = false;  // the column came with later drivers
};

// 0 nearest.
constexpr std::array<std::string_view, 7> nearness{"X", "PIX", "PXB", "PHB", "NODE", "SOC", "SYS"};
int distance(const std::string& cell) { return static_cast<int>(std::ranges::find(nearness, cell) - nearness.begin()); }

bool is_between_processors(const std::string& cell) { return cell == "SYS" || cell == "SOC"; }

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
            // Network cards have the names that their drivers give: mlx5_0, bnxt_re1.
            const auto end = std::ranges::find(words, "CPU");
            matrix.columns.assign(words.begin(), end);
            matrix.says_numa = words.end() - end > 2 && end[2] == "NUMA";
            continue;
        }
        if (std::ranges::find(matrix.columns, words.front()) == matrix.columns.end()) continue;
        const std::size_t cells = matrix.columns.size();
        if (words.size() < cells + 1)
            throw InputError(
                fmt::format("{}:{}: {} has {} entries for {} columns: right would be the whole text of "
                            "nvidia-smi topo -m",
                            origin, number, words.front(), words.size() - 1, cells));
        Row row{words.front(), {words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(cells)}, "", ""};
        const auto said = [&](std::size_t column) {
            return words.size() > column && words[column] != "N/A" ? words[column] : "";
        };
        row.cores = said(cells + 1);
        if (matrix.says_numa) row.numa = said(cells + 2);
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
            machine.pairs.push_back({static_cast<std::int64_t>(i),
                                     static_cast<std::int64_t>(k),
                                     {Bandwidth{of.rate * static_cast<double>(links)},
                                      fmt::format("{}: {} NVLink{} of {} GB/s{}", source, links, links == 1 ? "" : "s",
                                                  of.rate / 1e9, of.source)}});
        }
    }
    if (of.device.empty() && !machine.pairs.empty())
        machine.notes.push_back(
            fmt::format("{}: rehearse knows no NVLink of {}: 25 GB/s a link is assumed", source, machine.device));
    if (counts.size() != 1 || *counts.begin() == 0) return;
    const std::int64_t links = *counts.begin();
    machine.switched = links * (machine.devices.value - 1) > of.links;
    machine.device_link = machine.pairs.front().link;
    machine.device_link->source += machine.switched ? " to the switches" : " between every two";
    machine.pairs.clear();
}

// The processor of each GPU, numbered as they come: of one NUMA node; where the tool does not say these, of the same
// cores; where it does not say those, not joined by the processors' own links (SYS, in old drivers SOC) alone.
std::vector<std::int64_t> processors_of(const Matrix& matrix) {
    std::vector<const Row*> gpus;
    for (const Row& row : matrix.rows) {
        if (is_gpu(row.name)) gpus.push_back(&row);
    }
    const auto all_say = [&](std::string Row::*what) {
        return std::ranges::none_of(gpus, [&](const Row* row) { return (row->*what).empty(); });
    };
    const bool by_numa = all_say(&Row::numa), by_cores = all_say(&Row::cores);
    const auto together = [&](const Row& a, const Row& b) {
        if (by_numa) return a.numa == b.numa;
        if (by_cores) return a.cores == b.cores;
        const auto column = std::ranges::find(matrix.columns, b.name) - matrix.columns.begin();
        return !is_between_processors(a.cells[static_cast<std::size_t>(column)]);
    };
    std::vector<std::int64_t> found;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        std::size_t k = 0;
        while (k < i && !together(*gpus[i], *gpus[k])) ++k;
        found.push_back(k < i ? found[k] : count++);
    }
    return found;
}

// That of the nearest GPU. A card that no GPU is near may be at any.
std::int64_t processor_of_nic(const Matrix& matrix, const Row& nic, NewMachine& machine) {
    std::size_t gpu = 0;
    std::int64_t at = 0;
    int nearest = std::numeric_limits<int>::max();
    for (std::size_t c = 0; c < matrix.columns.size(); ++c) {
        if (!is_gpu(matrix.columns[c])) continue;
        if (distance(nic.cells[c]) < nearest && gpu < machine.device_at.size()) at = machine.device_at[gpu];
        nearest = std::min(nearest, distance(nic.cells[c]));
        ++gpu;
    }
    if (machine.processors > 1 && nearest >= distance("SOC"))
        machine.notes.push_back(fmt::format(
            "nvidia-smi topo -m: no GPU is near {}: it is put at the first one's processor, which is assumed",
            nic.name));
    return at;
}

}  // namespace

NewMachine with_nvidia_topology(NewMachine machine, std::string_view text, const std::string& origin) {
    const Matrix matrix = matrix_in(text, origin);
    const std::string source = "nvidia-smi topo -m";
    std::vector<std::int64_t> devices = processors_of(matrix);
    const std::int64_t processors = 1 + std::ranges::max(devices);
    const bool lists_nics = std::ranges::any_of(matrix.rows, [](const Row& row) { return !is_gpu(row.name); });
    // Network cards that another tool told are at processors of that tool's numbers, and so are its devices.
    const bool keeps_places = !lists_nics && !machine.nic_at.empty() && machine.device_at.size() == devices.size();
    machine.devices = {std::ssize(devices), source};
    if (!keeps_places) {
        machine.device_at = std::move(devices);
        if (lists_nics || processors != machine.processors) machine.nic_at.clear();
        machine.processors = processors;
    }
    if (lists_nics) {
        for (const Row& row : matrix.rows) {
            if (!is_gpu(row.name)) machine.nic_at.push_back(processor_of_nic(matrix, row, machine));
        }
        machine.nics = {std::ssize(machine.nic_at), source};
    }
    link_devices(machine, matrix, source);
    return machine;
}

}  // namespace rehearse::models
