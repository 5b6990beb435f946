// SPDX-License-Identifier: Apache-2.0
// Events into lanes: sorted, apart from each other, with their pyramid and prefix sums.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
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

void LanesBuilder::append(Lane& to, std::int64_t start, std::int64_t duration, std::uint32_t what,
                          std::uint16_t iteration, std::uint32_t flow) const {
    duration = std::max<std::int64_t>(duration, 0);
    if (duration >= is_long) to.long_[to.starts_.size()] = duration;
    to.starts_.push_back(start);
    to.durations_.push_back(duration >= is_long ? is_long : static_cast<std::uint32_t>(duration));
    to.whats_.push_back(what);
    to.activities_.push_back(result_.whats[what].activity);
    to.iterations_.push_back(iteration);
    if (flow != 0 && to.flows_.empty()) to.flows_.resize(to.starts_.size() - 1, 0);
    if (flow != 0 || !to.flows_.empty()) to.flows_.push_back(flow);
}

void LanesBuilder::add(std::size_t lane, std::int64_t start, std::int64_t duration, std::uint32_t what, int iteration,
                       std::int64_t flow) {
    append(result_.lanes[lane], start, duration, what, static_cast<std::uint16_t>(std::clamp(iteration, 0, 65535)),
           std::in_range<std::uint32_t>(flow) ? static_cast<std::uint32_t>(flow) : 0);
    ++events_;
}

// An event that holds others comes before them.
void LanesBuilder::sort(Lane& lane) const {
    const auto before = [&](std::size_t a, std::size_t b) {
        if (lane.starts_[a] != lane.starts_[b]) return lane.starts_[a] < lane.starts_[b];
        return lane.durations_[a] > lane.durations_[b];
    };
    bool sorted = true;
    for (std::size_t i = 1; i < lane.size() && sorted; ++i) sorted = !before(i, i - 1);
    if (sorted) return;
    std::vector<std::size_t> order(lane.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, before);
    Lane result;
    result.name = lane.name;
    result.rank = lane.rank;
    result.stream = lane.stream;
    for (const std::size_t i : order) {
        append(result, lane.start(i), lane.end(i) - lane.start(i), lane.whats_[i], lane.iterations_[i], lane.flow(i));
    }
    lane = std::move(result);
}

// Each event goes to the first lane that is free again when it begins: nested ones come below each other.
std::vector<Lane> LanesBuilder::without_overlap(Lane&& lane) const {
    bool overlaps = false;
    for (std::size_t i = 1; i < lane.size() && !overlaps; ++i) overlaps = lane.end(i - 1) > lane.start(i);
    std::vector<Lane> result;
    if (!overlaps) {
        result.push_back(std::move(lane));
        return result;
    }
    std::vector<std::int64_t> free_from;
    for (std::size_t i = 0; i < lane.size(); ++i) {
        std::size_t n = 0;
        while (n < result.size() && free_from[n] > lane.start(i)) ++n;
        if (n == result.size()) {
            Lane& added = result.emplace_back();
            added.name = lane.name;
            added.rank = lane.rank;
            added.stream = lane.stream;
            added.number = static_cast<int>(n);
            free_from.push_back(0);
        }
        append(result[n], lane.start(i), lane.end(i) - lane.start(i), lane.whats_[i], lane.iterations_[i],
               lane.flow(i));
        free_from[n] = lane.end(i);
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
    std::vector<Lane> lanes;
    result_.first = INT64_MAX;
    result_.last = INT64_MIN;
    for (Lane& lane : result_.lanes) {
        sort(lane);
        for (Lane& part : without_overlap(std::move(lane))) {
            if (part.size() == 0) continue;
            result_.first = std::min(result_.first, part.start(0));
            result_.last = std::max(result_.last, part.end(part.size() - 1));
            lanes.push_back(std::move(part));
        }
        lane = {};
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
