// SPDX-License-Identifier: Apache-2.0
#include "search/stages.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace rehearse::search {
namespace {

/// Where the piece that begins at a layer ends when it may not cost more than `most`; `begin` itself: one layer does.
std::size_t end_below(const std::vector<double>& costs, std::size_t begin, double most) {
    const auto after =
        std::upper_bound(costs.begin() + static_cast<std::ptrdiff_t>(begin), costs.end(), costs[begin] + most);
    return static_cast<std::size_t>(after - costs.begin()) - 1;
}

/// Where the first 0, 1, ..., `pieces` pieces end that cost at most `most` each and are as long as can be.
std::vector<std::size_t> reach(const std::vector<double>& costs, double most, std::size_t pieces) {
    std::vector<std::size_t> ends(pieces + 1);
    for (std::size_t i = 0; i < pieces; ++i) ends[i + 1] = end_below(costs, ends[i], most);
    return ends;
}

constexpr double precision = 1e-4;  // of the costliest piece's cost

/// The costliest piece as cheap as can be, at least one layer a piece. As schedule::balance cuts: the last piece is as
/// short as that leaves it, and so is, of the layers before it, the last but one. Costs are found by bisection.
std::vector<std::size_t> cut(const std::vector<double>& costs, std::size_t pieces) {
    std::size_t end = costs.size() - 1;
    std::vector<double> largest(end + 1);  // of one of the first layers
    for (std::size_t i = 0; i < end; ++i) largest[i + 1] = std::max(largest[i], costs[i + 1] - costs[i]);
    double high = std::min(costs[end] / static_cast<double>(pieces) + largest[end], costs[end]);
    std::vector<std::size_t> reached = reach(costs, high, pieces);
    for (double margin = 1e-12; reached[pieces] < end; margin *= 2) {  // of rounding
        high *= 1 + margin;
        reached = reach(costs, high, pieces);
    }
    std::vector<std::size_t> with_less = reach(costs, high * (1 - precision), pieces);
    std::vector<std::size_t> ends(pieces, end);
    for (std::size_t left = pieces; left > 1; --left) {
        double low = std::max(costs[end] / static_cast<double>(left), largest[end]);
        if (high > low * (1 + precision) && with_less[left] >= end) {
            while (high > low * (1 + precision)) {
                const double middle = (low + high) / 2;
                (reach(costs, middle, left)[left] >= end ? high : low) = middle;
            }
            reached = reach(costs, high, left);
            with_less = reach(costs, high * (1 - precision), left);
        }
        const auto first = costs.begin();
        const auto works = std::lower_bound(first, first + static_cast<std::ptrdiff_t>(end), costs[end]) - first;
        const std::size_t last = std::max<std::ptrdiff_t>(works - 1, 0);  // where a layer that costs something begins
        end = std::max(std::min(reached[left - 1], last), left - 1);
        ends[left - 2] = end;
    }
    return ends;
}

/// Layers that compute something: a piece has one at least.
std::size_t working(const LayerCosts& costs) {
    std::size_t layers = 0;
    for (std::size_t i = 1; i < costs.balanced_s.size(); ++i) layers += costs.balanced_s[i] > costs.balanced_s[i - 1];
    return layers;
}

/// What a piece that ends with layers before each place hands on.
std::vector<double> handed_at(const LayerCosts& costs) {
    std::vector<double> handed(costs.output_bytes);
    std::adjacent_difference(costs.output_bytes.begin(), costs.output_bytes.end(), handed.begin());
    return handed;
}

double sum_of(const std::vector<double>& handed, const std::vector<std::size_t>& ends) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) sum += handed[ends[i]];
    return sum;
}

/// Of all pieces the costliest.
double costliest(const std::vector<double>& costs, const std::vector<std::size_t>& ends) {
    double most = 0;
    std::size_t begin = 0;
    for (const std::size_t end : ends) most = std::max(most, costs[end] - costs[std::exchange(begin, end)]);
    return most;
}

/// Pieces that cost something, and at most `most` each, and together hand on as little as can be: by dynamic
/// programming over pieces and where they end, the begins that an end allows being a window that moves with it.
std::vector<std::size_t> cut_by_bytes(const std::vector<double>& costs, const std::vector<double>& handed,
                                      std::size_t pieces, double most) {
    constexpr double never = std::numeric_limits<double>::infinity();
    const std::size_t layers = costs.size() - 1;
    std::vector<double> before(layers + 1, never), after(layers + 1);
    std::vector<std::uint32_t> begins(pieces * (layers + 1));  // by piece and end
    std::vector<std::uint32_t> window;
    before[0] = 0;
    for (std::size_t p = 0; p < pieces; ++p) {
        window.clear();  // begins, of which each hands on more than those ahead of it
        std::size_t front = 0, next = 0;
        std::ranges::fill(after, never);
        for (std::size_t end = 1; end <= layers; ++end) {
            for (; costs[next] < costs[end]; ++next) {
                if (before[next] == never) continue;
                while (window.size() > front && before[window.back()] >= before[next]) window.pop_back();
                window.push_back(static_cast<std::uint32_t>(next));
            }
            while (front < window.size() && costs[end] - costs[window[front]] > most) ++front;
            if (front == window.size()) continue;
            after[end] = before[window[front]] + handed[end];
            begins[p * (layers + 1) + end] = window[front];
        }
        std::swap(before, after);
    }
    if (before[layers] == never) return {};
    std::vector<std::size_t> ends(pieces, layers);
    for (std::size_t p = pieces - 1; p > 0; --p) ends[p - 1] = begins[p * (layers + 1) + ends[p]];
    return ends;
}

