// SPDX-License-Identifier: Apache-2.0
#include "cluster/allocate.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::cluster {

namespace {

Worth worth_of(const Candidate& candidate) {
    Worth worth{-1.0};
    for (std::size_t k = 1; k < candidate.shares.size(); ++k) {
        const double rate = candidate.shares[k].samples_per_s;
        worth.push_back(rate > 0 ? rate / candidate.one_device : -1);
        if (candidate.shares[k] == candidate.has) worth.back() *= 1 + 1e-9;  // nobody restarts for nothing
    }
    return worth;
}

}  // namespace

std::vector<std::int64_t> allocate(std::span<const Worth> jobs, std::int64_t devices) {
    constexpr double impossible = -1;
    const auto count = static_cast<std::size_t>(devices) + 1;
    // sum[k]: the best of the jobs so far with k devices at most; chosen[j][k]: what job j has of it.
    std::vector<double> sum(count, 0.0);
    std::vector<std::vector<std::int64_t>> chosen;
    for (const Worth& worth : jobs) {
        std::vector<double> next(count, impossible);
        std::vector<std::int64_t>& own = chosen.emplace_back(count, 0);
        for (std::size_t k = 0; k < count; ++k) {
            for (std::size_t m = 0; m <= std::min(k, worth.size() - 1); ++m) {
                if (worth[m] < 0 || sum[k - m] < 0 || sum[k - m] + worth[m] <= next[k]) continue;
                next[k] = sum[k - m] + worth[m];
                own[k] = static_cast<std::int64_t>(m);
            }
        }
        sum = std::move(next);
    }
    if (sum.back() < 0) return {};
    std::vector<std::int64_t> result(jobs.size());
    std::int64_t left = devices;
    for (std::size_t j = jobs.size(); j-- > 0;) {
        result[j] = chosen[j][static_cast<std::size_t>(left)];
        left -= result[j];
    }
    return result;
}

std::vector<Share> elastic_shares(std::span<const Candidate> candidates, std::int64_t devices) {
    std::vector<Worth> worths;
    std::int64_t left = devices;
    for (const Candidate& candidate : candidates) {
        Worth worth = worth_of(candidate);
        const auto least = std::ranges::find_if(worth, [](double w) { return w >= 0; }) - worth.begin();
        require(least < static_cast<std::ptrdiff_t>(worth.size()), "a job that can run");
        if (least > left) break;
        left -= least;
        worths.push_back(std::move(worth));
    }
    const std::vector<std::int64_t> given = allocate(worths, devices);
    require(given.size() == worths.size(), "devices for all that take part");
    std::vector<Share> shares(candidates.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        shares[i] = candidates[i].shares[static_cast<std::size_t>(given[i])];
    }
    return shares;
}

}  // namespace rehearse::cluster
