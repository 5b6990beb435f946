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
#include "core/machine.hpp"

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
struct LibraryArchitecture {
    std::string name;
    std::vector<std::string> devices;  // names of devices that are of it; * is any text
    double link = 0, wire = 0;         // GB/s of one GPU-to-GPU link: as the library counts it, and by its data sheet
    std::vector<double> speeds_inside, speeds_across;  // GB/s that a channel is tried with
    double ll_inside = 0;                              // GB/s of LL inside a node
    ByNodes tree{}, tree_ll128{}, nvls{};              // GB/s of a channel at most
    double ring_ll128 = 0;                             // GB/s of a channel at most
    double nvls_efficiency = 0;                        // 0: its switches do not sum
    bool split_slow = true;  // whether channels from 25 GB/s on are always cut in two (before Hopper)
    double plateau = 1;      // how many times as long a ring by Simple takes to begin, between nodes
    double ring_reached = 1, nvls_reached = 1;  // measured long all-reduces of one node: share of the library's figure
    double error = 0;                           // of a prediction inside a node, one standard deviation
    std::string source;
};

/// What changed with a version.
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
    std::array<std::vector<double>, 3> tree_correction;  // by log2(bytes / 64)
    std::string source;
};

/// How messages travel between nodes.
struct LibraryTransport {
    std::string name;
    double share = 1;            // of a NIC's rate that long messages reach
    double through_cpu = 1;      // the same again where GPU and NIC meet in the CPU
    double eager_kb = 0;         // messages up to here are sent at once
    double rendezvous = 0;       // us a step takes longer by a message of 1 KB; grows with its size to the power below
    double power = 1, most = 0;  // us at most
    /// us that the thread of a NIC is busy for a message: eager, by LL beyond, by Simple for each 16 KB, and at most
    double gap_eager = 0, gap_ll = 0, gap_16kb = 0, gap_most = 0;
    double step = 1;            // how many times as long a step takes as the library's table says
    double exchange_share = 1;  // of the rate above when everybody sends to everybody
    double error = 0;           // of a prediction, one standard deviation
    std::string source;
};

struct CollectiveLibrary {
    std::string name, summary;
    double pcie_share = 1;   // of a PCIe link's rate that the library counts
    ByNodes ll_across{};     // GB/s of LL: (unused), two nodes, more
    double switch_step = 0;  // us that a step inside a node takes longer through a switch of GPU-to-GPU links
    double call = 0;         // us of a call among many that follow on each other
    double synchronous = 0;  // us more of a call that is waited for
    std::vector<LibraryArchitecture> architectures;
    std::vector<LibraryVersion> versions;  // oldest first
    std::vector<LibraryTransport> transports;
};

/// The library of collectives that jobs on a machine use.
struct CollectiveSoftware {
    std::shared_ptr<const CollectiveLibrary> library;
    std::int64_t version = 0;  // 0: the newest
    std::string transport;     // empty: the library's first
    bool sharp = false;        // switches between nodes sum
    std::string nics_at;       // "cpu", "switch" or "gpu": where a GPU's way to its NIC turns; empty: as the links say
    std::string source;        // empty: the machine file says nothing, and the default holds
};

/// A library's collective, which chooses and is priced as a whole (sim/collective/libraries). Its rounds, where a
/// prediction asks which links it uses and where it is run without the library, are those of its rings; `inside` and
/// `across` are the algorithm and protocol that it must take, empty where it chooses.
inline bool of_library(const Algorithm& algorithm) { return algorithm.name == "nccl"; }

/// What the file that this machine was read from says about its library: kept beside the machines, by their origin.
/// Without a library where nothing was told, as of a machine that was made without a file.
CollectiveSoftware collectives_of(const Machine& machine);
void tell_collectives(const Machine& machine, CollectiveSoftware software);

}  // namespace rehearse
