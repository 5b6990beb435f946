// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"
#include "picture/topology.hpp"
#include "picture/write.hpp"
#include "prices/price_model.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::cli {

namespace {

struct Options {
    Common common;
    std::string name, plot;
};

// Whether a figure's source says that nobody has looked it up: machine files mark such figures with these words.
bool is_unsourced(std::string_view source) {
    return source.find("unverified") != std::string_view::npos || source.find("assumed") != std::string_view::npos;
}

// One row a figure: what it belongs to, its name, its value as text and in base units, its source.
class Figures {
public:
    template <typename Q>
    void add(const std::string& of, const char* name, const Sourced<Q>& figure) {
        if (figure.source.empty()) return;
        if constexpr (std::is_same_v<Q, double>) {
            row(of, name, fmt::format("{:.4g}", figure.value), figure.value, figure.source);
        } else {
            row(of, name, to_string(figure.value), figure.value.value, figure.source);
        }
    }
    void row(const std::string& of, const std::string& name, const std::string& text, double value,
             const std::string& source) {
        const bool unsourced = is_unsourced(source);
        unsourced_ += unsourced ? 1 : 0;
        rows_.push_back({{"of", of},
                         {"figure", name},
                         {"text", text},
                         {"value", value},
                         {"mark", unsourced ? "?" : ""},
                         {"source", source}});
    }
    const Json& rows() const { return rows_; }
    /// How many of them are assumed or from memory.
    std::size_t unsourced() const { return unsourced_; }

private:
    Json rows_ = Json::array();
    std::size_t unsourced_ = 0;
};

// What prices it: a name, or of a device like another, whose name is a table of the machine file, that other.
std::string model_of(const DeviceClass& device) {
    const std::string& name = device.model->name();
    if (!name.starts_with('{')) return name;
    const std::size_t begin = name.find('"') + 1;
    return "like " + name.substr(begin, name.find('"', begin) - begin);
}

void add_device(Figures& figures, const DeviceClass& device) {
    for (const auto& [type, peak] : device.peak) {
        figures.add(device.name, fmt::format("peak {}", to_string(type)).c_str(), peak);
    }
    figures.add(device.name, "memory", device.memory);
    figures.add(device.name, "memory bandwidth", device.memory_bandwidth);
    figures.add(device.name, "launch", device.launch);
    for (const Efficiency& row : device.efficiencies) {
        const std::string name = fmt::format("{}{}{} of the roofline", row.kind == "*" ? "all else" : row.kind,
                                             row.pass ? fmt::format(" {}", to_string(*row.pass)) : "",
                                             row.type ? fmt::format(" {}", to_string(*row.type)) : "");
        figures.row(device.name, name, fmt::format("{:.3g} ± {:.0f} %", row.fraction, 100 * row.error), row.fraction,
                    row.source);
    }
    if (device.model != nullptr) {
        for (const MeasuredKernels& k : device.model->kernels()) {
            figures.row(device.name, fmt::format("price model {}: {} {}", model_of(device), k.kind, to_string(k.type)),
                        fmt::format("{} kernels", k.samples.size()), static_cast<double>(k.samples.size()), k.source);
        }
    }
    if (device.model != nullptr) {
        for (const KernelFactor& f : device.model->factors()) {
            figures.row(device.name, fmt::format("factor of {} in {} on this board", f.kind, to_string(f.type)),
                        fmt::format("{:.3g} ± {:.0f} %", f.factor, 100 * f.error), f.factor, f.source);
        }
    }
    if (device.tiles != nullptr) {
        const TileModel& tiles = *device.tiles;
        figures.add(device.name, "tiles: processors", tiles.processors);
        figures.add(device.name, "tiles: share of the peak, large tiles", tiles.large_tile);
        figures.add(device.name, "tiles: small over large", tiles.small_tile);
        figures.add(device.name, "tiles: depth that a tile costs", tiles.depth);
        figures.add(device.name, "tiles: slowdown of unaligned sizes", tiles.unaligned);
        figures.add(device.name, "tiles: share of the memory bandwidth", tiles.memory);
    }
    if (!device.measured.empty()) {
        figures.row(device.name, "measured problems", fmt::format("{}", device.measured.size()),
                    static_cast<double>(device.measured.size()), device.measured.begin()->second.source);
    }
}

void add_software(Figures& figures, const Software& software) {
    const std::string of = fmt::format("software {}", software.name);
    figures.add(of, "passes of elementwise operators", software.elementwise_passes);
    figures.add(of, "passes of attention's scores", software.score_passes);
    figures.add(of, "passes that a causal mask saves", software.masked_passes);
    figures.add(of, "passes of the classes' scores", software.loss_passes);
    figures.add(of, "issue of a kernel", software.issue);
    figures.add(of, "kernels of a product", software.dense_kernels);
    figures.add(of, "kernels of attention", software.attention_kernels);
    figures.add(of, "kernels of the loss", software.loss_kernels);
    figures.add(of, "kernels of a mixture of experts beside its products", software.mixture_kernels);
    figures.add(of, "passes of RMS normalization", software.modules.rms);
    figures.add(of, "passes of RMS normalization backward", software.modules.rms_backward);
    figures.add(of, "passes of a rotary embedding", software.modules.rotary);
    figures.add(of, "passes of a rotary embedding backward", software.modules.rotary_backward);
}

void add_messaging(Figures& figures, const char* where, const Messaging& messaging) {
    figures.add(where, "overhead a message", messaging.overhead);
    figures.add(where, "share of the link reached", messaging.fraction);
    figures.add(where, "reduction", messaging.reduce);
}

std::string topology_text(const Topology& topology) {
    if (std::holds_alternative<Star>(topology)) return "star";
    if (const auto* tree = std::get_if<FatTree>(&topology)) {
        constexpr std::array<std::string_view, 3> rails{"", ", rails joined by the last level", ", separate rails"};
        return fmt::format("fat tree, down {}, taper {}{}{}", fmt::join(tree->down, " x "),
                           fmt::join(tree->taper, ", "), tree->cables.empty() ? "" : ", static routing",
                           rails[static_cast<std::size_t>(tree->rails)]);
    }
    if (const auto* fly = std::get_if<Dragonfly>(&topology)) {
        return fmt::format("dragonfly, {} groups x {} routers x {} nodes{}", fly->groups, fly->routers, fly->nodes,
                           fly->routing == FabricRouting::adaptive ? ", adaptive routing" : "");
    }
    if (const auto* fly = std::get_if<DragonflyPlus>(&topology)) {
        return fmt::format("dragonfly+, {} groups x {} leaves x {} nodes{}", fly->groups, fly->leaves, fly->nodes,
                           fly->routing == FabricRouting::minimal ? ", minimal routing" : "");
    }
    return fmt::format("torus {}", fmt::join(std::get<Torus>(topology).dims, " x "));
}

// Of each level but the last, which nothing is above.
void add_tapers(Figures& figures, const FatTree& tree, const std::string& source) {
    for (std::size_t level = 0; level + 1 < tree.down.size(); ++level) {
        const double taper = level < tree.taper.size() ? tree.taper[level] : 1;
        figures.row("fabric", tree.down.size() == 2 ? "taper" : fmt::format("taper above level {}", level + 1),
                    fmt::format("{:.4g}", taper), taper,
                    source.empty() ? "assumed: the machine file names no source" : source);
    }
}

void add_fabric(Figures& figures, const Fabric& fabric, const std::string& taper_source) {
    figures.add("fabric", "link", fabric.link);
    figures.add("fabric", "latency", fabric.latency);
    figures.add("fabric", "latency a further switch", fabric.hop_latency);
    if (const auto* tree = std::get_if<FatTree>(&fabric.topology)) add_tapers(figures, *tree, taper_source);
    if (const auto* fly = std::get_if<Dragonfly>(&fabric.topology)) {
        figures.add("fabric", "link in a group", fly->local);
        figures.add("fabric", "links between two groups", fly->global);
    }
    if (const auto* fly = std::get_if<DragonflyPlus>(&fabric.topology)) {
        figures.add("fabric", "links of a leaf to its spines", fly->up);
        figures.add("fabric", "links between two groups", fly->global);
    }
    if (const auto* torus = std::get_if<Torus>(&fabric.topology)) figures.add("fabric", "torus link", torus->link);
    figures.add("fabric", "sums in switches", fabric.sums.rate);
    figures.add("fabric", "latency of a sum in switches", fabric.sums.latency);
}

Json nodes_of(const Machine& machine) {
    Json nodes = Json::array();
    for (const NodeKind& kind : machine.nodes) {
        Json links = Json::array();
        for (const NodeLink& link : kind.links) {
            links.push_back({{"a", kind.vertices[static_cast<std::size_t>(link.a)].name},
                             {"b", kind.vertices[static_cast<std::size_t>(link.b)].name},
                             {"bandwidth_bytes_per_s", link.bandwidth.value.value},
                             {"latency_s", link.latency.value.value},
                             {"source", link.bandwidth.source}});
        }
        nodes.push_back(
            {{"name", kind.name}, {"count", kind.count}, {"devices", devices_per_node(kind)}, {"links", links}});
    }
    return nodes;
}

void add_charge(Figures& figures, const models::Charge& charge) {
    figures.row("charge", fmt::format("{}s of a node an hour", charge.unit), fmt::format("{:.4g}", charge.factor.value),
                charge.factor.value, charge.factor.source);
    for (const models::Queue& queue : charge.queues)
        figures.row("charge", fmt::format("queue {}", queue.name),
                    fmt::format("{} to {} nodes, {:.3g} h", queue.least, queue.most, queue.wall.value / 3600),
                    queue.wall.value, queue.source);
}

Figures figures_of(const Machine& machine, const models::OtherTables& others) {
    Figures figures;
    for (const DeviceClass& device : machine.classes) add_device(figures, device);
    if (has_tiles(machine)) add_software(figures, machine.software);
    for (const NodeKind& kind : machine.nodes) {
        for (const NodeLink& link : kind.links) {
            const std::string name = fmt::format("{} - {}", kind.vertices[static_cast<std::size_t>(link.a)].name,
                                                 kind.vertices[static_cast<std::size_t>(link.b)].name);
            figures.add(kind.name, name.c_str(), link.bandwidth);
        }
    }
    add_messaging(figures, "inside a node", machine.inside);
    add_fabric(figures, machine.fabric, others.taper_source);
    add_messaging(figures, "across nodes", machine.across);
    for (const StorageTier& tier : machine.storage) figures.add("storage", tier.name.c_str(), tier.read);
    if (others.charge) add_charge(figures, *others.charge);
    return figures;
}

int list(const Options& options) {
    if (!options.plot.empty())
        throw InputError("machines: --plot draws one machine: right would be its NAME before it");
    Report report{document("machines", Json::object()), {}, ""};
    Json rows = Json::array();
    for (const models::MachineName& machine : models::machines()) {
        Json row{{"name", machine.name}, {"figures", nullptr}, {"unsourced", nullptr}, {"summary", machine.summary}};
        if (machine.name != "this-host") {
            const Figures figures = figures_of(models::load_machine(machine.name), models::other_tables(machine.name));
            row["figures"] = figures.rows().size();
            row["unsourced"] = figures.unsourced();
        }
        rows.push_back(row);
    }
    report.document["machines"] = rows;
    report.tables = {{"machines",
                      "",
                      {{"name", "name"},
                       {"figures", "figures", Show::count},
                       {"unsourced", "unsourced", Show::count},
                       {"summary", "what it is"}}}};
    report.footer =
        "unsourced: figures that are assumed or written down from memory; `rehearse machines NAME` marks them with "
        "'?'.";
    print(report, options.common);
    return good;
}

// As predict does: the file of a host whose ranks never talked says everything else.
void require_messages(const Machine& machine) {
    if (device_count(machine) == 1 || machine.inside.fraction.value > 0) return;
    throw InputError(
        fmt::format("{}: machine '{}': its messages inside are not known: measure them on that host with "
                    "`mpirun -n 2 rehearse calibrate`",
                    machine.origin, machine.name));
}

int show(const Options& options) {
    check_writable(options.plot, options.common);
    if (!options.plot.empty()) picture::check_suffix(options.plot);
    const bool this_host = options.name == "this-host";
    const Machine machine = this_host ? models::detect_this_host() : models::load_machine(options.name);
    if (!this_host) require_messages(machine);
    const Figures figures = figures_of(machine, this_host ? models::OtherTables{} : models::other_tables(options.name));

    Report report{document("machine", {{"machine", options.name}}), {}, ""};
    report.document["name"] = machine.name;
    report.document["summary"] = machine.summary;
    if (has_tiles(machine)) report.document["software"] = machine.software.name;
    report.document["devices"] = device_count(machine);
    report.document["nodes"] = nodes_of(machine);
    report.document["topology"] = topology_text(machine.fabric.topology);
    report.document["figures"] = figures.rows();
    report.tables = {{"figures",
                      fmt::format("{}: {}\n{} nodes, {} devices, {}", machine.name, machine.summary,
                                  node_count(machine), device_count(machine), topology_text(machine.fabric.topology)),
                      {{"of", "of"}, {"figure", "figure"}, {"text", "value"}, {"mark", ""}, {"source", "source"}}}};
    if (figures.unsourced() > 0)
        report.footer = fmt::format(
            "?: {} of {} figures are assumed or written down from memory; a document that says "
            "otherwise goes before them.",
            figures.unsourced(), figures.rows().size());
    print(report, options.common);
    if (options.plot.empty()) return good;
    const picture::Picture drawn = picture::topology_picture(machine, {}, 1200, picture::Theme::light);
    replace_file(options.plot, picture::encoded(drawn, options.plot));
    talk(options.common, fmt::format("picture: {}", options.plot));
    return good;
}

}  // namespace

Run add_machines(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("NAME", options->name, "a machine's name or a .toml file; without it all are listed");
    app.add_option("--plot", options->plot, "draw its nodes and fabric (.svg, .png or .pdf)")->option_text("FILE");
    add_common(app, options->common);
    return [options] { return options->name.empty() ? list(*options) : show(*options); };
}

}  // namespace rehearse::cli
