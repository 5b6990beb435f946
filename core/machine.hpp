// SPDX-License-Identifier: Apache-2.0
// A machine as its data sheets and measurements describe it. Every figure carries its source.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/op.hpp"
#include "core/units.hpp"

namespace rehearse {

template <typename T>
struct Sourced {
    T value{};
    std::string source;  // paper, data sheet, or "measured, host, date, n samples, residual"
};

/// No share of a roofline is as large, though a kernel may exceed the roof where caches hold what it moves, or where it
/// multiplies less than its formula says (Winograd's): 10 and more can only be a percentage.
inline constexpr double share_limit = 10;

/// The share of the roofline that real kernels reach, with the spread of that share between problems.
struct Efficiency {
    std::string kind;          // kind_of(op), or "*" for every kind without a row of its own
    std::optional<Pass> pass;  // every pass when absent
    std::optional<DataType> type;
    double fraction = 1;  // time = roofline time / fraction
    double error = 0;     // relative error of the price, one standard deviation
    std::string source;
};

/// What a price rests on, in the three words of every table, picture and document (prices/prices.hpp).
enum class Basis {
    measured_here,      // this problem, on the host that this process runs on
    measured_on_class,  // this problem, on a device of this class
    modelled            // all else: of measurements of other problems or devices, of tiles, of the data sheet
};

/// One measured problem.
struct Measured {
    Seconds median;
    double error = 0;  // relative standard deviation between samples
    std::int64_t samples = 0;
    std::string source;
    Basis basis = Basis::measured_on_class;  // modelled: a price that a framework's overheads were added to
};

class PriceModel;
struct TileModel;

struct DeviceClass {
    std::string name;
    std::string like;                            // the device of models/devices.toml that it is; empty: none
    std::map<DataType, Sourced<FlopRate>> peak;  // by the type of the operands; accumulation in f32
    Sourced<Bytes> memory;
    Sourced<Bandwidth> memory_bandwidth;
    Sourced<Seconds> launch;  // cost of starting one kernel that cannot be hidden
    std::vector<Efficiency> efficiencies;
    std::map<std::string, Measured> measured;  // by to_string(Problem)
    std::shared_ptr<const PriceModel> model;   // of kernels that were measured on other shapes; may be null
    std::shared_ptr<const TileModel> tiles{};  // of kernels on a GPU that was not measured; may be null
    bool host = false;              // it is the node's processor, or part of one, and computes in the host's memory
    Sourced<double> step_spread{};  // by how much one step differs from the next, relative standard deviation
};

/// Whose kernel computes attention where it is fused.
enum class FusedKernel {
    library,  // the chip's own: cuDNN's of its generation, FlashAttention-2 on an A100
    flash,    // FlashAttention-2, of Ampere's instructions on every chip
    triton    // PyTorch's compiler's
};
std::string_view to_string(FusedKernel kernel);

/// Of modules that a framework computes operator by operator, each a kernel: how many times the bytes of one fused
/// kernel these move in 16 bits. Without a source: it has the fused kernel.
struct ModulePasses {
    Sourced<double> rms, rms_backward;        // RMS normalization, in f32 between casts
    Sourced<double> rotary, rotary_backward;  // rotary embedding of queries or keys
};

/// How a framework drives its devices: what differs between two programs on the same card (models/software.toml). Of a
/// machine whose devices are priced by tiles; their TileModel holds these figures beside those of the chip.
struct Software {
    std::string name, summary;
    /// How many times the bytes that must move elementwise operators and normalizations do move, those of attention's
    /// operands too: 1 where the framework fuses them.
    Sourced<double> elementwise_passes;
    /// Of attention: how many times its scores, in 16 bits, cross the memory interface forward; half as often again
    /// backward. 0: fused (Dao et al. 2022), they never do, and backward computes them again.
    Sourced<double> score_passes;
    /// Of these, what a causal mask saves forward, where softmax reads only what the mask shows; twice that backward.
    Sourced<double> masked_passes;
    Sourced<double> loss_passes;  // how many times the classes' scores do, forward and again backward
    Sourced<Seconds> issue;       // what the host takes for one kernel; without a source: as long as its launch
    Sourced<double> dense_kernels, attention_kernels, loss_kernels;  // of one pass of each; other operators have one
    /// Of a mixture of experts, forward, beside its products: its router, what counts, sends and sorts rows. Twice as
    /// many backward. Without a source: two.
    Sourced<double> mixture_kernels;
    FusedKernel attention_kernel = FusedKernel::library;  // where its scores never cross memory
    ModulePasses modules;
    /// Whether the host issues operators without waiting for the device, so that a step waits for it only where all
    /// that was issued is over; else each operator takes as long as its issue at least.
    bool issues_ahead = false;
};

enum class VertexKind {
    device,
    nic,
    bridge  // forwards: a CPU socket, a PCIe or an NVLink switch
};
enum class BridgeKind {
    pcie,
    processor,
    nvlink
};  // nvlink: a switch that joins devices with each other alone, not with the host
std::string_view to_string(BridgeKind kind);
/// Names are for people: no figure depends on them.
struct Vertex {
    std::string name;
    VertexKind kind = VertexKind::bridge;
    int device_class = -1;                 // of a device
    BridgeKind bridge = BridgeKind::pcie;  // of a bridge
    std::string group{};                   // those that are alike: "gpu" of gpu0 to gpu5; empty: the name
};
inline const std::string& group_of(const Vertex& vertex) { return vertex.group.empty() ? vertex.name : vertex.group; }

/// A full-duplex link inside a node; `bandwidth` is what each direction carries.
struct NodeLink {
    int a = 0, b = 0;  // vertices
    Sourced<Bandwidth> bandwidth;
    Sourced<Seconds> latency;
};

/// Switches of a node, or between nodes, that add up what devices send and copy the sum to all of them (SHARP).
struct SwitchSums {
    Sourced<Bandwidth> rate;   // at which a device's data go through them, each direction; without a source: they don't
    Sourced<Seconds> latency;  // of a whole all-reduce
};

struct NodeKind {
    std::string name;
    std::int64_t count = 1;
    std::vector<Vertex> vertices;
    std::vector<NodeLink> links;
    SwitchSums sums{};
};
std::int64_t devices_per_node(const NodeKind& node);
/// What joins the node's first device to switches that could sum, each direction: its links to those of NVLink, or all
/// of its links where it has none.
Bandwidth reaches_switches(const NodeKind& node);

/// Every NIC on one switch that never blocks.
struct Star {};
/// down[l] children below a switch of level l, level 0 nearest to the nodes; above level l the bandwidth is that of the
/// ports below divided by taper[l]. One aggregated, adaptively routed up-link a switch, unless its cables are told:
/// then all messages to one network card take the same cable, by its number (InfiniBand's static tables). Racks are a
/// tree of two levels.
struct FatTree {
    std::vector<std::int64_t> down;
    std::vector<double> taper;
    std::vector<std::int64_t> cables{};  // above a switch of each level; empty: adaptive routing
    /// Where card k of every node hangs on switches of its own.
    enum class Rails { none, joined, separate };
    Rails rails = Rails::none;  // joined: the switches of the last level are all rails'; separate: nothing joins them
};
/// How messages find their way through groups that are joined all to all: by the links that join their ends alone, or
/// by those of a third router or group, too, where that is less busy (UGAL; Singh 2005, Kim et al. 2008).
enum class FabricRouting { minimal, adaptive };
/// groups x routers a group x nodes a router; routers of a group are joined all to all, groups by global links,
/// aggregated a pair of groups (Kim et al. 2008).
struct Dragonfly {
    std::int64_t groups = 1, routers = 1, nodes = 1;
    Sourced<Bandwidth> local;   // between two routers of a group, each direction
    Sourced<Bandwidth> global;  // between two groups, each direction, all its links together
    FabricRouting routing = FabricRouting::minimal;
};
/// Dragonfly+ (Shpiner et al. 2017): groups x leaves a group x nodes a leaf; in a group every leaf is joined to every
/// spine, and the spines carry the links to the other groups.
struct DragonflyPlus {
    std::int64_t groups = 1, leaves = 1, nodes = 1;
    Sourced<Bandwidth> up;      // of a leaf to all spines of its group together, each direction
    Sourced<Bandwidth> global;  // between two groups, each direction, all their links together
    FabricRouting routing = FabricRouting::adaptive;
};
/// One node a router, a ring in each dimension, dimension-ordered routing.
struct Torus {
    std::vector<std::int64_t> dims;
    Sourced<Bandwidth> link;
};
using Topology = std::variant<Star, FatTree, Dragonfly, Torus, DragonflyPlus>;

struct Fabric {
    Topology topology;
    Sourced<Bandwidth> link;       // NIC to its switch, each direction
    Sourced<Seconds> latency;      // from NIC to NIC through one switch
    Sourced<Seconds> hop_latency;  // each switch more
    SwitchSums sums{};             // of its switches (SHARP): the rate is that of one network card
};

/// Messages of one range of sizes, between two ranks with nobody else on their links: overhead + bytes / rate (LogGP's
/// o, L and G; Alexandrov et al. 1995), where protocols change with the size.
struct MessagePiece {
    Bytes up_to;  // the size included; of the last piece any size
    Seconds overhead;
    Bandwidth rate;
    std::string source;
};

/// What a rank's core loses to communication that goes on beside its computation, and communication to computation.
struct Overlap {
    Sourced<Seconds> core_time;  // of the core, a message that it sends and one that it receives
    Sourced<Bandwidth>
        core_rate;           // bytes sent (and as many received) a second of the core; without a source: none lost
    Sourced<Seconds> delay;  // of such a message, because the core computes
};

/// What the software adds to the wire, inside a node or across nodes.
struct Messaging {
    Sourced<Seconds> overhead;   // of one message, beyond the links' latency
    Sourced<double> fraction;    // of a link's bandwidth that a long message reaches
    Sourced<Bandwidth> reduce;   // bytes of incoming data combined into a buffer a second
    double error = 0;            // relative error of a communication price, one standard deviation
    Sourced<Seconds> request{};  // of rank 0's core, to note that one rank has one tensor (control planes; sim/control)
    /// In the order of their sizes. Where there are some, a message takes as long as its piece says, or as its share
    /// of the links allows, whichever is longer, and `overhead` says no more than the first piece.
    std::vector<MessagePiece> pieces{};
    Overlap overlap{};
    /// Inside nodes: a ring is one, in the order of ranks (as of MPI libraries), though devices have several direct
    /// links.
    bool one_ring = false;
};
/// What a message of this size takes beyond `wire`, its time on links of its own: by its piece; 0 without pieces.
Seconds beyond_wire(const Messaging& messaging, Bytes bytes, Seconds wire);

struct StorageTier {
    std::string name;
    Sourced<Bandwidth> read;  // of the whole tier, or of one node when `per_node`
    bool per_node = false;
    Sourced<Bandwidth> write{};  // without a source: as fast as reading
    /// Of a shared tier: what one node reads from or writes to it at most, beside what its NICs allow. Without a
    /// source: not known.
    Sourced<Bandwidth> client{};
};

/// How far whole training steps were from the sum of their prices, where both were measured; relative.
struct InSitu {
    double bias = 0;   // one standard deviation between networks
    double noise = 0;  // ... between runs of the same
    std::string source;
    std::string doubt{};  // why the machine's prices are not to be trusted; empty: they are
};

/// Devices that are ranks on the same cores, more of them than cores: each computes at the rate of a core of its own
/// while no more of them compute than there are cores, and at its even share of them else. Prices are those of a core.
struct SharedCores {
    std::int64_t cores = 1;
    std::vector<std::int64_t> devices;
    std::string source;
    bool operator==(const SharedCores&) const = default;
};

struct CollectiveLibrary;

/// The library of collectives that jobs on a machine use.
struct CollectiveSoftware {
    std::shared_ptr<const CollectiveLibrary> library;
    std::int64_t version = 0;  // 0: the newest
    std::string transport;     // empty: the library's first
    bool sharp = false;        // switches between nodes sum
    std::string nics_at;       // "cpu", "switch" or "gpu": where a GPU's way to its NIC turns; empty: as the links say
    std::string source;        // empty: the machine file says nothing, and the default holds
    bool of_another = false;   // the machine was asked for with a [transport], and these are of the network without it
};

/// It copies, moves and ends in machine.cpp: files that hand it on are compiled sooner.
struct Machine {
    std::string name, summary;
    std::string origin;  // the file it was read from
    std::vector<DeviceClass> classes;
    std::vector<NodeKind> nodes;  // nodes are numbered kind after kind
    Fabric fabric;
    Messaging inside, across;
    std::vector<StorageTier> storage;
    InSitu in_situ{};  // without a source: not measured
    std::vector<SharedCores> shared_cores{};
    Software software{};
    CollectiveSoftware collectives{};  // without a library: made without a file

    Machine();
    Machine(const Machine& other);
    Machine(Machine&& other) noexcept;
    Machine& operator=(const Machine& other);
    Machine& operator=(Machine&& other) noexcept;
    ~Machine();
};
std::int64_t node_count(const Machine& machine);
std::int64_t device_count(const Machine& machine);

/// Where a device sits. Devices are numbered node after node, in the order of the node's vertices.
struct DeviceAt {
    std::int64_t node = 0;
    int kind = 0;    // index into Machine::nodes
    int vertex = 0;  // index into that NodeKind::vertices
};
DeviceAt locate(const Machine& machine, std::int64_t device);
const DeviceClass& class_of(const Machine& machine, std::int64_t device);

}  // namespace rehearse
