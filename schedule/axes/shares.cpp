// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {

namespace {

/// The largest number from `low` to `high` that is `good`, which is not so again beyond one that is not; low - 1 if
/// none.
template <typename Good>
std::int64_t last_good(std::int64_t low, std::int64_t high, const Good& good) {
    while (low <= high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (good(middle)) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return high;
}

class Balance {
public:
    Balance(std::span<const AlikeCopies> kinds, std::int64_t units, std::int64_t unit)
        : kinds_(kinds), units_(units), unit_(unit), seconds_(kinds.size()) {
        for (const AlikeCopies& kind : kinds) {
            most_.push_back(last_good(1, units, [&](std::int64_t n) { return kind.fits(n * unit); }));
        }
        const bool some_have_no_room = std::ranges::any_of(most_, [](std::int64_t most) { return most < 1; });
        if (some_have_no_room || room(most_) < units) most_.assign(kinds.size(), units);
    }

    std::vector<std::int64_t> run() {
        // The least time of which some number of samples on some kind takes exactly so long: of each kind the smallest
        // such number, by bisection, and the shortest of these times.
        double best = 0;
        for (std::size_t k = 0; k < kinds_.size(); ++k) {
            const std::int64_t below =
                last_good(1, most_[k], [&](std::int64_t n) { return room(within(seconds(k, n))) < units_; });
            if (below == most_[k]) continue;
            const double time = seconds(k, below + 1);
            best = best > 0 ? std::min(best, time) : time;
        }
        require(best > 0, "room for the batch");
        std::vector<std::int64_t> of_kind = within(best);
        return spread(of_kind, room(of_kind) - units_);
    }

private:
    double seconds(std::size_t kind, std::int64_t units) {
        const auto [entry, fresh] = seconds_[kind].try_emplace(units);
        if (fresh) entry->second = kinds_[kind].seconds(units * unit_);
        return entry->second;
    }

    /// How many units each kind can take in `time`: one at least, as every copy has some.
    std::vector<std::int64_t> within(double time) {
        std::vector<std::int64_t> units;
        for (std::size_t k = 0; k < kinds_.size(); ++k) {
            units.push_back(std::max<std::int64_t>(
                1, last_good(1, most_[k], [&](std::int64_t n) { return seconds(k, n) <= time; })));
        }
        return units;
    }

    std::int64_t room(const std::vector<std::int64_t>& units) const {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < kinds_.size(); ++k) sum += kinds_[k].copies * units[k];
        return sum;
    }

    /// All that is needed is one unit less for some copies: from the kind that takes longest, then from the next.
    std::vector<std::int64_t> spread(const std::vector<std::int64_t>& units, std::int64_t surplus) {
        std::vector<std::vector<std::int64_t>> of_copies;
        for (std::size_t k = 0; k < kinds_.size(); ++k) {
            of_copies.emplace_back(static_cast<std::size_t>(kinds_[k].copies), units[k]);
        }
        while (surplus > 0) {
            std::size_t longest = 0;
            double most = -1;
            for (std::size_t k = 0; k < kinds_.size(); ++k) {
                const std::int64_t units_now = std::ranges::max(of_copies[k]);
                if (units_now > 1 && seconds(k, units_now) > most) {
                    most = seconds(k, units_now);
                    longest = k;
                }
            }
            require(most >= 0, "a unit for each copy");
            for (auto copy = of_copies[longest].rbegin(); copy != of_copies[longest].rend() && surplus > 0; ++copy) {
                if (*copy < std::ranges::max(of_copies[longest])) continue;
                --*copy;
                --surplus;
            }
        }
        std::vector<std::int64_t> samples;
        for (const std::vector<std::int64_t>& kind : of_copies) {
            for (const std::int64_t each : kind) samples.push_back(each * unit_);
        }
        return samples;
    }

    std::span<const AlikeCopies> kinds_;
    std::int64_t units_, unit_;
    std::vector<std::int64_t> most_;                       // units, by kind
    std::vector<std::map<std::int64_t, double>> seconds_;  // by kind and units
};

}  // namespace

std::vector<std::int64_t> balance_batch(std::span<const AlikeCopies> kinds, std::int64_t batch, std::int64_t unit) {
    std::int64_t copies = 0;
    for (const AlikeCopies& kind : kinds) copies += kind.copies;
    if (batch % unit != 0) {
        throw InputError(fmt::format("{} samples cannot be cut into {} equal micro-batches; {} would do", batch, unit,
                                     multiples_beside(batch, unit)));
    }
    if (batch / unit < copies) {
        throw InputError(fmt::format("{} samples in {} micro-batches leave some of {} copies without any; {} would do",
                                     batch, unit, copies, copies * unit));
    }
    return Balance{kinds, batch / unit, unit}.run();
}

std::vector<std::int64_t> cut_batch(std::span<const std::int64_t> parts, std::int64_t batch, std::int64_t unit) {
    const std::int64_t all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    std::int64_t common = all;
    for (const std::int64_t part : parts) common = std::gcd(common, part);
    const std::int64_t multiple = all / common * unit;
    if (batch % multiple != 0) {
        throw InputError(fmt::format("shares: {} samples cannot be cut into {} parts{}; {} would do", batch, all,
                                     unit > 1 ? fmt::format(" of whole samples in each of {} micro-batches", unit) : "",
                                     multiples_beside(batch, multiple)));
    }
    std::vector<std::int64_t> samples;
    for (const std::int64_t part : parts) samples.push_back(batch / all * part + batch % all * part / all);
    return samples;
}

}  // namespace rehearse::schedule
