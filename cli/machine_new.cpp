// SPDX-License-Identifier: Apache-2.0
// rehearse machine new: a cluster in ten questions, of which options and other tools' texts answer some before.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "models/new_machine.hpp"

namespace rehearse::cli {

namespace {

/// Large: one member an option of the command line.
struct Options {
    Common common;
    std::string what, name, device, device_link, host_link, nic, machine_out, topology, fabric, lstopo, rails, up,
        global;
    std::optional<std::int64_t> nodes, devices, nics;
    std::vector<std::int64_t> tree, groups;
    std::vector<double> taper;
    bool no_questions = false;
};

// One question a line; an empty answer keeps what stands in brackets.
class Questions {
public:
    explicit Questions(bool asks) : asks_(asks) {}
    template <typename Take>
    void ask(const std::string& question, const std::string& known, const Take& take) const {
        if (!asks_) return;
        for (;;) {
            std::cerr << fmt::format("{} [{}]: ", question, known) << std::flush;
            std::string answer;
            if (!std::getline(std::cin, answer)) throw InputError("machine new: the answers end before the questions");
            answer = std::string{trim(answer)};
            if (answer.empty()) return;
            try {
                return take(answer);
            } catch (const InputError& error) {
                std::cerr << error.what() << '\n';
            }
        }
    }

private:
    static std::string_view trim(std::string_view text) {
        const std::size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
        return begin == std::string_view::npos ? std::string_view{} : text.substr(begin, end - begin + 1);
    }
    bool asks_;
};

std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

void set_device_link(models::NewMachine& machine, const std::string& text, const std::string& source) {
    machine.switched = text.starts_with("switch:");
    machine.pairs.clear();
    if (text == "none") return machine.device_link.reset();
    const std::string rate = machine.switched ? text.substr(7) : text;
    machine.device_link = models::Answer<Bandwidth>{parse_quantity<Bandwidth>(rate), source};
}

constexpr const char* told = "as told to rehearse machine new";

models::NewMachine::Rails rails_of(const std::string& word) {
    using Rails = models::NewMachine::Rails;
    if (word == "none") return Rails::none;
    if (word == "joined") return Rails::joined;
    if (word == "separate") return Rails::separate;
    throw InputError(fmt::format("--rails {}: one of none, joined, separate", word));
}

void apply_groups(models::NewMachine& machine, const Options& options) {
    const auto rate = [](const std::string& text) {
        return models::Answer<Bandwidth>{parse_quantity<Bandwidth>(text), told};
    };
    if (!options.groups.empty()) {
        if (options.groups.size() != 3)
            throw InputError("--dragonfly-plus: groups, leaf switches of a group and nodes of a leaf, like 23,18,10");
        if (options.up.empty() || options.global.empty())
            throw InputError("--dragonfly-plus needs --up and --global, the links of a leaf and between two groups");
        machine.tree = {};
        machine.taper.clear();
        machine.rails = models::NewMachine::Rails::none;
        machine.groups = models::NewMachine::Groups{options.groups[0], options.groups[1], options.groups[2],
                                                    rate(options.up), rate(options.global)};
        return;
    }
    if (options.up.empty() && options.global.empty()) return;
    if (!machine.groups) throw InputError("--up and --global are of a --dragonfly-plus");
    if (!options.up.empty()) machine.groups->up = rate(options.up);
    if (!options.global.empty()) machine.groups->global = rate(options.global);
}

void apply(models::NewMachine& machine, const Options& options) {
    if (!options.name.empty()) machine.name = options.name;
    if (!options.device.empty()) machine.device = options.device;
    if (!options.lstopo.empty()) machine = models::with_lstopo(std::move(machine), options.lstopo);
    if (!options.topology.empty())
        machine = models::with_nvidia_topology(std::move(machine), read_file(options.topology), options.topology);
    if (options.nodes) machine.nodes = {*options.nodes, told};
    if (options.nics) {
        machine.nics = {*options.nics, told};
        machine.nic_at.clear();
    }
    if (!options.fabric.empty())
        machine = models::with_ibnetdiscover(std::move(machine), read_file(options.fabric), options.fabric);
    if (options.devices && *options.devices != machine.devices.value) {
        machine.devices = {*options.devices, told};
        machine.device_at.clear();
        machine.pairs.clear();
    }
    if (!options.device_link.empty()) set_device_link(machine, options.device_link, told);
    if (!options.host_link.empty())
        machine.host_link = models::Answer<Bandwidth>{parse_quantity<Bandwidth>(options.host_link), told};
    if (!options.nic.empty()) machine.nic = {models::port_rate(options.nic), told};
    if (!options.tree.empty()) {
        machine.tree = {options.tree, told};
        machine.groups.reset();
    }
    if (!options.taper.empty()) {
        machine.taper = options.taper;
        machine.taper_source = told;
    }
    if (!options.rails.empty()) machine.rails = rails_of(options.rails);
    apply_groups(machine, options);
}

void ask(models::NewMachine& m, const Questions& questions) {
    const auto number = [](const std::string& text) {
        const std::int64_t value = parse_int(text, "the answer");
        if (value < 1) throw InputError(fmt::format("{}: at least 1", text));
        return value;
    };
    questions.ask("1. name of the machine", m.name, [&](const std::string& a) { m.name = a; });
    questions.ask("2. nodes", fmt::format("{}", m.nodes.value), [&](const std::string& a) {
        m.nodes = {number(a), told};
    });
    questions.ask("3. device, a name that docs/machines.md lists", m.device,
                  [&](const std::string& a) { m.device = a; });
    questions.ask("4. devices of a node", fmt::format("{}", m.devices.value), [&](const std::string& a) {
        m.devices = {number(a), told};
        m.device_at.clear();
        m.pairs.clear();
    });
    questions.ask(
        "5. link between every two devices, each direction, like 150GBps; switch:450GBps of a device to the "
        "node's switches; none",
        m.device_link     ? (m.switched ? "switch:" : "") + to_string(m.device_link->value)
        : m.pairs.empty() ? "none"
                          : "those of nvidia-smi's table",
        [&](const std::string& a) { set_device_link(m, a, told); });
    questions.ask("6. link of a device to its processor, each direction",
                  to_string(m.host_link.value_or(models::assumed_host_link(m.device)).value),
                  [&](const std::string& a) {
                      m.host_link = models::Answer<Bandwidth>{parse_quantity<Bandwidth>(a), told};
                  });
    questions.ask("7. network cards of a node", fmt::format("{}", m.nics.value), [&](const std::string& a) {
        m.nics = {number(a), told};
        m.nic_at.clear();
    });
    questions.ask("8. rate of one, each direction, like NDR or 200Gbps", to_string(m.nic.value),
                  [&](const std::string& a) {
                      m.nic = {models::port_rate(a), told};
                  });
    if (m.groups) return;  // a dragonfly+, which has neither levels nor tapers
    questions.ask("9. switches: nodes of a leaf switch, leaf switches, ... like 8,2; one: a single switch",
                  m.tree.value.empty() ? "one" : fmt::format("{}", fmt::join(m.tree.value, ",")),
                  [&](const std::string& a) {
                      std::vector<std::int64_t> tree, groups;
                      for (const std::string& part : a == "one" ? std::vector<std::string>{} : parts_of(a))
                          tree.push_back(number(part));
                      m.tree = {tree, told};
                  });
    questions.ask("10. bandwidth down over bandwidth up of each level, like 2,1",
                  m.taper.empty() ? "1" : fmt::format("{}", fmt::join(m.taper, ",")), [&](const std::string& a) {
                      std::vector<double> taper;
                      for (const std::string& part : parts_of(a)) taper.push_back(parse_number(part, "the answer"));
                      m.taper = std::move(taper);
                      m.taper_source = told;
                  });
}

int make(const Options& options) {
    if (options.what != "new") throw InputError(fmt::format("machine {}: right would be machine new", options.what));
    if (options.machine_out.empty()) throw InputError("machine new: give --machine-out FILE.toml, the file to write");
    check_writable(options.machine_out, options.common);
    models::NewMachine machine;
    apply(machine, options);
    ask(machine, Questions{!options.no_questions});
    if (machine.tree.value.empty()) machine.taper.clear();
    const std::string text = models::to_toml(machine);
    const Machine read = models::parse_machine(text, options.machine_out + " (not written)");
    replace_file(options.machine_out, text);
    for (const std::string& note : models::notes_of(machine)) talk(options.common, fmt::format("note: {}", note));
    talk(options.common,
         fmt::format("{}: {} nodes, {} devices in {}; what it says to be assumed is marked by rehearse "
                     "machines {}",
                     read.name, node_count(read), device_count(read), options.machine_out, options.machine_out));
    return good;
}

}  // namespace

Run add_machine(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("new", options->what, "the word new: an own cluster in ten questions, answered on the terminal")
        ->required();
    app.add_option("--machine-out", options->machine_out, "the file to write")->option_text("FILE.toml");
    app.add_option("--name", options->name, "of the machine; default my-cluster")->option_text("NAME");
    app.add_option("--nodes", options->nodes, "how many, at least 1; default 1")->option_text("N");
    app.add_option("--device", options->device, "of rehearse's devices; default h100-sxm")->option_text("NAME");
    app.add_option("--devices", options->devices, "of a node, at least 1; default 1")->option_text("N");
    app.add_option("--device-link", options->device_link,
                   "between every two devices of a node, each direction; switch:RATE of a device to the node's "
                   "switches; none is the default")
        ->option_text("RATE|switch:RATE|none");
    app.add_option("--host-link", options->host_link,
                   "of a device to its processor; default the PCIe x16 of its generation")
        ->option_text("RATE");
    app.add_option("--nics", options->nics, "network cards of a node, at least 1; default 1")->option_text("N");
    app.add_option("--nic", options->nic, "rate of one, like NDR or 200Gbps; default 200Gbps")->option_text("RATE");
    app.add_option("--tree", options->tree,
                   "nodes of a leaf switch, leaf switches, and so on, each at least 1; default one switch")
        ->delimiter(',')
        ->option_text("N,N...");
    app.add_option("--taper", options->taper,
                   "bandwidth down over bandwidth up of each level, at least 1, of the last one 1; default 1")
        ->delimiter(',')
        ->option_text("X,X...");
    app.add_option("--rails", options->rails,
                   "where card k of every node hangs on switches of its own, of whose nodes --tree then tells: joined "
                   "by the last level, or separate; default none")
        ->option_text("none|joined|separate");
    app.add_option(
           "--dragonfly-plus", options->groups,
           "in the tree's place: groups, leaf switches of a group, nodes of a leaf, each at least 1; default the tree")
        ->delimiter(',')
        ->option_text("N,N,N");
    app.add_option("--up", options->up,
                   "of a dragonfly+: a leaf's links to all spines of its group together, needed there")
        ->option_text("RATE");
    app.add_option("--global", options->global, "of a dragonfly+: all links between two groups together, needed there")
        ->option_text("RATE");
    app.add_option("--topo", options->topology, "what nvidia-smi topo -m prints on a node")->option_text("FILE");
    app.add_option("--lstopo", options->lstopo, "what lstopo writes of a node as XML")->option_text("FILE.xml");
    app.add_option("--ibnetdiscover", options->fabric, "what ibnetdiscover prints")->option_text("FILE");
    app.add_flag("--no-questions", options->no_questions, "what no option says stays as it is by default");
    add_common(app, options->common);
    return [options] { return make(*options); };
}

}  // namespace rehearse::cli
