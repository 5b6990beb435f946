// SPDX-License-Identifier: Apache-2.0
// What hwloc sees of this machine: cores that we may use, the packages and NUMA nodes that they share, memory.
#include "models/this_host.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include <hwloc.h>
#include <sched.h>
#include <toml++/toml.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using Hwloc = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

// Loaded without the flag that includes what is forbidden to us: what is left is what we may use.
Hwloc topology() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) throw BackendError("hwloc cannot be initialised");
    Hwloc owned(raw, hwloc_topology_destroy);
    if (hwloc_topology_load(raw) != 0) throw BackendError("hwloc cannot look at this host");
    return owned;
}

// Cores, or processing units where hwloc cannot tell cores apart (some virtual machines).
hwloc_obj_type_t core_type(hwloc_topology_t topology) {
    return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

std::string cpu_model(hwloc_topology_t topology) {
    const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    for (const hwloc_obj_t object : {package, hwloc_get_root_obj(topology)}) {
        if (object == nullptr) continue;
        if (const char* model = hwloc_obj_get_info_by_name(object, "CPUModel")) return model;
    }
    return "unknown CPU";
}

// The bridge of a core: its NUMA node where there are several, else its package.
std::string bridge_of(hwloc_topology_t topology, hwloc_obj_t core) {
    if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1) {
        hwloc_obj_t numa = nullptr;
        while ((numa = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, numa)) != nullptr)
            if (hwloc_bitmap_isincluded(core->cpuset, numa->cpuset) != 0)
                return "numa" + std::to_string(numa->logical_index);
    }
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, core);
    return "package" + std::to_string(package == nullptr ? 0 : package->logical_index);
}

Vertex core_vertex(std::int64_t number) {
    return {"core" + std::to_string(number), VertexKind::device, 0, BridgeKind::pcie, "core"};
}

// Devices first, then bridges: the order in which machine files say them. Bridges are joined all to all.
NodeKind node_of(hwloc_topology_t topology) {
    NodeKind node{"host", 1, {}, {}};
    std::map<std::string, std::vector<int>> cores;
    hwloc_obj_t core = nullptr;
    while ((core = hwloc_get_next_obj_by_type(topology, core_type(topology), core)) != nullptr) {
        cores[bridge_of(topology, core)].push_back(static_cast<int>(node.vertices.size()));
        node.vertices.push_back(core_vertex(std::ssize(node.vertices)));
    }
    std::vector<int> bridges;
    for (const auto& [name, members] : cores) {
        const int bridge = static_cast<int>(node.vertices.size());
        node.vertices.push_back({name, VertexKind::bridge, -1, BridgeKind::processor});
        for (const int member : members) node.links.push_back({member, bridge, {}, {}});
        for (const int other : bridges) node.links.push_back({other, bridge, {}, {}});
        bridges.push_back(bridge);
    }
    return node;
}

Host host_of(hwloc_topology_t topology) {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
    return {name.data(), cpu_model(topology), hwloc_get_nbobjs_by_type(topology, core_type(topology))};
}

/// In bytes. hwloc takes it from /sys, which some containers do not have.
double memory_of(hwloc_topology_t topology) {
    const auto seen = static_cast<double>(hwloc_get_root_obj(topology)->total_memory);
    return seen > 0 ? seen : static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::string folder(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
}

}  // namespace

Host host_now() { return host_of(topology().get()); }

std::string to_string(const Host& host) {
    return host.hostname + " (" + host.cpu + ", " + std::to_string(host.cores) +
           (host.cores == 1 ? " core)" : " cores)");
}

Machine detect_this_host() {
    const Hwloc owned = topology();
    const Host host = host_of(owned.get());
    Machine machine;
    machine.name = this_host_name;
    machine.summary = "this host, " + to_string(host);
    machine.origin = "hwloc";
    DeviceClass core;
    core.name = "core";
    core.host = true;
    const double bytes = memory_of(owned.get());
    core.memory = {Bytes{bytes / static_cast<double>(host.cores)},
                   "hwloc, " + host.hostname + ", an equal share a core"};
    machine.classes.push_back(core);
    machine.nodes.push_back(node_of(owned.get()));
    machine.fabric.topology = Star{};
    return machine;
}

Machine detect_hosts(std::int64_t hosts, std::int64_t ranks_a_host) {
    const Host host = host_now();
    Machine machine = detect_this_host();
    machine.name = "these-hosts";
    machine.summary = std::to_string(hosts) + " hosts like " + to_string(host);
    NodeKind node{"host", hosts, {}, {}};
    for (std::int64_t rank = 0; rank < ranks_a_host; ++rank) node.vertices.push_back(core_vertex(rank));
    node.vertices.push_back({"nic", VertexKind::nic, -1});
    const auto bridge = static_cast<int>(node.vertices.size());
    node.vertices.push_back({"memory", VertexKind::bridge, -1, BridgeKind::processor});
    for (int vertex = 0; vertex < bridge; ++vertex) node.links.push_back({vertex, bridge, {}, {}});
    machine.nodes = {node};
    return machine;
}

std::string core_set() {
    const std::filesystem::path start = "/proc/sys/kernel/random/boot_id";
    std::string set;
    if (std::ifstream file{start}; !std::getline(file, set)) set = host_now().hostname;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) throw BackendError("the cores of this process are not known");
    char before = ':';
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &cores)) continue;
        set += before + std::to_string(core);
        before = ',';
    }
    return set;
}

std::string tuned_path() { return (std::filesystem::path{this_host_path()}.parent_path() / "tuned.db").string(); }

std::string this_host_path() {
    std::filesystem::path path = folder("REHEARSE_HOME");
    if (path.empty() && !folder("XDG_DATA_HOME").empty())
        path = std::filesystem::path(folder("XDG_DATA_HOME")) / "rehearse";
    if (path.empty())
        path = std::filesystem::path(folder("HOME").empty() ? "." : folder("HOME")) / ".local/share/rehearse";
    return (path / "this-host.toml").string();
}

Machine load_this_host() {
    const std::string path = this_host_path();
    if (!std::filesystem::exists(path))
        throw InputError("this-host has not been measured yet (no " + path + "): run `rehearse calibrate --quick`");
    const std::string text = read_file(path);
    Machine machine = parse_machine(text, path);
    const auto table = toml::parse(text);  // it parsed already
    const toml::node_view host = table["host"];
    const Host measured{host["hostname"].value_or(std::string()), host["cpu"].value_or(std::string()),
                        host["cores"].value_or(std::int64_t{0})};
    const Host now = host_now();
    if (measured == now) {
        for (DeviceClass& device : machine.classes)
            for (auto& [problem, sample] : device.measured) sample.basis = Basis::measured_here;
        return machine;
    }
    const auto line = host ? host.node()->source().begin.line : 1;
    throw InputError(path + ":" + std::to_string(line) + ": " +
                     (host ? "measured on " + to_string(measured) : "it does not say ([host]) where it was measured") +
                     ", this is " + to_string(now) +
                     ": run `rehearse calibrate --quick` here, or name the file itself to predict that host");
}

}  // namespace rehearse::models
