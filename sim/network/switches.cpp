// SPDX-License-Identifier: Apache-2.0
#include "sim/network/switches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace rehearse::sim {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

FatTreeSwitches::FatTreeSwitches(const FatTree& tree, std::int64_t nodes, std::int64_t nics, Bandwidth nic)
    : nics_(tree.rails == FatTree::Rails::none ? nics : 1), rails_(tree.rails == FatTree::Rails::none ? 1 : nics) {
    Level level;
    Bandwidth port = nic * static_cast<double>(nics_);
    std::int64_t first = 0;
    for (std::size_t l = 0; l < tree.down.size(); ++l) {
        level.ports = tree.down[l];
        level.below *= level.ports;
        level.switches = ceil_div(nodes, level.below);
        level.cables = tree.cables.empty() ? 1 : tree.cables[l];
        level.first_cable = first;
        first += rails_ * level.switches * level.cables;
        const double taper = l < tree.taper.size() ? tree.taper[l] : 1;
        limits_ = limits_ || taper > 1 || level.cables > 1;
        port = port * (static_cast<double>(tree.down[l]) / taper);
        level.up = port * (1 / static_cast<double>(level.cables));
        level.cost = inverse(level.up);
        levels_.push_back(level);
    }
}

std::int64_t FatTreeSwitches::link_count() const {
    const Level& last = levels_.back();
    return 2 * (last.first_cable + rails_ * last.switches * last.cables);
}

std::size_t FatTreeSwitches::level_of(std::int64_t id) const {
    std::size_t l = levels_.size() - 1;
    while (id / 2 < levels_[l].first_cable) --l;
    return l;
}

Link FatTreeSwitches::link(std::int64_t id) const {
    const std::size_t l = level_of(id);
    const Level& level = levels_[l];
    const std::int64_t number = id / 2 - level.first_cable, one = number / level.cables;
    const std::string_view direction = id % 2 == 0 ? "up" : "down";
    std::string name = rails_ > 1 ? fmt::format("rail{}:switch{}.{}", one / level.switches, l, one % level.switches)
                                  : fmt::format("switch{}.{}", l, one);
    if (level.cables > 1) name += fmt::format(":cable{}", number % level.cables);
    return {fmt::format("{}:{}", name, direction), fmt::format("switch{}:{}", l, direction), level.up};
}

std::int64_t FatTreeSwitches::alike(std::int64_t id) const { return 2 * levels_[level_of(id)].first_cable + id % 2; }

// The level of the switch that both can reach: of two rails, the last.
std::size_t FatTreeSwitches::top_of(End from, End to) const {
    if (rails_ > 1 && from.nic != to.nic) return levels_.size() - 1;
    std::size_t top = 0;
    while (from.node / levels_[top].below != to.node / levels_[top].below) ++top;
    return top;
}

std::int64_t FatTreeSwitches::cable(std::size_t l, std::int64_t node, End end) const {
    const Level& level = levels_[l];
    const std::int64_t rail = rails_ > 1 ? end.nic : 0;
    return level.first_cable + (rail * level.switches + node / level.below) * level.cables;
}

int FatTreeSwitches::route(End from, End to, std::vector<Hop>& hops) const {
    const std::size_t top = top_of(from, to);
    const std::int64_t end = to.node * nics_ + (rails_ > 1 ? 0 : to.nic);
    for (std::size_t l = 0; l < top; ++l) {
        hops.push_back({2 * (cable(l, from.node, from) + end % levels_[l].cables), levels_[l].cost});
    }
    for (std::size_t l = top; l-- > 0;) {
        hops.push_back({2 * (cable(l, to.node, to) + end % levels_[l].cables) + 1, levels_[l].cost});
    }
    return static_cast<int>(2 * top + 1);
}

int FatTreeSwitches::passed(End from, End to) const { return static_cast<int>(2 * top_of(from, to) + 1); }

