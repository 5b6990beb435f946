// SPDX-License-Identifier: Apache-2.0
// Events into lanes: sorted, apart from each other, with their pyramid and prefix sums.
#include <algorithm>
#include <utility>

#include "picture/parallel_for.hpp"
#include "picture/shares.hpp"

namespace rehearse::picture {

namespace {

constexpr std::size_t stride = 64, fewest_bins = 64, most_bins = std::size_t{1} << 20;
// Bins an event: of a lane that is its rank alone, of a rank, of a lane of several. Ranks are what is looked at when
// all is; a lane of one is opened with few others. With its coarser levels a bin takes 16 bytes.
constexpr double of_a_lane = 0.8, of_a_rank = 0.8, of_a_ranks_lane = 0.125;

// Not a power of two, but a number that can be halved until fewer than twice the fewest are left.
std::size_t bins_for(std::size_t events, double bins_an_event) {
    const auto wanted =
        std::clamp(static_cast<std::size_t>(static_cast<double>(events) * bins_an_event), fewest_bins, most_bins);
    unsigned halvings = 0;
    while (wanted >> halvings >= 2 * fewest_bins) ++halvings;
    return (((wanted - 1) >> halvings) + 1) << halvings;
}

Pyramid pyramid_of(const std::vector<Shares>& finest) {
    Pyramid levels{std::vector<Coverage>(finest.size())};
    std::ranges::transform(finest, levels[0].begin(), coverage_of);
    while (levels.back().size() >= 2 * fewest_bins) {
        const std::vector<Coverage>& fine = levels.back();
        std::vector<Coverage> coarse(fine.size() / 2);
        for (std::size_t i = 0; i < coarse.size(); ++i)
            coarse[i] = coverage_of(mean(shares_of(fine[2 * i]), shares_of(fine[2 * i + 1])));
        levels.push_back(std::move(coarse));
    }
    return levels;
}

}  // namespace

LanesBuilder::LanesBuilder(std::string title, bool measured, std::int64_t ranks) {
    result_.title = std::move(title);
    result_.measured = measured;
    result_.ranks = ranks;
}

std::size_t LanesBuilder::lane(std::int64_t rank, Stream stream, const std::string& name) {
    const auto [place, is_new] = lane_of_.try_emplace({rank, stream, name}, result_.lanes.size());
    if (is_new) {
        added_.emplace_back();
        Lane& lane = result_.lanes.emplace_back();
        lane.name = name;
        lane.rank = rank;
        lane.stream = stream;
    }
    return place->second;
}

std::uint32_t LanesBuilder::what(const What& what) {
    const auto [place, is_new] = what_of_.try_emplace(what, static_cast<std::uint32_t>(result_.whats.size()));
    if (is_new) result_.whats.push_back(what);
    return place->second;
}

void LanesBuilder::add(std::size_t lane, std::int64_t start, std::int64_t duration, std::uint32_t what, int iteration,
                       std::int64_t flow) {
    added_[lane].push_back({start, std::max<std::int64_t>(duration, 0), what,
                            std::in_range<std::uint32_t>(flow) ? static_cast<std::uint32_t>(flow) : 0, iteration});
    ++events_;
}

void LanesBuilder::set_arguments(std::size_t lane, std::string lines) {
    result_.arguments.push_back(std::move(lines));
    added_[lane].back().arguments = static_cast<std::uint32_t>(result_.arguments.size());
}

void LanesBuilder::bind_flow(std::size_t lane, std::int64_t ns, std::int64_t flow, bool next) {
    if (std::in_range<std::uint32_t>(flow)) bound_[lane].push_back({ns, static_cast<std::uint32_t>(flow), next});
}

// Events that hold others come before them, so that the last one that began and has not ended is the innermost.
void LanesBuilder::bind(std::vector<Added>& sorted, const std::vector<Bound>& flows) {
    constexpr std::ptrdiff_t farthest = 10'000;  // events back to one that still lasts
    for (const Bound& bound : flows) {
        if (bound.next) {
            const auto first = std::ranges::lower_bound(sorted, bound.ns, {}, &Added::start);
            if (first != sorted.end() && first->flow == 0) first->flow = bound.flow;
            continue;
        }
        auto at = std::ranges::upper_bound(sorted, bound.ns, {}, &Added::start);
        const auto least = at - std::min(at - sorted.begin(), farthest);
        while (at != least && (at - 1)->start + (at - 1)->duration < bound.ns) --at;
        if (at != least && (at - 1)->flow == 0) (at - 1)->flow = bound.flow;
    }
}

void LanesBuilder::append(Lane& to, const Added& event) const {
    const bool is_long = event.duration >= Lane::is_long;
    if (is_long) to.long_[to.starts_.size()] = event.duration;
    to.starts_.push_back(event.start);
    to.durations_.push_back(is_long ? Lane::is_long : static_cast<std::uint32_t>(event.duration));
    to.whats_.push_back(event.what);
    to.activities_.push_back(result_.whats[event.what].activity);
    if (to.iterations_.empty() || to.iterations_.back().iteration != event.iteration)
        to.iterations_.push_back({static_cast<std::uint32_t>(to.starts_.size() - 1), event.iteration});
    if (event.flow != 0 && to.flows_.empty()) {
        to.flows_.reserve(to.starts_.capacity());
        to.flows_.resize(to.starts_.size() - 1, 0);
    }
    if (event.flow != 0 || !to.flows_.empty()) to.flows_.push_back(event.flow);
    if (event.arguments != 0) to.arguments_.resize(to.starts_.size() - 1, 0);
    if (event.arguments != 0 || !to.arguments_.empty()) to.arguments_.push_back(event.arguments);
}

// Into columns. Each event goes to the first lane that is free again when it begins: nested ones come below each other.
std::vector<Lane> LanesBuilder::apart(const Lane& lane, std::vector<Added> events,
                                      const std::vector<Bound>& flows) const {
    const auto before = [](const Added& a, const Added& b) {  // an event that holds others comes before them
        return a.start != b.start ? a.start < b.start : a.duration > b.duration;
    };
    if (!std::ranges::is_sorted(events, before)) std::ranges::stable_sort(events, before);
    bind(events, flows);
    std::vector<Lane> result;
    std::vector<std::int64_t> free_from;
    for (const Added& event : events) {
        std::size_t n = 0;
        while (n < result.size() && free_from[n] > event.start) ++n;
        if (n == result.size()) {
            Lane& made = result.emplace_back();
            made.name = lane.name;
            made.rank = lane.rank;
            made.stream = lane.stream;
            made.number = static_cast<int>(n);
            if (n == 0) reserve(made, events.size());
            free_from.push_back(0);
        }
        append(result[n], event);
        free_from[n] = event.start + event.duration;
    }
    if (result.size() > 1) {
        for (Lane& part : result) reserve(part, 0);
    }
    return result;
}

// Room for so many events; of 0, no more than there are.
void LanesBuilder::reserve(Lane& lane, std::size_t events) {
    const auto each = [events](auto& column) { events > 0 ? column.reserve(events) : column.shrink_to_fit(); };
    each(lane.starts_), each(lane.durations_), each(lane.whats_), each(lane.activities_);
    if (events == 0) lane.iterations_.shrink_to_fit(), lane.flows_.shrink_to_fit(), lane.arguments_.shrink_to_fit();
}

// Each lane's pyramid and sums, and where there are several the pyramid of all over each other.
void LanesBuilder::build(std::span<Lane> rank, Pyramid* together) const {
    const auto from = static_cast<double>(result_.first), span = static_cast<double>(result_.last) - from;
    std::size_t events = 0;
    for (const Lane& lane : rank) events += lane.size();
    std::vector<Shares> all(together != nullptr ? bins_for(events, of_a_rank) : 0);
    for (Lane& lane : rank) {
        std::vector<Shares> own(bins_for(lane.size(), together != nullptr ? of_a_ranks_lane : of_a_lane));
        add_events(lane, from, span / static_cast<double>(own.size()), own);
        lane.levels_ = pyramid_of(own);
        if (together != nullptr) add_events(lane, from, span / static_cast<double>(all.size()), all);
        std::array<std::int64_t, activity_count> total{};
        lane.prefix_.reserve(lane.size() / stride + 1);
        for (std::size_t i = 0; i < lane.size(); ++i) {
            if (i % stride == 0) lane.prefix_.push_back(total);
            total[static_cast<std::size_t>(lane.activities_[i])] += lane.end(i) - lane.start(i);
        }
    }
    if (together != nullptr) *together = pyramid_of(all);
}

Lanes LanesBuilder::finish() {
    std::vector<std::vector<Lane>> parts(added_.size());
    static const std::vector<Bound> none;
    parallel_for(parts.size(), [&](std::size_t i) {
        const auto flows = bound_.find(i);
        parts[i] = apart(result_.lanes[i], std::move(added_[i]), flows == bound_.end() ? none : flows->second);
    });
    std::vector<Lane> lanes;
    result_.first = INT64_MAX;
    result_.last = INT64_MIN;
    for (std::vector<Lane>& of_lane : parts) {
        for (Lane& part : of_lane) {
            result_.first = std::min(result_.first, part.start(0));
            result_.last = std::max(result_.last, part.end(part.size() - 1));
            lanes.push_back(std::move(part));
        }
    }
    if (lanes.empty()) result_.first = 0;
    result_.last = std::max(result_.last, result_.first + 1);
    std::ranges::stable_sort(lanes, [](const Lane& a, const Lane& b) {
        return std::tuple{a.rank, a.stream} < std::tuple{b.rank, b.stream};  // parts of a lane stay together
    });
    result_.lanes = std::move(lanes);
    std::vector<std::pair<std::span<Lane>, Pyramid*>> ranks;
    for (std::size_t begin = 0, end = 0; begin < result_.lanes.size(); begin = end) {
        const std::int64_t rank = result_.lanes[begin].rank;
        while (end < result_.lanes.size() && result_.lanes[end].rank == rank) ++end;
        ranks.emplace_back(std::span(result_.lanes).subspan(begin, end - begin),
                           end - begin > 1 ? &result_.of_rank[rank] : nullptr);
    }
    parallel_for(ranks.size(), [&](std::size_t i) { build(ranks[i].first, ranks[i].second); });
    return std::move(result_);
}

}  // namespace rehearse::picture
