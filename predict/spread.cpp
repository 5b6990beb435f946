// SPDX-License-Identifier: Apache-2.0
#include "predict/spread.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/error.hpp"
#include "core/methods/servers.hpp"
#include "core/quorum.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {

namespace {

constexpr std::int64_t cards_of_fits = 8;  // of the nodes that prices by tiles were fitted on (vTrain's A100)

// Ranks that are in step with each other.
std::int64_t together(const Schedule& schedule) {
    if (schedule.methods.get<Servers>().count == 0) return ranks(schedule.mesh);
    int groups = axis_index(schedule.mesh, "groups");
    if (groups < 0) groups = axis_index(schedule.mesh, "data");
    return ranks(schedule.mesh) / (groups < 0 ? 1 : size_of(schedule.mesh, groups));
}

}  // namespace

double slowest_of(double n, double waited, double spread) {
    require(n >= 1 && waited >= 1 && waited <= n, "some of the cards");
    const double below = (waited - std::numbers::pi / 8) / (n - std::numbers::pi / 4 + 1);
    double low = -10, high = 10;
    while (high - low > 1e-9) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(-middle / std::numbers::sqrt2) < below ? low : high) = middle;
    }
    return n == 1 ? 1 : 1 + spread * low;
}

std::int64_t cards_of_prices(const Machine& machine, const DeviceClass& device) {
    if (!machine.in_situ.source.empty()) return devices_per_node(machine.nodes.front());
    return fitted_on_steps(device) ? cards_of_fits : 1;
}

std::vector<double> waiting(const Schedule& schedule, const Machine& machine, double quorum) {
    const std::int64_t all = ranks(schedule.mesh), in_step = together(schedule);
    std::vector<const DeviceClass*> device(static_cast<std::size_t>(all));
    std::map<const DeviceClass*, double> each;  // at first how many ranks are on it
    for (std::size_t rank = 0; rank < device.size(); ++rank) {
        device[rank] = &class_of(machine, static_cast<std::int64_t>(rank));
        ++each[device[rank]];
    }
    for (auto& [of, count] : each) {
        const double n = std::min(count, static_cast<double>(in_step));
        const double contained = std::min(n, static_cast<double>(cards_of_prices(machine, *of)));
        const double spread = std::hypot(card_spread, of->step_spread.value);
        count = slowest_of(n, static_cast<double>(waited_for(quorum, std::llround(n))), spread) / slowest_of(contained);
    }
    std::vector<double> result;
    result.reserve(device.size());
    for (const DeviceClass* of : device) result.push_back(each[of]);
    return result;
}

double beside(std::int64_t cards, std::int64_t measured_beside) {
    return std::pow(1 + crowding, doublings(cards, measured_beside));
}

std::vector<double> crowded(const Schedule& schedule, const Machine& machine) {
    struct Card {
        const DeviceClass* device = nullptr;
        std::int64_t node = 0;
    };
    std::vector<Card> cards(static_cast<std::size_t>(ranks(schedule.mesh)));
    std::map<std::int64_t, std::int64_t> in_node;  // cards of the job, by node
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
        const auto number = static_cast<std::int64_t>(rank);
        cards[rank] = {&class_of(machine, number), locate(machine, number).node};
        if (!cards[rank].device->host) ++in_node[cards[rank].node];
    }
    std::map<const DeviceClass*, double> each;  // of its fullest node: ranks of a class keep one pace
    for (const auto& [device, node] : cards) {
        double& most = each.try_emplace(device, 1).first->second;
        if (!device->host) most = std::max(most, beside(in_node[node], cards_of_prices(machine, *device)));
    }
    std::vector<double> result;
    result.reserve(cards.size());
    for (const Card& card : cards) result.push_back(each[card.device]);
    return result;
}

double doublings(std::int64_t devices, std::int64_t measured_on) {
    return std::max(0.0, std::log2(static_cast<double>(devices) / static_cast<double>(measured_on)));
}

double distance_error(std::int64_t devices, std::int64_t measured_on) {
    return std::hypot(run_error, doubling_error * doublings(devices, measured_on));
}

}  // namespace rehearse::predict
