// SPDX-License-Identifier: Apache-2.0
// A Machine as the text of its file. Figures that are unknown (no source) are left out, as they were when it was read.
#include <fmt/format.h>

#include "core/collectives/library.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"
#include "models/reader/library_figures.hpp"
#include "models/reader/machine_parse.hpp"
#include "models/this_host.hpp"
#include "prices/price_model.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::models {
namespace {

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += fmt::format("\\{}", c);
        } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
            out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string written(double value) { return fmt::format("{}", value); }
template <int B, int F, int S>
std::string written(Quantity<B, F, S> value) {
    return in_quotes(to_exact_string(value));
}

template <typename Q>
std::string figure(std::string_view key, const Sourced<Q>& figure) {
    if (figure.source.empty()) return "";
    return fmt::format("{} = {{ value = {}, source = {} }}\n", key, written(figure.value), in_quotes(figure.source));
}

std::string names(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += fmt::format("{}{}", out.empty() ? "" : ", ", in_quotes(word));
    return fmt::format("[{}]", out);
}

std::string tiles(const TileModel& model) {
    return "[device.tiles]\n" + figure("processors", model.processors) + figure("large_tile", model.large_tile) +
           figure("small_tile", model.small_tile) + figure("depth", model.depth) +
           figure("unaligned", model.unaligned) + figure("memory", model.memory) +
           (model.before_model ? "before_model = true\n" : "") + fmt::format("error = {}\n", model.error);
}

// Devices that tiles price are what it is for.
std::string software(const Machine& machine) {
    const Software& s = machine.software;
    if (!has_tiles(machine)) return "";
    return fmt::format("\n[software]\nname = {}\n", in_quotes(s.name)) +
           (s.summary.empty() ? "" : fmt::format("summary = {}\n", in_quotes(s.summary))) +
           figure("elementwise_passes", s.elementwise_passes) + figure("score_passes", s.score_passes) +
           figure("masked_passes", s.masked_passes) + figure("loss_passes", s.loss_passes) + figure("issue", s.issue) +
           figure("dense_kernels", s.dense_kernels) + figure("attention_kernels", s.attention_kernels) +
           figure("loss_kernels", s.loss_kernels) + figure("mixture_kernels", s.mixture_kernels) +
           figure("rms_passes", s.modules.rms) + figure("rms_backward_passes", s.modules.rms_backward) +
           figure("rotary_passes", s.modules.rotary) + figure("rotary_backward_passes", s.modules.rotary_backward) +
           fmt::format("attention_kernel = {}\n", in_quotes(to_string(s.attention_kernel))) +
           (s.issues_ahead ? "issues_ahead = true\n" : "");
}

std::string device(const DeviceClass& device) {
    std::string out = fmt::format("\n[[device]]\nname = {}\n", in_quotes(device.name));
    if (!device.like.empty()) out += fmt::format("known_as = {}\n", in_quotes(device.like));
    out += figure("memory", device.memory) + figure("memory_bandwidth", device.memory_bandwidth) +
           figure("launch", device.launch);
    if (device.model != nullptr) {
        const std::string& name = device.model->name();
        if (name.starts_with('{')) {
            out += fmt::format("likeness = {}\n", name);
        } else if (!name.empty()) {
            out += fmt::format("price_model = {}\n", in_quotes(name));
        }
        const std::string& board = device.model->board();
        if (!board.empty()) out += fmt::format("kernels = {}\n", in_quotes(board));
    }
    if (device.model != nullptr && device.model->volumes_by_sample()) out += "volumes = \"by-sample\"\n";
    if (device.host) out += "host = true\n";
    out += figure("step_spread", device.step_spread);
    if (!device.peak.empty()) out += "[device.peak]\n";
    for (const auto& [type, rate] : device.peak) out += figure(to_string(type), rate);
    if (device.tiles != nullptr) out += tiles(*device.tiles);
    for (const Efficiency& row : device.efficiencies) {
        out += fmt::format("[[device.efficiency]]\nkind = {}\n", in_quotes(row.kind));
        if (row.pass) out += fmt::format("pass = {}\n", in_quotes(to_string(*row.pass)));
        if (row.type) out += fmt::format("type = {}\n", in_quotes(to_string(*row.type)));
        out += fmt::format("fraction = {}\nerror = {}\nsource = {}\n", row.fraction, row.error, in_quotes(row.source));
    }
    if (device.model != nullptr) {
        for (const KernelFactor& row : device.model->factors())
            out += fmt::format(
                "[[device.factor]]\nkind = {}\ntype = {}\nfactor = {:.5g}\nerror = {:.3g}\nscale = {:.4g}\nkernels = "
                "{}\n"
                "source = {}\n",
                in_quotes(row.kind), in_quotes(to_string(row.type)), row.factor, row.error, row.scale, row.kernels,
                in_quotes(row.source));
    }
    for (const auto& [problem, price] : device.measured)
        out +=
            fmt::format("[[device.price]]\nproblem = {}\nmedian = {}\nerror = {}\nsamples = {}\nsource = {}\n",
                        in_quotes(problem), written(price.median), price.error, price.samples, in_quotes(price.source));
    return out;
}

