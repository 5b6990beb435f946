// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/kinds.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/index.hpp"
#include "sim/collective/collectives.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/rounds.hpp"

namespace rehearse::sim {

namespace {

constexpr double negligible = 1e-3;         // of what a class computes
constexpr std::size_t few_steps = 50'000;   // of all kinds together: some 10 ms
constexpr std::size_t most_times_more = 4;  // ... of those of all classes, where these are more
constexpr std::uint64_t seed = 0x9e3779b97f4a7c15U;

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    std::uint64_t z = a * 0xff51afd7ed558ccdU + b + seed;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

// Sums of the same terms in another order are the same.
std::uint64_t rounded(double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }

/// All messages of the ranks of a class to the ranks as far behind them.
struct Way {
    std::int64_t apart = 0;
    double messages = 0, bytes = 0;  // of one rank
    std::vector<FlowCost> costs{};   // by rank of the class
    std::vector<char> across{};      // likewise: from node to node
};

class Colours {
public:
    Colours(const Steps& steps, const Wiring& wiring) : steps_(steps), wiring_(wiring) {
        for (std::size_t c = 0; c < steps.schedule().classes.size(); ++c) add_class(static_cast<int>(c));
    }

    /// What the slowest of the messages of each way take longer than the fastest, of all ways together.
    Seconds differ() const {
        double sum = 0;
        for (const std::vector<Way>& ways : ways_) {
            for (const Way& way : ways) {
                double most = 0, least = std::numeric_limits<double>::infinity();
                for (const FlowCost& cost : way.costs) {
                    const double time = way.messages * cost.latency.value + way.bytes * cost.shared.value;
                    most = std::max(most, time);
                    least = std::min(least, time);
                }
                sum += most - least;
            }
        }
        return Seconds{sum};
    }

    /// Kinds of ranks, unless their programs have more steps than `most` together. `nodes_only`: ways differ where one
    /// of them crosses nodes and the other does not, and nowhere else.
    std::optional<Kinds> kinds(bool nodes_only, std::size_t most) {
        begin(nodes_only);
        for (std::size_t before = 0; before != number_; refine()) {
            before = number_;
            if (steps_of_kinds() > most) return std::nullopt;
        }
        return sorted();
    }

private:
    void add_class(int c);
    void begin(bool nodes_only);
    void refine();
    void renumber(std::vector<std::uint64_t>& colours);
    std::size_t steps_of_kinds() const;
    Kinds sorted() const;