// What a node reads or writes goes over all its rails and all cables evenly.
void FatTreeSwitches::from_top(std::int64_t node, bool down, std::vector<Hop>& hops) const {
    for (std::size_t l = 0; l + 1 < levels_.size(); ++l) {
        const Level& level = levels_[l];
        const auto ways = static_cast<double>(rails_ * level.cables);
        hops.push_back({2 * cable(l, node, {}) + (down ? 1 : 0), level.cost * (1 / ways)});
    }
}

DragonflySwitches::DragonflySwitches(const Dragonfly& dragonfly, double scale)
    : groups_(dragonfly.groups),
      routers_(dragonfly.routers),
      nodes_(dragonfly.nodes),
      first_global_(groups_ * routers_ * routers_),
      local_(dragonfly.local.value * scale),
      global_(dragonfly.global.value * scale) {}

Link DragonflySwitches::link(std::int64_t id) const {
    if (id >= first_global_) {
        const std::int64_t pair = id - first_global_;
        return {fmt::format("group{}>group{}", pair / groups_, pair % groups_), "group>group", global_};
    }
    const std::int64_t group = id / (routers_ * routers_);
    const std::int64_t pair = id % (routers_ * routers_);
    return {fmt::format("group{}:router{}>router{}", group, pair / routers_, pair % routers_), "router>router", local_};
}

std::int64_t DragonflySwitches::alike(std::int64_t id) const { return id >= first_global_ ? first_global_ : 0; }

int DragonflySwitches::route(End from, End to, std::vector<Hop>& hops) const {
    const std::int64_t router_a = from.node / nodes_, router_b = to.node / nodes_;
    const std::int64_t group_a = router_a / routers_, group_b = router_b / routers_;
    const std::int64_t a = router_a % routers_, b = router_b % routers_;
    int passed = 1;
    const auto local = [&](std::int64_t group, std::int64_t here, std::int64_t there) {
        if (here == there) return;
        hops.push_back({(group * routers_ + here) * routers_ + there, inverse(local_)});
        ++passed;
    };
    if (group_a == group_b) {
        local(group_a, a, b);
        return passed;
    }
    const std::int64_t leave = (group_b + b) % routers_, enter = (group_a + a) % routers_;
    local(group_a, a, leave);
    hops.push_back({first_global_ + group_a * groups_ + group_b, inverse(global_)});
    ++passed;
    local(group_b, enter, b);
    return passed;
}

int DragonflySwitches::passed(End from, End to) const {
    std::vector<Hop> hops;
    return route(from, to, hops);
}

TorusSwitches::TorusSwitches(const Torus& torus, double scale)
    : dims_(torus.dims), strides_(torus.dims.size(), 1), link_(torus.link.value * scale) {
    for (std::size_t d = dims_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * dims_[d];
}

std::int64_t TorusSwitches::link_count() const {
    return 2 * static_cast<std::int64_t>(dims_.size()) * strides_.front() * dims_.front();
}

Link TorusSwitches::link(std::int64_t id) const {
    const auto count = static_cast<std::int64_t>(dims_.size());
    const std::string direction = fmt::format("dim{}{}", id / 2 % count, id % 2 == 0 ? "+" : "-");
    return {fmt::format("node{}:{}", id / 2 / count, direction), direction, link_};
}

std::int64_t TorusSwitches::alike(std::int64_t id) const { return id % (2 * static_cast<std::int64_t>(dims_.size())); }

int TorusSwitches::route(End first, End last, std::vector<Hop>& hops) const {
    std::int64_t from = first.node;
    const std::int64_t to = last.node;
    const auto count = static_cast<std::int64_t>(dims_.size());
    int passed = 1;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
        const std::int64_t size = dims_[d], stride = strides_[d];
        std::int64_t here = from / stride % size;
        const std::int64_t there = to / stride % size;
        const std::int64_t up = (there - here + size) % size;
        const bool increase = 2 * up < size || (2 * up == size && here % 2 == 0);
        for (std::int64_t left = increase ? up : size - up; left > 0 && here != there; --left, ++passed) {
            hops.push_back({2 * (from * count + static_cast<std::int64_t>(d)) + (increase ? 0 : 1), inverse(link_)});
            const std::int64_t next = (here + (increase ? 1 : size - 1)) % size;
            from += (next - here) * stride;
            here = next;
        }
    }
    return passed;
}

