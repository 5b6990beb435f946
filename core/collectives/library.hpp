// SPDX-License-Identifier: Apache-2.0
// A library of collectives on GPUs (NCCL, RCCL) as data: how it finds its channels, how it prices an algorithm before
// it chooses one, and what its transports cost. models/libraries/*.toml hold the figures and their sources.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/collectives/collective.hpp"

namespace rehearse {

enum class LibraryAlgorithm { ring, tree, collnet, nvls, nvls_tree, pat };
enum class LibraryProtocol { ll, ll128, simple };
/// Their words, in the order of the enumerators; the last leaves the choice to the library.
inline constexpr std::array<std::string_view, 7> library_algorithm_words{"ring",     "tree", "collnet", "nvls",
                                                                         "nvlstree", "pat",  "any"};
inline constexpr std::array<std::string_view, 4> library_protocol_words{"ll", "ll128", "simple", "any"};

/// Of LL, LL128 and Simple, in microseconds or GB/s of 1e9 bytes, as the libraries' own tables have them.
using ByProtocol = std::array<double, 3>;
/// Of one node, two nodes and more.
using ByNodes = std::array<double, 3>;

/// What the library believes of a generation of GPUs, and what that generation was measured to reach.
/// Large: one member a constant of the library's own cost model, or of what was measured in its place.
struct LibraryArchitecture {
    std::string name;
    std::vector<std::string> devices;  // names of devices that are of it; * is any text
    double link = 0, wire = 0;         // GB/s of one GPU-to-GPU link: as the library counts it, and by its data sheet
    std::vector<double> speeds_inside, speeds_across;  // GB/s that a channel is tried with
    double ll_inside = 0;                              // GB/s of LL inside a node
    ByNodes tree{}, tree_ll128{}, nvls{};              // GB/s of a channel at most
    double ring_ll128 = 0;                             // GB/s of a channel at most
    double ll_block = 0;             // GB/s of data that a thread block passes on by LL, as measured; 0: its channel's
    double nvls_efficiency = 0;      // 0: its switches do not sum
    std::int64_t nvls_channels = 0;  // that send to the switches
    bool split_slow = true;          // whether channels from 25 GB/s on are always cut in two (before Hopper)
    double plateau = 1;              // how many times as long a ring by Simple takes to begin, between nodes
    double ring_reached = 1, nvls_reached = 1;  // measured long all-reduces of one node: share of the library's figure
    double direct_reached = 1;                  // of rings over links from device to device, past no switch
    double direct_ll128 = 1;                    // share of that by LL128, whose packets are shorter
    double error = 0;                           // of a prediction inside a node, one standard deviation
    std::string source;
};

/// What changed with a version.
/// Large: one member a constant of the library's own cost model.
struct LibraryVersion {
    std::int64_t since = 0;  // 21803 is 2.18.3
    std::vector<LibraryAlgorithm> algorithms;
    ByProtocol tree_base{}, ring_base{};        // us
    ByProtocol tree_link{}, ring_link{};        // us a step over a GPU-to-GPU link
    ByProtocol tree_pcie{}, ring_pcie{};        // ... over PCIe
    ByProtocol tree_network{}, ring_network{};  // ... between nodes
    double nvls_inside = 0, nvls_network = 0;   // us: a sum in the node's switches; a step of an NVLS tree
    double pat_base = 0, pat_rank = 0;          // us
    double ring_ll_share = 0.5;                 // of the bus that a ring by LL has
    double posting = 0;  // us at least a step in a ring over several nodes; three times by Simple
    double plateau = 0;  // 0: the architecture's
    /// Counts a ring all-reduce's steps between N nodes as 2 N, not 2 (N - 1), when it chooses.
    bool closed_rings = false;
    std::array<std::vector<double>, 3> tree_correction;  // by log2(bytes / 64)
    std::array<std::vector<double>, 3> ring_correction;  // the same of rings; empty: 1
    /// RCCL's: shares of the bus on two nodes and less and on more, in place of all limits; 0 in Simple's place: none.
    /// A protocol with share 0 is not used.
    std::array<ByProtocol, 2> tree_share{}, ring_share{};
    std::string architecture;  // the only one that it is of; empty: all
    /// Not one that chooses: what steps take, where the versions that choose have other measures (RCCL's shares).
    bool prices = false;
    std::string source;
};

/// How messages travel between nodes.
/// Large: one member a measured constant.
struct LibraryTransport {
    std::string name;
    std::string like;    // another, whose figures stand in where nobody measured this one; empty: none
    double latency = 0;  // us that its plugin tells the library, which believes them; twice by Simple
    std::vector<LibraryProtocol> protocols;  // that it keeps the order of; empty: all
    double share = 1;                        // of a NIC's rate that long messages reach
    double through_cpu = 1;                  // the same again where GPU and NIC meet in the CPU
    double eager_kb = 0;                     // messages up to here are sent at once
    double rendezvous = 0;       // us a step takes longer by a message of 1 KB; grows with its size to the power below
    double power = 1, most = 0;  // us at most
    /// us that the thread of a NIC is busy for a message: eager, or a rendezvous; by Simple as its size up to 32 KB
    double gap_eager = 0, gap = 0;
    double gap_tree_16kb = 0;         // ... of a tree, up to 64 KB: twice as many messages are under way
    double window = 0;                // steps of a call whose receives stand ready, so that they cost as eager ones
    double inject_b = 0, inject = 0;  // messages of an all-to-all up to so many bytes are stored by the CPU: us each
    double unhidden = 1;              // share of a Simple ring's latency, by the library's table, that no data hide
    double late_ll = 1;               // how many times as long a tree's step by LL takes from 2.19 on
    double step = 1;            // how many times as long a step by LL takes as the table says; others as much longer
    double exchange_share = 1;  // of a NIC's rate in all-to-alls, of messages by the host's memory
    double error = 0;           // of a prediction, one standard deviation
    std::string source;
};

/// What measured tables of a machine may say of its transport, by its name in machine files.
struct TransportFigure {
    std::string_view key;
    double LibraryTransport::*figure;
};
inline constexpr std::array transport_figures{TransportFigure{"share", &LibraryTransport::share},
                                              TransportFigure{"through_cpu", &LibraryTransport::through_cpu},
                                              TransportFigure{"step", &LibraryTransport::step},
                                              TransportFigure{"rendezvous", &LibraryTransport::rendezvous},
                                              TransportFigure{"gap", &LibraryTransport::gap},
                                              TransportFigure{"gap_tree_16kb", &LibraryTransport::gap_tree_16kb},
                                              TransportFigure{"unhidden", &LibraryTransport::unhidden},
                                              TransportFigure{"inject", &LibraryTransport::inject},
                                              TransportFigure{"exchange_share", &LibraryTransport::exchange_share},
                                              TransportFigure{"error", &LibraryTransport::error}};
/// ... and of its devices, inside a node.
struct ArchitectureFigure {
    std::string_view key;
    double LibraryArchitecture::*figure;
};
inline constexpr std::array architecture_figures{
    ArchitectureFigure{"ring_reached", &LibraryArchitecture::ring_reached},
    ArchitectureFigure{"nvls_reached", &LibraryArchitecture::nvls_reached},
    ArchitectureFigure{"direct_reached", &LibraryArchitecture::direct_reached},
    ArchitectureFigure{"error_inside", &LibraryArchitecture::error}};

struct CollectiveLibrary {
    std::string name, summary;
    double pcie_share = 1;   // of a PCIe link's rate that the library counts
    ByNodes ll_across{};     // GB/s of LL: (unused), two nodes, more
    double switch_step = 0;  // us that a step inside a node takes longer through a switch of GPU-to-GPU links
    double synchronous = 0;  // us more of a call that is waited for, beside those that follow on each other
    std::vector<LibraryArchitecture> architectures;
    std::vector<LibraryVersion> versions;  // oldest first
    std::shared_ptr<const std::vector<LibraryTransport>>
        transports;  // the same of all libraries; the first is the default
};

/// Returns the generation of a device by its name or by that of the device that it is like; null: the library knows
/// none.
inline const LibraryArchitecture* architecture_of(const CollectiveLibrary& library, std::string_view like,
                                                  std::string_view name) {
    const auto is_like = [](std::string_view device, std::string_view pattern) {
        if (!pattern.ends_with('*')) return device == pattern;
        return device.starts_with(pattern.substr(0, pattern.size() - 1));
    };
    for (const LibraryArchitecture& each : library.architectures) {
        for (const std::string& pattern : each.devices) {
            if (is_like(like, pattern) || is_like(name, pattern)) return &each;
        }
    }
    return nullptr;
}

/// Names of all-reduces that are a library's, as in models/libraries/.
inline constexpr std::array<std::string_view, 2> library_names{"nccl", "rccl"};

/// A library's collective, which chooses and is priced as a whole (sim/collective/libraries). Its rounds, where a
/// prediction asks which links it uses and where it is run without the library, are those of its rings; `inside` and
/// `across` are the algorithm and protocol that it must take, empty where it chooses.
inline bool of_library(std::string_view name) { return name == library_names[0] || name == library_names[1]; }
inline bool of_library(const Algorithm& algorithm) { return of_library(algorithm.name); }

}  // namespace rehearse
