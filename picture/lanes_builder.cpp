// SPDX-License-Identifier: Apache-2.0
// Events into lanes: sorted, apart from each other, with their pyramid and prefix sums.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "picture/lanes.hpp"

namespace rehearse::picture {

namespace {

constexpr std::uint32_t is_long = 0xFFFFFFFF;
constexpr std::size_t stride = 64, events_a_bin = 4, fewest_bins = 64, most_bins = std::size_t{1} << 20;

std::size_t bins_for(std::size_t events) {
    std::size_t bins = fewest_bins;
    while (bins * events_a_bin < events && bins < most_bins) bins *= 2;
    return bins;
}

using Sums = std::array<float, activity_count>;

// What is there at all is seen: at least 1 of 255.
Coverage rounded(const Sums& shares) {
    Coverage result{};
    for (std::size_t a = 0; a < activity_count; ++a) {
        if (shares[a] > 0) result[a] = static_cast<std::uint8_t>(std::clamp(std::lround(shares[a] * 255), 1L, 255L));
    }
    return result;
}

std::vector<Coverage> halved(const std::vector<Coverage>& fine) {
    std::vector<Coverage> coarse(fine.size() / 2);
    for (std::size_t i = 0; i < coarse.size(); ++i) {
        for (std::size_t a = 0; a < activity_count; ++a) {
            coarse[i][a] = static_cast<std::uint8_t>((fine[2 * i][a] + fine[2 * i + 1][a] + 1) / 2);
        }
    }
    return coarse;
}

// Calls `work(i)` for each number below `count`, on up to four cores.
template <typename Work>
void each_of(std::size_t count, Work work) {
    const std::size_t crew = std::min<std::size_t>({std::max(std::thread::hardware_concurrency(), 1U), 4, count});
    std::atomic<std::size_t> next{0};
    std::exception_ptr problem;
    std::mutex mutex;
    const auto turn = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
            const std::lock_guard lock(mutex);
            problem = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < crew; ++i) others.emplace_back(turn);
        turn();
    }
    if (problem) std::rethrow_exception(problem);
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
                            std::in_range<std::uint32_t>(flow) ? static_cast<std::uint32_t>(flow) : 0,
                            static_cast<std::uint16_t>(std::clamp(iteration, 0, 65535))});
    ++events_;
}

void LanesBuilder::append(Lane& to, const Added& event) const {
    const std::int64_t duration = event.duration;
    if (duration >= is_long) to.long_[to.starts_.size()] = duration;
    to.starts_.push_back(event.start);
    to.durations_.push_back(duration >= is_long ? is_long : static_cast<std::uint32_t>(duration));
    to.whats_.push_back(event.what);
    to.activities_.push_back(result_.whats[event.what].activity);
    to.iterations_.push_back(event.iteration);
    if (event.flow != 0 && to.flows_.empty()) to.flows_.resize(to.starts_.size() - 1, 0);
    if (event.flow != 0 || !to.flows_.empty()) to.flows_.push_back(event.flow);
}

// Into columns. Each event goes to the first lane that is free again when it begins: nested ones come below each other.
std::vector<Lane> LanesBuilder::apart(const Lane& lane, std::vector<Added> events) const {
    const auto before = [](const Added& a, const Added& b) {  // an event that holds others comes before them
        return a.start != b.start ? a.start < b.start : a.duration > b.duration;
    };
    if (!std::ranges::is_sorted(events, before)) std::ranges::stable_sort(events, before);
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
            free_from.push_back(0);
            if (n == 0) {
                const auto reserve = [&](auto& column) { column.reserve(events.size()); };
                reserve(made.starts_), reserve(made.durations_), reserve(made.whats_), reserve(made.activities_);
                reserve(made.iterations_);
            }
        }
        append(result[n], event);
        free_from[n] = event.start + event.duration;
    }
    return result;
}

void LanesBuilder::build(Lane& lane) const {
    const auto fit = [](auto& column) { column.shrink_to_fit(); };
    fit(lane.starts_), fit(lane.durations_), fit(lane.whats_), fit(lane.activities_), fit(lane.iterations_);
    fit(lane.flows_);
    std::vector<Sums> sums(bins_for(lane.size()), Sums{});
    const double per_bin = static_cast<double>(result_.last - result_.first) / static_cast<double>(sums.size());
    std::array<std::int64_t, activity_count> total{};
    lane.prefix_.reserve(lane.size() / stride + 1);
    for (std::size_t i = 0; i < lane.size(); ++i) {
        if (i % stride == 0) lane.prefix_.push_back(total);
        const auto a = static_cast<std::size_t>(lane.activities_[i]);
        total[a] += lane.end(i) - lane.start(i);
        const double from = static_cast<double>(lane.start(i) - result_.first) / per_bin;
        const double to = static_cast<double>(lane.end(i) - result_.first) / per_bin;
        const std::size_t last = std::min(static_cast<std::size_t>(to), sums.size() - 1);
        for (std::size_t bin = std::min(static_cast<std::size_t>(from), sums.size() - 1); bin <= last; ++bin) {
            const double low = std::max(from, static_cast<double>(bin));
            const double high = std::min(to, static_cast<double>(bin) + 1);
            if (high > low) sums[bin][a] += static_cast<float>(high - low);
        }
    }
    auto& level = lane.levels_.emplace_back(sums.size());
    std::ranges::transform(sums, level.begin(), rounded);
    while (lane.levels_.back().size() > fewest_bins) lane.levels_.push_back(halved(lane.levels_.back()));
}

Lanes LanesBuilder::finish() {
    std::vector<std::vector<Lane>> parts(added_.size());
    each_of(parts.size(), [&](std::size_t i) { parts[i] = apart(result_.lanes[i], std::move(added_[i])); });
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
    each_of(result_.lanes.size(), [this](std::size_t i) { build(result_.lanes[i]); });
    return std::move(result_);
}

}  // namespace rehearse::picture