std::string vertices(const Machine& machine, const NodeKind& node, VertexKind kind, std::string_view key) {
    std::string rows;
    for (const Vertex& vertex : node.vertices) {
        if (vertex.kind != kind) continue;
        rows += "    { ";
        if (kind == VertexKind::device)
            rows += fmt::format("class = {}, ",
                                in_quotes(machine.classes.at(static_cast<std::size_t>(vertex.device_class)).name));
        rows += fmt::format("name = {}", in_quotes(vertex.name));
        if (group_of(vertex) != vertex.name) rows += fmt::format(", group = {}", in_quotes(vertex.group));
        if (vertex.bridge != BridgeKind::pcie) rows += fmt::format(", kind = \"{}\"", to_string(vertex.bridge));
        rows += " },\n";
    }
    return rows.empty() ? "" : fmt::format("{} = [\n{}]\n", key, rows);
}

std::string node(const Machine& machine, const NodeKind& node) {
    std::string out = fmt::format("\n[[node]]\nname = {}\ncount = {}\n", in_quotes(node.name), node.count);
    out += vertices(machine, node, VertexKind::device, "devices");
    out += vertices(machine, node, VertexKind::nic, "nics");
    out += vertices(machine, node, VertexKind::bridge, "bridges");
    for (const NodeLink& link : node.links) {
        const auto name = [&](int vertex) { return node.vertices.at(static_cast<std::size_t>(vertex)).name; };
        out += fmt::format("[[node.link]]\nfrom = {}\nto = {}\n", names({name(link.a)}), in_quotes(name(link.b)));
        out += figure("bandwidth", link.bandwidth) + figure("latency", link.latency);
    }
    if (!node.sums.rate.source.empty())
        out += "[node.switch_sums]\n" + figure("rate", node.sums.rate) + figure("latency", node.sums.latency);
    return out;
}

struct WriteTopology {
    std::string_view taper_source;

    static std::string_view word(FabricRouting routing) {
        return routing == FabricRouting::minimal ? "minimal" : "adaptive";
    }
    std::string operator()(const Star&) const { return "[fabric.star]\n"; }
    std::string operator()(const FatTree& tree) const {
        const std::string taper = fmt::format("[{}]", fmt::join(tree.taper, ", "));
        std::string text = fmt::format("[fabric.fat-tree]\ndown = [{}]\ntaper = {}\n", fmt::join(tree.down, ", "),
                                       taper_source.empty() ? taper
                                                            : fmt::format("{{ value = {}, source = {} }}", taper,
                                                                          in_quotes(std::string{taper_source})));
        if (!tree.cables.empty()) text += fmt::format("cables = [{}]\n", fmt::join(tree.cables, ", "));
        if (tree.rails != FatTree::Rails::none)
            text += fmt::format("rails = \"{}\"\n", tree.rails == FatTree::Rails::joined ? "joined" : "separate");
        return text;
    }
    std::string operator()(const Dragonfly& fly) const {
        return fmt::format("[fabric.dragonfly]\ngroups = {}\nrouters = {}\nnodes = {}\nrouting = \"{}\"\n", fly.groups,
                           fly.routers, fly.nodes, word(fly.routing)) +
               figure("local", fly.local) + figure("global", fly.global);
    }
    std::string operator()(const DragonflyPlus& fly) const {
        return fmt::format("[fabric.dragonfly-plus]\ngroups = {}\nleaves = {}\nnodes = {}\nrouting = \"{}\"\n",
                           fly.groups, fly.leaves, fly.nodes, word(fly.routing)) +
               figure("up", fly.up) + figure("global", fly.global);
    }
    std::string operator()(const Torus& torus) const {
        return fmt::format("[fabric.torus]\ndims = [{}]\n", fmt::join(torus.dims, ", ")) + figure("link", torus.link);
    }
};

std::string fabric(const Fabric& fabric, std::string_view taper_source) {
    return "\n[fabric]\n" + figure("link", fabric.link) + figure("latency", fabric.latency) +
           figure("hop_latency", fabric.hop_latency) + std::visit(WriteTopology{taper_source}, fabric.topology) +
           (fabric.sums.rate.source.empty()
                ? ""
                : "[fabric.switch_sums]\n" + figure("rate", fabric.sums.rate) + figure("latency", fabric.sums.latency));
}

