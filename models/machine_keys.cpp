// SPDX-License-Identifier: Apache-2.0
#include "models/machine_keys.hpp"

#include <array>

namespace rehearse::models {

namespace {

constexpr MachineKey source{"source", "text",
                            "where the figures come from; that of a table holds for the tables below it"};

constexpr std::array top{
    MachineKey{"name", "name", "as results call the machine"},
    MachineKey{"summary", "text", "what `rehearse machines` says of it"},
    MachineKey{"schema", "text", "`rehearse.machine/1`; may be left out"},
    MachineKey{"extends", "name or file",
               "a machine or a .toml file, by its path from this one, that says what this one does not"},
    MachineKey{"software", "name", "of `models/software.toml`; or a table, below. Default `generic`"},
    source,
};
constexpr std::array device{
    MachineKey{"name", "name", "that nodes call it by"},
    MachineKey{"like", "name", "a device of `models/devices.toml`; what else this table gives comes before that"},
    MachineKey{"known_as", "name",
               "without `like`: the device of `models/devices.toml` that it is, though all its figures stand here; "
               "`calibrate` writes it"},
    MachineKey{"memory", "size", "of one device"},
    MachineKey{"memory_bandwidth", "bandwidth", "read and written together"},
    MachineKey{"launch", "time", "that a kernel takes at the least"},
    MachineKey{"host", "true or false",
               "`true`: the node's processor itself, so that batches need no copy to it (`--loader inline`)"},
    MachineKey{"step_spread", "number",
               "by how much a step of one device differs from its next one, relative standard deviation; steps of "
               "several wait for the slowest. `calibrate --trace` writes it"},
    MachineKey{"price_model", "name",
               "measurements that are built in, of convolutions and products; before any efficiency"},
    MachineKey{"kernels", "name or text",
               "the board whose own kernels come before `price_model` and `likeness`; or, for f32 "
               "convolutions of a board that nobody measured, \"108 processors, 400 W, 7 nm\""},
    MachineKey{"volumes", "name",
               "how gradients of the weights of 3-D convolutions are dealt out to processors: `by-sample`, a tile of "
               "them and a sample at a time, or `cut`, as finely as pays, the default"},
    source,
};
constexpr std::array peak{
    MachineKey{"f32", "FLOP rate", "of operands in f32, without TF32"},
    MachineKey{"f16", "FLOP rate", "dense, not sparse"},
    MachineKey{"bf16", "FLOP rate", "dense"},
    MachineKey{"tf32", "FLOP rate", "dense"},
    MachineKey{"fp8", "FLOP rate", "dense"},
    source,
};
constexpr std::array likeness{
    MachineKey{"like", "name", "the price model whose shares of the peak are taken"},
    MachineKey{"processors", "count", "its own, which waves of tiles fill"},
    MachineKey{"fraction", "number", "of these shares; default 1"},
    MachineKey{"product_fraction", "number",
               "the same of convolutions that are products, as no fast transform fits them; default `fraction`"},
    MachineKey{"error", "number", "one relative standard deviation, on top of the model's own"},
    source,
};
constexpr std::array efficiency{
    MachineKey{"kind", "operator", "`*` stands for every kind without a row of its own"},
    MachineKey{"pass", "pass", "`forward`, `backward_data`, `backward_weights` or `update`; without it every pass"},
    MachineKey{"type", "number type", "without it every type"},
    MachineKey{"fraction", "number", "time = roofline time / fraction + launch"},
    MachineKey{"error", "number", "one standard deviation, relative to the price"},
    source,
};
constexpr std::array tiles{
    MachineKey{"processors", "number", "streaming multiprocessors, each at work on a tile"},
    MachineKey{"large_tile", "share", "of the peak that a full wave of tiles of 256 x 128 reaches at a long k"},
    MachineKey{"small_tile", "share", "speed of tiles of 128 x 128 over that"},
    MachineKey{"depth", "number", "values of k in whose time a tile is begun and stored"},
    MachineKey{"unaligned", "number", "slowdown where a size is no multiple of 8 values (16 bytes)"},
    MachineKey{"memory", "share", "of the memory bandwidth that kernels reach"},
    MachineKey{"before_model", "true or false", "`true`: after measured prices alone, before `price_model`"},
    MachineKey{"error", "number", "one standard deviation, relative"},
    source,
};
constexpr std::array price{
    MachineKey{"problem", "problem string", "as `bench` and `explain` print it"},
    MachineKey{"median", "time", "measured"},
    MachineKey{"error", "number", "one standard deviation, relative"},
    MachineKey{"samples", "count", "that the median is of"},
    source,
};
constexpr std::array factor{
    MachineKey{"kind", "operator", "whose prices in all passes it corrects"},
    MachineKey{"type", "number type", "default f32"},
    MachineKey{"factor", "number", "that prices which were not measured are multiplied by"},
    MachineKey{"error", "number", "of the factor, relative"},
    MachineKey{"scale", "number", "that the errors of single prices are multiplied by"},
    MachineKey{"kernels", "count", "that it was taken from"},
    source,
};
constexpr std::array software{
    MachineKey{"name", "name", "as `predict` calls it below its table"},
    MachineKey{"like", "name", "of `models/software.toml`, for what is not said here"},
    MachineKey{"summary", "text", "what it is"},
    MachineKey{"elementwise_passes", "number", "times that values cross memory in an elementwise operator"},
    MachineKey{"score_passes", "number", "times that attention's scores do; 0: attention is fused"},
    MachineKey{"masked_passes", "number", "of these, what a causal mask saves forward; twice that backward"},
    MachineKey{"loss_passes", "number", "times that the loss's scores do"},
    MachineKey{"issue", "time", "that the host takes for a kernel; without it a kernel takes its launch"},
    MachineKey{"issues_ahead", "true or false",
               "whether the host goes on while the device computes, so that only what it has not issued is waited for"},
    MachineKey{"dense_kernels", "number", "that a dense layer launches"},
    MachineKey{"attention_kernels", "number", "that attention launches"},
    MachineKey{"attention_kernel", "name",
               "where it is fused: `library` (of the chip's generation; the default), `flash` (FlashAttention-2) or "
               "`triton`"},
    MachineKey{"loss_kernels", "number", "that the loss launches"},
    MachineKey{
        "mixture_kernels", "number",
        "that a mixture of experts launches forward beside its products, twice as many backward; without it two"},
    MachineKey{"rms_passes", "number",
               "times the bytes of one fused kernel that RMS normalization moves forward, operator by operator in 16 "
               "bits; without it: one fused kernel"},
    MachineKey{"rms_backward_passes", "number", "the same of its backward pass"},
    MachineKey{"rotary_passes", "number", "the same of a rotary embedding"},
    MachineKey{"rotary_backward_passes", "number", "the same of its backward pass"},
    source,
};
constexpr std::array collectives{
    MachineKey{"library", "name", "`nccl` or `rccl`"},
    MachineKey{"version", "version", "\"2.18.3\"; default the newest that is known"},
    MachineKey{"transport", "name", "between nodes, of `models/libraries`: InfiniBand by default"},
    MachineKey{"nics_at", "name", "where a GPU meets its network card: `cpu`, `switch` or `gpu`"},
    MachineKey{"sharp", "true or false", "whether switches between nodes sum (CollNet)"},
    source,
};
constexpr std::array figures{
    MachineKey{"share", "share", "of a network card's rate that long messages reach"},
    MachineKey{"through_cpu", "share", "the same again where GPU and card meet in the CPU"},
    MachineKey{
        "step", "number",
        "how many times as long a step by LL between nodes takes as the library's table says; others as much longer"},
    MachineKey{"rendezvous", "number", "us that it takes longer by a message of 1 KB; grows with the size to a power"},
    MachineKey{"gap", "number",
               "us of a card's thread for a message that is a rendezvous; by Simple as its size up to 32 KB"},
    MachineKey{"gap_tree_16kb", "number", "... of a tree by Simple, for each 16 KB up to 64"},
    MachineKey{"unhidden", "share", "of a Simple ring's latency that no data hide"},
    MachineKey{"inject", "number", "us that the CPU takes to store a tiny message of an all-to-all"},
    MachineKey{"exchange_share", "share", "of a card's rate that an all-to-all reaches by way of the host's memory"},
    MachineKey{"error", "number", "of times between nodes: one standard deviation, relative"},
    MachineKey{"ring_reached", "number",
               "share of the library's figure that long rings of many devices reach through a node's switches"},
    MachineKey{"nvls_reached", "number", "... that sums in its switches reach"},
    MachineKey{"direct_reached", "number", "... that rings over links from device to device reach"},
    MachineKey{"error_inside", "number", "of times inside a node"},
    source,
};
constexpr std::array node{
    MachineKey{"name", "name", "of this kind of node"},
    MachineKey{"count", "count", "of such nodes; default 1"},
    MachineKey{"devices", "list of tables",
               "`{ class = \"card\", name = \"gpu\", count = 4 }`: gpu0 to gpu3, numbered in the order written"},
    MachineKey{"nics", "list of tables", "`{ name = \"nic\" }`; without a count the name is taken as it is"},
    MachineKey{"bridges", "list of tables", "`{ name = \"cpu\", kind = \"processor\" }`: what passes data on"},
    source,
};
constexpr std::array vertex{
    MachineKey{"name", "name", "for links; no figure depends on it"},
    MachineKey{"count", "count", "that many, with numbers behind the name"},
    MachineKey{"class", "name", "of a device: that of its `[[device]]`"},
    MachineKey{"kind", "kind",
               "of a bridge: `processor`; `nvlink`, a switch that joins devices alone; `pcie` (default)"},
    MachineKey{"group", "name", "which vertices of other names are alike in lists of links"},
};
constexpr std::array link{
    MachineKey{"from", "list of names", "each joined to `to` by a link of its own"},
    MachineKey{"to", "name", "the other end"},
    MachineKey{"all_pairs", "list of names", "instead: a link between every two of them"},
    MachineKey{"bandwidth", "bandwidth", "of each direction"},
    MachineKey{"latency", "time", "default 0"},
    source,
};
constexpr std::array switch_sums{
    MachineKey{"rate", "bandwidth",
               "at which a device's data go through them, each direction; no more than its links to them"},
    MachineKey{"latency", "time", "of a whole all-reduce"},
    source,
};
constexpr std::array fabric{
    MachineKey{"link", "bandwidth", "network card to switch, each direction"},
    MachineKey{"latency", "time", "card to card through one switch"},
    MachineKey{"hop_latency", "time", "of each switch more; default 0"},
    source,
};
constexpr std::array fat_tree{
    MachineKey{"down", "list of counts", "children below a switch of each level, nearest to the nodes first"},
    MachineKey{
        "taper", "list of numbers",
        "above a level the bandwidth is that of the ports below over its number, at least 1; 1 of the last "
        "level, which nothing is above; default all 1. Without a source, as `{ value = [2, 1], source = \"...\" }` "
        "has it or the table, it counts as assumed"},
    MachineKey{"cables", "list of counts",
               "above a switch of each level: routing is static, a message takes the cable that its card's number says "
               "(InfiniBand without adaptive routing); default: adaptive, all cables are one"},
    MachineKey{"rails", "kind",
               "card k of every node on switches of its own: `joined`, by the last level (rail-optimised); `separate`, "
               "by nothing (dual-rail, planes); default: all cards of a node on one switch"},
    source,
};
constexpr std::array dragonfly{
    MachineKey{"groups", "count", "of routers"},
    MachineKey{"routers", "count", "a group"},
    MachineKey{"nodes", "count", "a router"},
    MachineKey{"local", "bandwidth", "joins two routers of a group"},
    MachineKey{"global", "bandwidth", "joins two groups, all their links together"},
    MachineKey{"routing", "kind",
               "`minimal` (default), or `adaptive`: by a third router or group, too, where that is less busy"},
    source,
};
constexpr std::array dragonfly_plus{
    MachineKey{"groups", "count", "of leaves"},
    MachineKey{"leaves", "count", "a group"},
    MachineKey{"nodes", "count", "a leaf"},
    MachineKey{"up", "bandwidth", "of a leaf to all spines of its group together"},
    MachineKey{"global", "bandwidth", "joins two groups, all their links together"},
    MachineKey{"routing", "kind", "`adaptive` (default): by a third group, too, where that is less busy; or `minimal`"},
    source,
};
constexpr std::array fabric_sums{
    MachineKey{"rate", "bandwidth",
               "at which a network card's data go through them, each direction; no more than the fabric's link"},
    MachineKey{"latency", "time", "of a whole all-reduce"},
    source,
};
constexpr std::array torus{
    MachineKey{"dims", "list of counts", "a ring in each dimension, one node a router"},
    MachineKey{"link", "bandwidth", "between neighbours, each direction"},
    source,
};
constexpr std::array messaging{
    MachineKey{"overhead", "time", "a message takes beyond the latency of the links"},
    MachineKey{"fraction", "share", "of a link that a long message reaches"},
    MachineKey{"reduce", "bandwidth", "bytes of incoming data added into a buffer a second"},
    MachineKey{"error", "number", "one standard deviation of a message's time, relative"},
    MachineKey{"request", "time",
               "of `across`: what rank 0's core takes to note that a rank has a tensor (`control=`); default 1 us"},
    MachineKey{"one_ring", "true or false",
               "of `inside`, `true`: rings go in the order of ranks (MPI libraries), not along all links of a mesh"},
    source,
};
constexpr std::array piece{
    MachineKey{"up_to", "size", "of a message; the last piece has none"},
    MachineKey{"overhead", "time", "of a message of that size"},
    MachineKey{"rate", "bandwidth", "of its bytes, where its share of the links allows"},
    source,
};
constexpr std::array overlap{
    MachineKey{"core_time", "time", "a rank's core loses to a message out and one in beside its computation"},
    MachineKey{"core_rate", "bandwidth", "... and to their bytes"},
    MachineKey{"delay", "time", "that such a message is late"},
    source,
};
constexpr std::array transport{
    MachineKey{"link", "bandwidth", "instead of the fabric's"},
    MachineKey{"latency", "time", "likewise"},
    MachineKey{"hop_latency", "time", "likewise"},
    MachineKey{"inside", "table", "instead of `[messaging.inside]`"},
    MachineKey{"across", "table", "instead of `[messaging.across]`"},
    source,
};
constexpr std::array storage{
    MachineKey{"name", "name", "that `--input` and `--checkpoint` take"},
    MachineKey{"read", "bandwidth", "of the whole tier, unless `per_node`"},
    MachineKey{"write", "bandwidth", "without it staging writes as fast as it reads, and checkpoints ask for it"},
    MachineKey{"per_node", "true or false", "whether these are of each node"},
    MachineKey{"client", "bandwidth", "what one node gets of a shared tier at most; without it, what its cards carry"},
    source,
};
constexpr std::array in_situ{
    MachineKey{"bias", "number", "how far whole steps were from their prediction, one relative standard deviation"},
    MachineKey{"noise", "number", "their spread, likewise"},
    MachineKey{"doubt", "text", "why the prices are not to be trusted; `predict` repeats it as a warning"},
    source,
};
constexpr std::array shared_cores{
    MachineKey{"cores", "count", "fewer than devices"},
    MachineKey{"devices", "list of numbers", "by number, from 0, that are ranks on these cores"},
    source,
};
constexpr std::array charge{
    MachineKey{"unit", "text", "`node-hour`, `SU`, `GPU-hour`, `core-hour`"},
    MachineKey{"factor", "number", "of the unit, for a node an hour; 0 for nothing"},
    source,
};
constexpr std::array queue{
    MachineKey{"name", "name", "of the queue"},
    MachineKey{"nodes", "two counts", "fewest and most of a job: `[1, 64]`"},
    MachineKey{"wall", "time", "the longest job"},
    source,
};
constexpr std::array host{
    MachineKey{"hostname", "text", "of the host that was measured"},
    MachineKey{"cpu", "text", "its processor"},
    MachineKey{"cores", "count", "of it"},
};

constexpr std::array tables{
    MachineTable{"top", "Before the first table of the file.", top},
    MachineTable{"[[device]]", "A class of devices. What is left out is unknown, and a plan that needs it is refused.",
                 device},
    MachineTable{"[device.peak]", "What the unit for each type of operands computes at most.", peak},
    MachineTable{"[[device.efficiency]]",
                 "What real kernels reach of the roofline. The row that says most wins: kind, then pass, then "
                 "type. Without any row a price is the roofline itself, with an error of 50 %.",
                 efficiency},
    MachineTable{"[device.likeness]", "A device that nobody measured, priced as another one.", likeness},
    MachineTable{
        "[device.tiles]",
        "Prices of transformers on a GPU: 16-bit products in tiles where none were measured; attention, "
        "normalizations and elementwise operators by the bytes that cross memory, in any type. They come after "
        "measured prices and `price_model`, before efficiencies.",
        tiles},
    MachineTable{"[[device.price]]", "One measured problem; it comes before all else. `calibrate` writes them.", price},
    MachineTable{"[[device.factor]]",
                 "What some kernels of this very board say of all prices of their kind and type. `calibrate --kernels` "
                 "writes them.",
                 factor},
    MachineTable{"[software]", "How the framework drives devices with `[device.tiles]`.", software},
    MachineTable{"[collectives]", "The library of GPU collectives; without it the newest NCCL over InfiniBand.",
                 collectives},
    MachineTable{"[collectives.figures]",
                 "What measured tables of this machine say, in place of what `models/libraries` has for all; `bench "
                 "nccl-table --compare FILE --machine-out FILE.toml` writes it. What is absent stays.",
                 figures},
    MachineTable{
        "[[node]]",
        "A kind of node. A device sends by the nearest network card; of several equally near ones, the devices "
        "that share them take one each in turn, as NCCL does. A device with several cards of its own takes one a "
        "message, by the number of the other node.",
        node},
    MachineTable{"[[node.devices]], [[node.nics]], [[node.bridges]]",
                 "What links join. Bridges pass data on, devices and cards do not.", vertex},
    MachineTable{"[[node.link]]", "Full duplex: either `from` and `to`, or `all_pairs`.", link},
    MachineTable{"[node.switch_sums]",
                 "The node's switches add what its devices send and copy the sum to all (NVLink SHARP). Sums of "
                 "three of them or more inside such a node are left to them (`allreduce=direct`) unless the plan says "
                 "otherwise.",
                 switch_sums},
    MachineTable{
        "[fabric]",
        "With exactly one topology below it. A machine of one node needs none. `[fabric.star]`, one switch that "
        "never blocks, has no keys.",
        fabric},
    MachineTable{"[fabric.fat-tree]", "Racks are a tree of two levels.", fat_tree},
    MachineTable{"[fabric.dragonfly]", "Groups of routers, every two of them joined.", dragonfly},
    MachineTable{"[fabric.dragonfly-plus]",
                 "Groups of leaf switches, each joined to all spine switches of its group; spines join the groups.",
                 dragonfly_plus},
    MachineTable{"[fabric.torus]", "One node a router.", torus},
    MachineTable{"[fabric.switch_sums]",
                 "The switches between nodes add what network cards send and copy the sum to all (SHARP). "
                 "`allreduce=direct` between nodes of one rank each is left to them, and NCCL's CollNet if "
                 "`[collectives]` says `sharp = true`.",
                 fabric_sums},
    MachineTable{"[messaging.inside], [messaging.across]",
                 "What software adds inside a node and across nodes; the first is needed, of more "
                 "than one node the second, too.",
                 messaging},
    MachineTable{
        "[[messaging.*.piece]]",
        "In the order of their sizes: a message takes `overhead` and its bytes over `rate`, or as long as "
        "its share of the links allows, whichever is longer; the overhead of `[messaging.*]` then says no more. "
        "`calibrate` writes them.",
        piece},
    MachineTable{"[messaging.*.overlap]", "Messages beside computation on the same cores.", overlap},
    MachineTable{"[transport.NAME]", "What another network or software changes; `--machine my-cluster@NAME` takes it.",
                 transport},
    MachineTable{"[[storage]]", "A tier to load samples from and write checkpoints to.", storage},
    MachineTable{"[in_situ]", "For the band: whole training steps that were measured. `calibrate` writes it.", in_situ},
    MachineTable{"[[shared_cores]]",
                 "Ranks on the same cores: each gets the even share of those that compute at the moment. Prices are "
                 "those of a core. `calibrate` writes it.",
                 shared_cores},
    MachineTable{
        "[charge]",
        "What the center charges. No prediction depends on it; `rehearse report` makes its table of jobs of it.",
        charge},
    MachineTable{"[[charge.queue]]", "A queue of its batch system.", queue},
    MachineTable{"[host]",
                 "`--machine this-host` refuses a file that was measured on another host. `calibrate` writes it.",
                 host},
};

}  // namespace

std::span<const MachineTable> machine_tables() { return tables; }

}  // namespace rehearse::models