int TorusSwitches::passed(End from, End to) const {
    std::vector<Hop> hops;
    return route(from, to, hops);
}

namespace {

std::int64_t product(const std::vector<std::int64_t>& sizes) {
    std::int64_t result = 1;
    for (const std::int64_t size : sizes) result *= size;
    return result;
}

// Every size at least 1, room for every node, every bandwidth given.
struct Checker {
    const Machine& machine;
    std::string_view topology;

    [[noreturn]] void refuse(const std::string& what) const {
        throw InputError(fmt::format("{}: machine '{}', fabric {}: {}", machine.origin, machine.name, topology, what));
    }
    void places(const std::vector<std::int64_t>& sizes) const {
        if (sizes.empty() || std::ranges::min(sizes) < 1) refuse("every size must be at least 1");
        if (product(sizes) < node_count(machine)) {
            refuse(fmt::format("has room for {} nodes, the machine has {}", product(sizes), node_count(machine)));
        }
    }
    void bandwidth(Bandwidth value, std::string_view what) const {
        if (!(value.value > 0)) refuse(fmt::format("needs a bandwidth of its {} above 0", what));
    }
};

struct Maker {
    const Machine& machine;
    std::int64_t nics;
    double scale;

    Switches operator()(const Star&) const { return StarSwitch{}; }
    Switches operator()(const FatTree& tree) const {
        const Checker check{machine, "fat tree"};
        check.places(tree.down);
        for (const double taper : tree.taper) {
            if (!(taper > 0)) check.refuse("every taper must be above 0");
        }
        if (!tree.cables.empty() && (tree.cables.size() != tree.down.size() || std::ranges::min(tree.cables) < 1))
            check.refuse("needs at least one cable above a switch of each level");
        return FatTreeSwitches{tree, node_count(machine), std::max<std::int64_t>(nics, 1),
                               machine.fabric.link.value * scale};
    }
    Switches operator()(const Dragonfly& dragonfly) const {
        const Checker check{machine, "dragonfly"};
        check.places({dragonfly.groups, dragonfly.routers, dragonfly.nodes});
        if (dragonfly.routers > 1) check.bandwidth(dragonfly.local.value, "local links");
        if (dragonfly.groups > 1) check.bandwidth(dragonfly.global.value, "global links");
        if (dragonfly.routing == FabricRouting::adaptive) return AdaptiveSwitches{dragonfly, scale};
        return DragonflySwitches{dragonfly, scale};
    }
    Switches operator()(const DragonflyPlus& dragonfly) const {
        const Checker check{machine, "dragonfly+"};
        check.places({dragonfly.groups, dragonfly.leaves, dragonfly.nodes});
        if (dragonfly.leaves > 1 || dragonfly.groups > 1) check.bandwidth(dragonfly.up.value, "leaves to their spines");
        if (dragonfly.groups > 1) check.bandwidth(dragonfly.global.value, "global links");
        return AdaptiveSwitches{dragonfly, scale};
    }
    Switches operator()(const Torus& torus) const {
        const Checker check{machine, "torus"};
        check.places(torus.dims);
        check.bandwidth(torus.link.value, "links");
        return TorusSwitches{torus, scale};
    }
};

}  // namespace

Switches make_switches(const Machine& machine, std::int64_t nics, double scale) {
    return std::visit(Maker{machine, nics, scale}, machine.fabric.topology);
}

}  // namespace rehearse::sim
