// SPDX-License-Identifier: Apache-2.0
// A cluster in ten answers, or as its tools describe it, to a machine file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace rehearse::models {

/// A figure, and who says so; empty: it is assumed.
template <typename T>
struct Answer {
    T value{};
    std::string source{};
};

/// An own cluster, as `machine new` asks for it.
/// Large: one member a question.
struct NewMachine {
    std::string name = "my-cluster";
    Answer<std::int64_t> nodes{1};
    std::string device = "h100-sxm";  // of models/devices.toml
    Answer<std::int64_t> devices{1};  // a node
    /// Between every two devices; switched: of each device to the node's switches. Absent: by the processors alone.
    std::optional<Answer<Bandwidth>> device_link{};
    bool switched = false;
    /// In its place where not every two devices have a link, or some have more of them: by the devices' numbers.
    struct Pair {
        std::int64_t first = 0, second = 0;
        Answer<Bandwidth> link{};
    };
    std::vector<Pair> pairs{};
    /// Of a device to its processor, each direction; absent: assumed_host_link.
    std::optional<Answer<Bandwidth>> host_link{};
    Answer<std::int64_t> nics{1};
    Answer<Bandwidth> nic{Bandwidth{25e9}};    // each direction
    std::int64_t processors = 1;               // sockets, or NUMA nodes, of a node
    std::vector<std::int64_t> device_at{};     // processor by device; empty: shared out evenly
    std::vector<std::int64_t> nic_at{};        // by NIC
    Answer<std::vector<std::int64_t>> tree{};  // children below a switch of each level, nodes first; empty: one switch
    std::vector<double> taper{};               // bandwidth down over bandwidth up of each level; empty: none blocks
    std::string taper_source{};                // who says the tapers; empty: they are assumed
    /// Where card k of every node hangs on switches of its own: of what machine files call rails.
    enum class Rails { none, joined, separate };
    Rails rails = Rails::none;
    /// A dragonfly+ in the tree's place: leaves of a group, nodes of a leaf, what a leaf has to all spines of its group
    /// together and each two groups have between them, each direction.
    struct Groups {
        std::int64_t groups = 1, leaves = 1, nodes = 1;
        Answer<Bandwidth> up{}, global{};
    };
    std::optional<Groups> groups{};
    std::vector<std::string> notes{};  // what a reader of a tool's text left out or assumed; comments of the file
};

/// What a device has to its processor, and a network card beside it, each direction: what their generation has.
Answer<Bandwidth> assumed_host_link(std::string_view device);
Answer<Bandwidth> assumed_slot(std::string_view device);

/// InputError for answers that cannot be together.
void check(const NewMachine& machine);
/// `machine.notes`, and what the file says besides of its own accord.
std::vector<std::string> notes_of(const NewMachine& machine);
/// The file, which parse_machine takes. Figures without a source say "assumed".
std::string to_toml(const NewMachine& machine);

/// Bandwidth of a port, each direction: "NDR", "HDR", "200Gbps", "Slingshot-11". InputError with the words.
Bandwidth port_rate(const std::string& text);

/// What these tools print tells of a node, or of the fabric. InputError with `origin` and the line for text that is not
/// theirs.
NewMachine with_nvidia_topology(NewMachine machine, std::string_view text, const std::string& origin);  // topo -m
/// A tree of two levels or three; rails where the adapters' descriptions ("node7 mlx5_2") say which node each is of and
/// each of a node's cards has leaf switches of its own; dragonfly+ where switches without hosts join groups of leaves
/// with every other group. Nodes and cards of a node are counted where the descriptions tell them.
NewMachine with_ibnetdiscover(NewMachine machine, std::string_view text, const std::string& origin);
NewMachine with_lstopo(NewMachine machine, const std::string& path);  // XML

}  // namespace rehearse::models
