// SPDX-License-Identifier: Apache-2.0
// The rings and trees that a library lays through a node of this view.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/index.hpp"
#include "sim/collective/libraries/node_view.hpp"
#include "sim/network/node_rings.hpp"

namespace rehearse::sim {

std::int64_t rings_inside(const NodeView& view, double speed) {
    const auto whole = [speed](double rate) { return static_cast<std::int64_t>(std::floor(rate / speed + 1e-6)); };
    if (view.to_switch > 0) return whole(view.to_switch);
    const std::int64_t n = view.devices;
    std::vector<double> capacity(at(n * n));
    for (std::size_t i = 0; i < capacity.size(); ++i) capacity[i] = static_cast<double>(whole(view.links[i]));
    if (n > most_ring_devices) return 0;
    const std::vector<std::vector<std::int64_t>> cycles = cycles_over(capacity, n);
    if (cycles.empty()) return 0;
    double sum = 0;
    for (const double each : most_through(cycles, capacity)) sum += each;
    return static_cast<std::int64_t>(std::floor(sum + 1e-6));
}

namespace {

struct Found {
    std::int64_t count = 0;
    double speed = 0;
    double bus() const { return static_cast<double>(count) * speed; }
};

template <typename F>
Found search(std::span<const double> speeds, double fastest, double all, const F& count) {
    Found best;
    for (const double speed : speeds) {
        if (speed > fastest + 1e-6) continue;
        if (best.count > 0 && speed <= 0.49 * best.speed) break;
        const Found found{count(speed), speed};
        if (found.bus() > best.bus() + 1e-6) best = found;
        if (best.bus() >= all - 1e-6) break;
    }
    return best;
}

// Fast channels are cut in two, so that more thread blocks work on them.
void cut_in_two(Found& found, const LibraryArchitecture& architecture) {
    if (found.speed < 25 || (!architecture.split_slow && found.speed < 50 && found.count > 4)) return;
    found.count *= 2;
    found.speed /= 2;
}

Channels on_one_node(const NodeView& view) {
    const LibraryArchitecture& architecture = *view.architecture;
    const double total = view.total();
    Found found;
    if (view.linked())
        found = search(architecture.speeds_inside, total, total, [&](double s) { return rings_inside(view, s); });
    Channels channels;
    if (found.count == 0 && view.linked()) {
        // No ring over the links alone: one step goes through a neighbour, at a lower speed, as often as links leave
        // the device that has the fewest.
        const auto slower =
            std::ranges::find_if(architecture.speeds_inside, [&](double s) { return s < architecture.link; });
        found = {static_cast<std::int64_t>(std::floor(total / architecture.link + 1e-6)),
                 slower == architecture.speeds_inside.end() ? architecture.link : *slower};
    } else if (found.count == 0) {
        found = search(architecture.speeds_inside, view.pcie, view.pcie, [](double) { return std::int64_t{1}; });
        if (found.count == 0) found = {1, view.pcie};
    }
    cut_in_two(found, architecture);
    channels.count = found.count;
    channels.inside = channels.across = channels.tree_inside = found.speed;
    return channels;
}

}  // namespace

Channels channels_of(const NodeView& view, std::int64_t nodes) {
    if (nodes == 1) return on_one_node(view);
    require(view.rails > 0, "nodes of several have network cards");
    const double within =
        view.devices < 2 ? std::numeric_limits<double>::infinity() : (view.linked() ? view.total() : view.pcie);
    const auto rails = static_cast<double>(view.rails);
    const auto count = [&](double s) {
        const double by_nics = rails * std::floor(view.nic / s + 1e-6);
        return static_cast<std::int64_t>(std::min(by_nics, std::floor(within / s + 1e-6)));
    };
    Found found = search(view.architecture->speeds_across, view.nic, within, count);
    if (found.count == 0) found = {view.rails, std::min(view.nic, within / rails)};
    cut_in_two(found, *view.architecture);
    Channels channels{.count = found.count, .inside = found.speed, .across = found.speed};
    channels.tree_inside = std::min(2 * found.speed, within / static_cast<double>(found.count));
    return channels;
}

}  // namespace rehearse::sim
