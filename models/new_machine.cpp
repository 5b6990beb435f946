// SPDX-License-Identifier: Apache-2.0
#include "models/new_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "core/error.hpp"
#include "core/quoting.hpp"
#include "core/text.hpp"
#include "models/reader/machine_files.hpp"

namespace rehearse::models {

namespace {

constexpr const char* assumed = "assumed: put what you know in its place";

struct Port {
    std::string_view name;
    double bytes_per_s;
};
// Data rates of InfiniBand ports of four lanes (IBTA), of Slingshot and Omni-Path ports.
constexpr std::array ports{
    Port{"qdr", 4e9},    Port{"fdr", 6.8e9},           Port{"edr", 12.5e9},       Port{"hdr100", 12.5e9},
    Port{"hdr", 25e9},   Port{"ndr200", 25e9},         Port{"ndr", 50e9},         Port{"xdr", 100e9},
    Port{"opa", 12.5e9}, Port{"slingshot-10", 12.5e9}, Port{"slingshot-11", 25e9}};

std::string sourced(const std::string& value, const std::string& source) {
    return fmt::format("{{ value = {}, source = \"{}\" }}", value, source.empty() ? assumed : source);
}
std::string sourced(const Answer<Bandwidth>& answer) {
    return sourced(fmt::format("\"{}Bps\"", answer.value.value), answer.source);
}

// Processor by device or NIC.
std::vector<std::int64_t> places(const std::vector<std::int64_t>& given, std::int64_t count, std::int64_t processors) {
    if (!given.empty()) return given;
    std::vector<std::int64_t> even;
    for (std::int64_t i = 0; i < count; ++i) even.push_back(i * processors / count);
    return even;
}

std::string names(const std::string& stem, const std::vector<std::int64_t>& at, std::int64_t place) {
    std::vector<std::string> quoted;
    for (std::size_t i = 0; i < at.size(); ++i) {
        if (at[i] == place) quoted.push_back(fmt::format("\"{}{}\"", stem, i));
    }
    return fmt::format("{}", fmt::join(quoted, ", "));
}

std::string processor(const NewMachine& m, std::int64_t i) {
    return m.processors == 1 ? "cpu" : fmt::format("cpu{}", i);
}

void add_links(std::string& text, const NewMachine& m) {
    const auto to = std::back_inserter(text);
    const std::vector<std::int64_t> devices = places(m.device_at, m.devices.value, m.processors);
    const std::vector<std::int64_t> nics = places(m.nic_at, m.nics.value, m.processors);
    const auto link = [&](const std::string& from, const std::string& end, const std::string& bandwidth) {
        if (from.empty()) return;
        fmt::format_to(to, "\n[[node.link]]\nfrom = [{}]\nto = \"{}\"\nbandwidth = {}\n", from, end, bandwidth);
    };
    if (m.device_link && m.devices.value > 1) {
        const std::vector<std::int64_t> all(static_cast<std::size_t>(m.devices.value), 0);
        if (m.switched) {
            link(names("gpu", all, 0), "nvswitch", sourced(*m.device_link));
        } else {
            fmt::format_to(to, "\n[[node.link]]\nall_pairs = [{}]\nbandwidth = {}\n", names("gpu", all, 0),
                           sourced(*m.device_link));
        }
    }
    for (const NewMachine::Pair& pair : m.pairs)
        link(fmt::format("\"gpu{}\"", pair.first), fmt::format("gpu{}", pair.second), sourced(pair.link));
    for (std::int64_t i = 0; i < m.processors; ++i) {
        link(names("gpu", devices, i), processor(m, i), sourced(m.host_link.value_or(assumed_host_link(m.device))));
        Answer<Bandwidth> of_nic = m.host_link.value_or(assumed_slot(m.device));
        of_nic.value = std::max(of_nic.value, m.nic.value);
        link(names("nic", nics, i), processor(m, i), sourced(of_nic));
        for (std::int64_t k = i + 1; k < m.processors; ++k)
            link(fmt::format("\"{}\"", processor(m, i)), processor(m, k), sourced("\"64GBps\"", ""));
    }
}

void add_fabric(std::string& text, const NewMachine& m) {
    if (m.nodes.value == 1) return;
    const auto to = std::back_inserter(text);
    fmt::format_to(to, "\n[fabric]\nlink = {}\nlatency = {}\nhop_latency = {}\n", sourced(m.nic),
                   sourced("\"1us\"", ""), sourced("\"130ns\"", ""));
    if (m.groups) {
        fmt::format_to(to, "\n[fabric.dragonfly-plus]\ngroups = {}\nleaves = {}\nnodes = {}\nup = {}\nglobal = {}\n",
                       m.groups->groups, m.groups->leaves, m.groups->nodes, sourced(m.groups->up),
                       sourced(m.groups->global));
        return;
    }
    if (m.tree.value.empty()) {
        text += "\n[fabric.star]\n";
        return;
    }
    std::vector<double> taper = m.taper;
    taper.resize(m.tree.value.size(), 1);
    const std::string written = fmt::format("[{}]", fmt::join(taper, ", "));
    fmt::format_to(to, "\n[fabric.fat-tree]\ndown = [{}]\ntaper = {}\n", fmt::join(m.tree.value, ", "),
                   taper.size() > 1 ? sourced(written, m.taper.empty() ? "" : m.taper_source) : written);
    if (m.rails != NewMachine::Rails::none)
        fmt::format_to(to, "rails = \"{}\"\n", m.rails == NewMachine::Rails::joined ? "joined" : "separate");
}

// As the shipped machines have it of cards whose copies nobody measured.
std::string reduce_of(const NewMachine& m) {
    constexpr double accesses = 3, share = 0.85;
    const auto device = catalogued_device(m.device);
    if (!device) return sourced("\"400GBps\"", "");  // the reader names the devices that there are
    const double gigabytes = std::round(device->memory_bandwidth.value.value * share / accesses / 1e9);
    return sourced(fmt::format("\"{}GBps\"", gigabytes), "three accesses a byte at 0.85 of the memory bandwidth");
}

void add_messaging(std::string& text, const NewMachine& m, const char* where, double overhead_us, double fraction) {
    fmt::format_to(
        std::back_inserter(text), "\n[messaging.{}]\noverhead = {}\nfraction = {}\nreduce = {}\nerror = 0.3\n", where,
        sourced(fmt::format("\"{}us\"", overhead_us), ""), sourced(fmt::format("{}", fraction), ""), reduce_of(m));
}

/// What NVLink switches sum of each byte that a device's NVLinks carry (NVLS), by NCCL's own tuning.
struct Summing {
    std::string_view device;
    double share;  // of the links' data rate
    std::string_view source;
};
constexpr std::string_view by_hopper =
    "20.6 GB/s of each NVLink of 25 GB/s (NCCL's src/graph/topo.h), 0.85 of it by NVLS on Hopper (src/graph/tuning.cc, "
    "2.28)";
constexpr std::string_view by_blackwell =
    "40.1 GB/s of each NVLink of 50 GB/s (NCCL's src/graph/topo.h), 0.74 of it by NVLS on Blackwell "
    "(src/graph/tuning.cc, 2.28)";
constexpr double on_hopper = 20.6 / 25 * 0.85, on_blackwell = 40.1 / 50 * 0.74;
constexpr std::array summing{Summing{"h100", on_hopper, by_hopper}, Summing{"h200", on_hopper, by_hopper},
                             Summing{"gh200", on_hopper, by_hopper}, Summing{"b200", on_blackwell, by_blackwell},
                             Summing{"gb200", on_blackwell, by_blackwell}};

bool is_switched(const NewMachine& m) { return m.switched && m.device_link && m.devices.value > 1; }

// Nothing where no switch joins the devices, or theirs do not sum.
std::string sums_of(const NewMachine& m) {
    const auto known =
        std::ranges::find_if(summing, [&](const Summing& each) { return m.device.starts_with(each.device); });
    if (!is_switched(m) || known == summing.end()) return "";
    const double gigabytes = std::round(m.device_link->value.value * known->share / 1e9);
    return fmt::format("\n[node.switch_sums]\nrate = {}\nlatency = {}\n",
                       sourced(fmt::format("\"{}GBps\"", gigabytes), std::string{known->source}),
                       sourced("\"25us\"", "NVLS inside a node, NCCL's src/graph/tuning.cc (2.28)"));
}

}  // namespace

Bandwidth port_rate(const std::string& text) {
    std::string lower = text;
    std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    const auto found = std::ranges::find(ports, lower, &Port::name);
    if (found != ports.end()) return Bandwidth{found->bytes_per_s};
    try {
        return parse_quantity<Bandwidth>(text);
    } catch (const InputError&) {
        std::vector<std::string_view> words;
        for (const Port& port : ports) words.push_back(port.name);
        throw InputError(fmt::format("'{}' is no rate of a port: write one like 200Gbps, or {}", text, join(words)));
    }
}

namespace {

void check_tapers(const NewMachine& m) {
    if (m.taper.size() > m.tree.value.size())
        throw InputError(fmt::format("{} tapers of a tree of {} levels", m.taper.size(), m.tree.value.size()));
    for (const double taper : m.taper) {
        if (!(taper >= 1)) throw InputError(fmt::format("taper {}: at least 1", taper));
    }
    if (m.taper.size() == m.tree.value.size() && !m.taper.empty() && m.taper.back() != 1)
        throw InputError(
            fmt::format("taper {} of the last level, which nothing is above: 1, or one level more", m.taper.back()));
}

}  // namespace

void check(const NewMachine& m) {
    const auto positive = [](const char* what, double value) {
        if (!(value > 0)) throw InputError(fmt::format("{} {}: more than 0", what, value));
    };
    positive("nodes", static_cast<double>(m.nodes.value));
    positive("devices a node", static_cast<double>(m.devices.value));
    positive("processors a node", static_cast<double>(m.processors));
    positive("network cards a node", static_cast<double>(m.nics.value));
    positive("rate of a network card", m.nic.value.value);
    if (m.host_link) positive("link to the processor", m.host_link->value.value);
    if (m.device_link) positive("link between devices", m.device_link->value.value);
    for (const NewMachine::Pair& pair : m.pairs) {
        if (std::max(pair.first, pair.second) >= m.devices.value)
            throw InputError(fmt::format("a link of devices {} and {}: there are {} a node", pair.first, pair.second,
                                         m.devices.value));
    }
    const double held = std::accumulate(m.tree.value.begin(), m.tree.value.end(), 1.0, std::multiplies<>{});
    if (!m.tree.value.empty() && held < static_cast<double>(m.nodes.value))
        throw InputError(fmt::format("a tree of {} has places for {} nodes, not for {}", fmt::join(m.tree.value, " x "),
                                     held, m.nodes.value));
    if (m.rails != NewMachine::Rails::none && m.tree.value.empty())
        throw InputError("rails of one switch: say how many nodes hang on a switch of a rail, like --tree 32");
    if (m.groups) {
        const NewMachine::Groups& g = *m.groups;
        const auto places =
            static_cast<double>(g.groups) * static_cast<double>(g.leaves) * static_cast<double>(g.nodes);
        if (!m.tree.value.empty() || m.rails != NewMachine::Rails::none)
            throw InputError(
                "a fabric is a tree or a dragonfly+, not both: leave --tree and --rails out, or the groups");
        if (g.groups < 1 || g.leaves < 1 || g.nodes < 1 || places < static_cast<double>(m.nodes.value))
            throw InputError(fmt::format("a dragonfly+ of {} x {} x {} has places for {} nodes, not for {}", g.groups,
                                         g.leaves, g.nodes, places, m.nodes.value));
        positive("links of a leaf to its spines", g.up.value.value);
        positive("links between two groups", g.global.value.value);
    }
    check_tapers(m);
    for (const std::int64_t children : m.tree.value) positive("children of a switch", static_cast<double>(children));
    const auto all_there = [&](const char* what, const std::vector<std::int64_t>& at, std::int64_t count) {
        if (!at.empty() && (std::ssize(at) != count || std::ranges::max(at) >= m.processors))
            throw InputError(
                fmt::format("{}: {} places for {} of them on {} processors", what, at.size(), count, m.processors));
    };
    all_there("devices", m.device_at, m.devices.value);
    all_there("network cards", m.nic_at, m.nics.value);
}

std::vector<std::string> notes_of(const NewMachine& machine) {
    std::vector<std::string> notes = machine.notes;
    if (!sums_of(machine).empty())
        notes.emplace_back(
            "[node.switch_sums]: the NVLink switches of these devices sum all-reduces (NVLS), as NCCL's own tuning has "
            "them; leave the table out where NCCL_NVLS_ENABLE=0");
    return notes;
}

std::string to_toml(const NewMachine& m) {
    check(m);
    std::string text =
        "# Made by rehearse machine new. Figures that say \"assumed\" are nobody's: put what you know in their "
        "place.\n";
    for (const std::string& note : notes_of(m)) text += fmt::format("# {}.\n", printable(note));
    text += fmt::format(
        "schema = \"rehearse.machine/1\"\nname = \"{}\"\nsummary = \"{} node{} of {} {}\"\n\n"
        "[[device]]\nname = \"{}\"\nlike = \"{}\"\n\n"
        "[[node]]\nname = \"node\"\ncount = {}\ndevices = [{{ class = \"{}\", name = \"gpu\", count = {} }}]\n",
        m.name, m.nodes.value, m.nodes.value == 1 ? "" : "s", m.devices.value, m.device, m.device, m.device,
        m.nodes.value, m.device, m.devices.value);
    const auto to = std::back_inserter(text);
    if (m.nodes.value > 1) fmt::format_to(to, "nics = [{{ name = \"nic\", count = {} }}]\n", m.nics.value);
    fmt::format_to(to, "bridges = [{{ name = \"cpu\", kind = \"processor\"{} }}{}]\n",
                   m.processors > 1 ? fmt::format(", count = {}", m.processors) : "",
                   is_switched(m) ? R"(, { name = "nvswitch", kind = "nvlink" })" : "");
    NewMachine linked = m;
    if (m.nodes.value == 1) linked.nic_at.assign(static_cast<std::size_t>(m.nics.value), -1);
    add_links(text, linked);
    text += sums_of(m);
    add_fabric(text, m);
    add_messaging(text, m, "inside", 7.7, 0.85);
    if (m.nodes.value > 1) add_messaging(text, m, "across", 5.5, 0.92);
    return text;
}

}  // namespace rehearse::models