std::string messaging(std::string_view where, const Messaging& m) {
    const std::string figures = figure("overhead", m.overhead) + figure("fraction", m.fraction) +
                                figure("reduce", m.reduce) + figure("request", m.request);
    if (figures.empty()) return "";
    std::string out =
        fmt::format("\n[{}]\n{}error = {}\n{}", where, figures, m.error, m.one_ring ? "one_ring = true\n" : "");
    for (const MessagePiece& piece : m.pieces) {
        out += fmt::format("[[{}.piece]]\n", where);
        if (piece.up_to.value > 0) out += fmt::format("up_to = {}\n", written(piece.up_to));
        out += fmt::format("overhead = {}\nrate = {}\nsource = {}\n", written(piece.overhead), written(piece.rate),
                           in_quotes(piece.source));
    }
    const Overlap& overlap = m.overlap;
    if (overlap.core_rate.source.empty()) return out;
    return out + fmt::format("[{}.overlap]\n{}{}{}", where, figure("core_time", overlap.core_time),
                             figure("core_rate", overlap.core_rate), figure("delay", overlap.delay));
}

std::string transport(const Transport& t) {
    const std::string head = fmt::format("transport.{}", in_quotes(t.name));
    std::string out = fmt::format("\n[{}]\n", head) + figure("link", t.link) + figure("latency", t.latency) +
                      figure("hop_latency", t.hop_latency);
    if (t.inside) out += messaging(head + ".inside", *t.inside);
    if (t.across) out += messaging(head + ".across", *t.across);
    return out;
}

std::string charge(const Charge& charge) {
    std::string out = fmt::format("\n[charge]\nunit = {}\n", in_quotes(charge.unit)) + figure("factor", charge.factor);
    for (const Queue& queue : charge.queues)
        out +=
            fmt::format("[[charge.queue]]\nname = {}\nnodes = [{}, {}]\nwall = {}\nsource = {}\n",
                        in_quotes(queue.name), queue.least, queue.most, written(queue.wall), in_quotes(queue.source));
    return out;
}

std::string collectives(const Machine& machine) {
    const CollectiveSoftware& c = machine.collectives;
    if (c.source.empty()) return "";
    std::string out = fmt::format("\n[collectives]\nlibrary = {}\n", in_quotes(c.library->name));
    if (c.version > 0)
        out += fmt::format("version = \"{}.{}.{}\"\n", c.version / 10000, c.version / 100 % 100, c.version % 100);
    if (!c.transport.empty()) out += fmt::format("transport = {}\n", in_quotes(c.transport));
    if (!c.nics_at.empty()) out += fmt::format("nics_at = {}\n", in_quotes(c.nics_at));
    out += fmt::format("sharp = {}\nsource = {}\n", c.sharp, in_quotes(c.source));
    return out + written_figures(*c.library, shipped_library(c.library->name), c.transport);
}

std::string in_situ(const InSitu& in_situ) {
    if (in_situ.source.empty() && in_situ.doubt.empty()) return "";
    return fmt::format("\n[in_situ]\nbias = {}\nnoise = {}\n", in_situ.bias, in_situ.noise) +
           (in_situ.source.empty() ? "" : fmt::format("source = {}\n", in_quotes(in_situ.source))) +
           (in_situ.doubt.empty() ? "" : fmt::format("doubt = {}\n", in_quotes(in_situ.doubt)));
}

std::string shared_cores(const SharedCores& shared) {
    return fmt::format("\n[[shared_cores]]\ncores = {}\ndevices = [{}]\nsource = {}\n", shared.cores,
                       fmt::join(shared.devices, ", "), in_quotes(shared.source));
}

std::string storage(const StorageTier& tier) {
    return fmt::format("\n[[storage]]\nname = {}\n{}per_node = {}\n", in_quotes(tier.name),
                       figure("read", tier.read) + figure("write", tier.write) + figure("client", tier.client),
                       tier.per_node);
}

}  // namespace

std::string to_toml(const Machine& machine) { return to_toml(machine, OtherTables{}); }

std::string to_toml(const Machine& machine, const OtherTables& others) {
    std::string out = fmt::format("schema = {}\nname = {}\n", in_quotes(machine_schema), in_quotes(machine.name));
    if (!machine.summary.empty()) out += fmt::format("summary = {}\n", in_quotes(machine.summary));
    if (machine.name == this_host_name) {
        const Host host = host_now();
        out += fmt::format(
            "\n# The host that these figures were measured on: no other one may use them as its own.\n"
            "[host]\nhostname = {}\ncpu = {}\ncores = {}\n",
            in_quotes(host.hostname), in_quotes(host.cpu), host.cores);
    }
    out += software(machine);
    for (const DeviceClass& one : machine.classes) out += device(one);
    for (const NodeKind& one : machine.nodes) out += node(machine, one);
    out += fabric(machine.fabric, others.taper_source) + messaging("messaging.inside", machine.inside) +
           messaging("messaging.across", machine.across);
    out += collectives(machine) + in_situ(machine.in_situ);
    for (const SharedCores& one : machine.shared_cores) out += shared_cores(one);
    for (const StorageTier& tier : machine.storage) out += storage(tier);
    for (const Transport& each : others.transports) out += transport(each);
    if (others.charge) out += charge(*others.charge);
    return out;
}

}  // namespace rehearse::models