struct Buckets {
    double count = 0, largest = 0, largest_two = 0;  // the latter beside each other
};
/// That the gradients of layers [begin, end) make, the last layer first. A layer is never cut: the one that fills a
/// bucket closes it, however much it adds (schedule/methods/buckets.cpp).
Buckets buckets_of(const std::vector<double>& weights, std::size_t begin, std::size_t end, double full) {
    Buckets buckets;
    double open = 0, before = 0;
    const auto close = [&] {
        if (open == 0) return;
        ++buckets.count;
        buckets.largest = std::max(buckets.largest, open);
        buckets.largest_two = std::max(buckets.largest_two, before + open);
        before = std::exchange(open, 0);
    };
    for (std::size_t i = end; i-- > begin;) {
        open += weights[i + 1] - weights[i];
        if (open >= full) close();
    }
    close();
    return buckets;
}

/// What a piece holds of one micro-batch in all, at the fullest moment of its backward passes.
double fullest_backward(const LayerCosts& costs, std::size_t begin, std::size_t end) {
    double most = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const double up_to = costs.held_bytes[i + 1] - costs.held_bytes[begin];
        most = std::max(most, up_to + costs.memory.passing[i]);
    }
    return most;
}

ChunkMemory memory_of(const LayerCosts& costs, std::size_t begin, std::size_t end) {
    const double fullest = fullest_backward(costs, begin, end);
    // Of a whole stage what comes in is held, and all else computed again.
    if (costs.whole_stage) return {begin > 0 ? costs.output_bytes[begin] - costs.output_bytes[begin - 1] : 0, fullest};
    const double left = end < costs.memory.left.size() ? costs.memory.left[end] : 0;
    const double held = costs.held_bytes[end] - costs.held_bytes[begin] - left;
    return {held + costs.memory.taken[begin], fullest - held};
}

}  // namespace

std::vector<Stage> stages_of(const LayerCosts& costs, const std::vector<std::size_t>& ends, std::int64_t stages) {
    std::vector<double> dense(costs.weights);
    std::ranges::transform(dense, costs.expert_weights, dense.begin(), std::minus{});
    std::vector<Stage> made(static_cast<std::size_t>(stages));
    std::size_t begin = 0;
    std::size_t piece = 0;
    for (const std::size_t end : ends) {
        Stage& stage = made[piece++ % made.size()];
        const auto between = [&](const std::vector<double>& sums) { return sums[end] - sums[begin]; };
        stage.forward_s += between(costs.forward_s);
        stage.backward_s += between(costs.backward_s);
        stage.longest_piece_s = std::max(stage.longest_piece_s, between(costs.forward_s) + between(costs.backward_s));
        stage.balanced_s += between(costs.balanced_s);
        stage.longest_balanced_s = std::max(stage.longest_balanced_s, between(costs.balanced_s));
        stage.weights += between(costs.weights);
        stage.expert_weights += between(costs.expert_weights);
        const auto add_buckets = [&](const std::vector<double>& weights,
                                     double& count) {  // they end where a chunk does
            const Buckets buckets = buckets_of(weights, begin, end, costs.bucket_weights);
            count += buckets.count;
            stage.largest.bucket = std::max(stage.largest.bucket, buckets.largest);
            stage.largest.two_buckets = std::max(stage.largest.two_buckets, buckets.largest_two);
        };
        add_buckets(dense, stage.buckets);
        add_buckets(costs.expert_weights, stage.expert_buckets);
        stage.operand_bytes += between(costs.operand_bytes);
        stage.chunks.push_back(memory_of(costs, begin, end));
        const auto exchanged = costs.memory.exchanged.begin();
        stage.largest.exchanged_bytes =
            std::max(stage.largest.exchanged_bytes, *std::max_element(exchanged + static_cast<std::ptrdiff_t>(begin),
                                                                      exchanged + static_cast<std::ptrdiff_t>(end)));
        if (piece < ends.size()) {  // the last one hands nothing on
            const double handed = costs.output_bytes[end] - costs.output_bytes[end - 1];
            if (stage.hand_overs++ == 0) stage.first_handed_bytes = handed;
            stage.handed_bytes += handed;
        }
        begin = end;
    }
    return made;
}

std::vector<Stage> stages_of(const LayerCosts& costs, std::int64_t stages, int chunks) {
    const auto pieces = static_cast<std::size_t>(stages * chunks);
    if (pieces > working(costs)) return {};
    return stages_of(costs, cut(costs.balanced_s, pieces), stages);
}

std::vector<std::vector<std::size_t>> cuts_by_bytes(const LayerCosts& costs, std::size_t pieces) {
    constexpr std::array more{0.01, 0.03, 0.1, 0.3, 1.0};
    constexpr double most = 3;
    const std::vector<std::size_t> first = cut(costs.balanced_s, pieces);
    const std::vector<double> handed = handed_at(costs);
    const double least = costliest(costs.balanced_s, first);
    const auto within = [&](double share) {
        return cut_by_bytes(costs.balanced_s, handed, pieces, least * (1 + share));
    };
    std::vector<std::vector<std::size_t>> cuts;
    std::vector<std::size_t> last = within(most);
    const double fewest = sum_of(handed, last) * 1.001;
    double bytes = sum_of(handed, first);
    for (const double share : more) {
        if (bytes <= fewest) return cuts;
        std::vector<std::size_t> other = within(share);
        if (other.empty()) continue;
        const double less = sum_of(handed, other);
        if (less >= bytes * 0.999) continue;
        bytes = less;
        cuts.push_back(std::move(other));
    }
    if (bytes > fewest) cuts.push_back(std::move(last));
    return cuts;
}

}  // namespace rehearse::search