    const Steps& steps_;
    const Wiring& wiring_;
    std::vector<std::vector<Way>> ways_;  // by class
    std::set<int> axes_;                  // of collectives
    std::vector<int> class_of_;           // by rank
    std::vector<std::uint64_t> colour_;   // by rank; smaller than number_
    std::size_t number_ = 0;
};

void Colours::add_class(int c) {
    const Schedule& schedule = steps_.schedule();
    std::map<std::int64_t, Way> ways;
    for (const Step& step : schedule.classes[at(c)].steps) {
        if (const auto* sum = std::get_if<Communicate>(&step.action)) axes_.insert(sum->axis);
        const auto* send = std::get_if<Send>(&step.action);
        if (send == nullptr) continue;
        Way& way = ways[send->offset * stride(schedule.mesh, send->axis)];
        way.messages += 1;
        way.bytes += send->bytes.value;
    }
    class_of_.resize(at(steps_.ranks()));
    for (const RankIndex rank : steps_.ranks_of(c)) class_of_[at(rank)] = c;
    RoundCounter counter{wiring_};
    std::vector<Way>& of_class = ways_.emplace_back();
    for (auto& [apart, way] : ways) {
        std::vector<Flow> flows;
        for (const RankIndex rank : steps_.ranks_of(c)) {
            flows.push_back({rank, rank + apart});
            way.across.push_back(wiring_.across(rank, rank + apart) ? 1 : 0);
        }
        way.apart = apart;
        way.costs = counter.count(flows).flows;
        of_class.push_back(std::move(way));
    }
}

// Of what a rank sends and of what comes to it.
void Colours::begin(bool nodes_only) {
    std::vector<std::uint64_t> colours(class_of_.size());
    for (std::size_t rank = 0; rank < colours.size(); ++rank)
        colours[rank] = static_cast<std::uint64_t>(class_of_[rank]);
    std::uint64_t number = 0;
    for (std::size_t c = 0; c < ways_.size(); ++c) {
        const std::vector<RankIndex>& ranks = steps_.ranks_of(static_cast<int>(c));
        for (const Way& way : ways_[c]) {
            number += 2;
            for (std::size_t i = 0; i < ranks.size(); ++i) {
                const FlowCost& cost = way.costs[i];
                const std::uint64_t like = nodes_only ? static_cast<std::uint64_t>(way.across[i])
                                                      : rounded(cost.latency.value) << 32U | rounded(cost.shared.value);
                colours[at(ranks[i])] += mixed(number, like);
                colours[at(ranks[i] + way.apart)] += mixed(number + 1, like);
            }
        }
    }
    renumber(colours);
}

// Of the colours of those that a rank sends to and receives from, and of all ranks of its collectives.
void Colours::refine() {
    std::vector<std::uint64_t> colours(colour_.size());
    for (std::size_t rank = 0; rank < colours.size(); ++rank) colours[rank] = mixed(0, colour_[rank]);
    std::uint64_t number = 0;
    for (std::size_t c = 0; c < ways_.size(); ++c) {
        for (const Way& way : ways_[c]) {
            number += 2;
            for (const RankIndex from : steps_.ranks_of(static_cast<int>(c))) {
                const RankIndex to{from + way.apart};
                colours[at(from)] += mixed(number, colour_[at(to)]);
                colours[at(to)] += mixed(number + 1, colour_[at(from)]);
            }
        }
    }
    for (const int axis : axes_) {
        ++number;
        const Groups groups = groups_along(steps_.schedule().mesh, axis, {.name = "doubling"}, wiring_);
        for (std::int64_t group = 0; group < groups.count; ++group) {
            std::uint64_t all = number;
            for (std::int64_t m = 0; m < groups.shape.size; ++m) all = mixed(all, colour_[at(groups.rank(group, m))]);
            for (std::int64_t m = 0; m < groups.shape.size; ++m)
                colours[at(groups.rank(group, m))] += mixed(number, all);
        }
    }
    renumber(colours);
}

void Colours::renumber(std::vector<std::uint64_t>& colours) {
    std::map<std::uint64_t, std::uint64_t> numbers;
    for (std::uint64_t& colour : colours) colour = numbers.try_emplace(colour, numbers.size()).first->second;
    colour_ = std::move(colours);
    number_ = numbers.size();
}

std::size_t Colours::steps_of_kinds() const {
    std::vector<int> rank_class(number_);
    for (std::size_t rank = 0; rank < colour_.size(); ++rank) rank_class[colour_[rank]] = class_of_[rank];
    return std::accumulate(rank_class.begin(), rank_class.end(), std::size_t{0},
                           [&](std::size_t sum, int c) { return sum + steps_.schedule().classes[at(c)].steps.size(); });
}

// By class, and by the first rank.
Kinds Colours::sorted() const {
    std::vector<std::pair<int, std::uint64_t>> order;
    std::vector<char> seen(number_);
    for (std::size_t rank = 0; rank < colour_.size(); ++rank) {
        if (std::exchange(seen[colour_[rank]], 1) == 0) order.emplace_back(class_of_[rank], colour_[rank]);
    }
    std::ranges::stable_sort(order, {}, [](const auto& kind) { return kind.first; });
    std::vector<int> place(number_);
    Kinds kinds;
    for (const auto& [rank_class, colour] : order) {
        place[colour] = static_cast<int>(kinds.rank_class.size());
        kinds.rank_class.push_back(rank_class);
    }
    kinds.ranks.resize(number_);
    for (std::size_t rank = 0; rank < colour_.size(); ++rank) {
        kinds.of_rank.push_back(place[colour_[rank]]);
        kinds.ranks[at(kinds.of_rank.back())].push_back(RankIndex{static_cast<std::int64_t>(rank)});
    }
    return kinds;
}

// Of the class that computes longest.
Seconds longest_computation(const Steps& steps) {
    Seconds longest;
    for (std::size_t c = 0; c < steps.schedule().classes.size(); ++c) {
        const std::vector<Step>& program = steps.schedule().classes[c].steps;
        Seconds sum;
        for (std::size_t i = 0; i < program.size(); ++i) {
            if (program[i].stream == Stream::compute) sum += steps.slowest(static_cast<int>(c), static_cast<int>(i));
        }
        longest = std::max(longest, sum);
    }
    return longest;
}

bool sends(const RankClass& rank_class) {
    return std::ranges::any_of(rank_class.steps,
                               [](const Step& step) { return std::holds_alternative<Send>(step.action); });
}

std::optional<Kinds> unlike(const Steps& steps, const Wiring& wiring) {
    const std::vector<RankClass>& classes = steps.schedule().classes;
    const bool replicas = classes.size() > 1 && at(steps.ranks()) > classes.size();
    if (!replicas || steps.ranks() > Collectives::many_ranks || std::ranges::none_of(classes, sends))
        return std::nullopt;
    Colours colours{steps, wiring};
    if (colours.differ() <= negligible * longest_computation(steps)) return std::nullopt;
    std::size_t most = 0;
    for (const RankClass& each : classes) most += each.steps.size();
    most = std::max(few_steps, most_times_more * most);
    std::optional<Kinds> kinds = colours.kinds(false, most);
    return kinds ? kinds : colours.kinds(true, most);
}

}  // namespace

Kinds kinds_of(const Steps& steps, const Wiring& wiring) {
    if (std::optional<Kinds> kinds = unlike(steps, wiring)) return *std::move(kinds);
    Kinds classes;
    classes.rank_class.resize(steps.schedule().classes.size());
    std::iota(classes.rank_class.begin(), classes.rank_class.end(), 0);
    return classes;
}

KindSteps::KindSteps(const Steps& steps, const Kinds& kinds, const Wiring& wiring) : steps_(steps), kinds_(kinds) {
    for (const std::vector<RankIndex>& ranks : kinds.ranks) {
        std::map<const DeviceClass*, RankIndex> slowest;
        for (const RankIndex rank : ranks) {
            const auto [entry, fresh] = slowest.try_emplace(&wiring.device_class(rank), rank);
            if (steps.pace().of(rank) > steps.pace().of(entry->second)) entry->second = rank;
        }
        std::vector<RankIndex>& of_kind = slowest_.emplace_back();
        for (const auto& [device, rank] : slowest) of_kind.push_back(rank);
    }
}

const std::vector<Step>& KindSteps::program(int kind) const {
    return schedule().classes[at(class_of_kind(kind))].steps;
}

const std::vector<RankIndex>& KindSteps::ranks_of(int kind) const {
    return kinds_.ranks.empty() ? steps_.ranks_of(kind) : kinds_.ranks[at(kind)];
}

int KindSteps::kind_of(RankIndex rank) const {
    return kinds_.of_rank.empty() ? steps_.class_of(rank) : kinds_.of_rank[at(rank)];
}

Seconds KindSteps::slowest(int kind, int step) const {
    const int c = class_of_kind(kind);
    if (kinds_.ranks.empty()) return steps_.slowest(c, step);
    const bool loads = std::holds_alternative<Load>(program(kind)[at(step)].action);
    Seconds most;
    for (const RankIndex rank : loads ? ranks_of(kind) : slowest_[at(kind)])
        most = std::max(most, steps_.duration(c, step, rank));
    return most;
}

}  // namespace rehearse::sim
