// SPDX-License-Identifier: Apache-2.0
#include "sim/network/adaptive.hpp"

#include <algorithm>
#include <cmath>

#include "core/index.hpp"

namespace rehearse::sim {

namespace {

// Places that no demand begins or ends at are all alike: detours load them evenly.
class PairLoads {
public:
    PairLoads(std::int64_t size, std::span<const PairDemand> demands, std::span<const double> out,
              std::span<const double> in)
        : size_(size), number_(at(size), -1) {
        for (const PairDemand& one : demands) {
            for (const std::int64_t place : {one.from, one.to}) {
                if (number_[at(place)] >= 0) continue;
                number_[at(place)] = places_++;
                out_.push_back(out.empty() ? 0 : out[at(place)]);
                in_.push_back(in.empty() ? 0 : in[at(place)]);
            }
        }
        demand_.assign(at(places_ * places_), 0);
        for (const PairDemand& one : demands) {
            double& sum = demand_[index(number_[at(one.from)], number_[at(one.to)])];
            sum += one.amount;
            most_ = std::max(most_, sum);
        }
        detour(most_);
    }

    double most() const { return most_; }
    /// What the busiest of all links carries at this threshold.
    double busiest(double threshold) {
        detour(threshold);
        double busiest = 0;
        for (std::int64_t i = 0; i < places_; ++i) {
            for (std::int64_t k = 0; k < places_; ++k) {
                if (i != k) busiest = std::max(busiest, load(i, k));
            }
            busiest = std::max({busiest, to_others(i), from_others(i)});
        }
        return busiest;
    }
    /// ... of those that a demand uses, at the threshold last asked about.
    double busiest_of(const PairDemand& one) const {
        const std::int64_t from = number_[at(one.from)], to = number_[at(one.to)];
        double busiest = load(from, to);
        if (!(over(from, to) > 0)) return busiest;
        for (std::int64_t k = 0; k < places_; ++k) {
            if (k != from && k != to) busiest = std::max({busiest, load(from, k), load(k, to)});
        }
        return std::max({busiest, to_others(from), from_others(to)});
    }

private:
    std::size_t index(std::int64_t i, std::int64_t k) const { return at(i * places_ + k); }
    void detour(double threshold) {
        threshold_ = threshold;
        leaving_.assign(at(places_), 0);
        coming_.assign(at(places_), 0);
        for (std::int64_t i = 0; i < places_; ++i) {
            for (std::int64_t k = 0; k < places_; ++k) {
                leaving_[at(i)] += over(i, k);
                coming_[at(k)] += over(i, k);
            }
        }
    }
    double over(std::int64_t i, std::int64_t k) const {
        return size_ < 3 ? 0 : std::max(0.0, demand_[index(i, k)] - threshold_);
    }
    double shared_out(double all) const { return size_ < 3 ? 0 : all / static_cast<double>(size_ - 2); }
    double load(std::int64_t i, std::int64_t k) const {
        return demand_[index(i, k)] - over(i, k) + out_[at(i)] + in_[at(k)] +
               shared_out(leaving_[at(i)] + coming_[at(k)] - 2 * over(i, k));
    }
    double to_others(std::int64_t i) const { return places_ < size_ ? shared_out(leaving_[at(i)]) + out_[at(i)] : 0; }
    double from_others(std::int64_t k) const { return places_ < size_ ? shared_out(coming_[at(k)]) + in_[at(k)] : 0; }

    std::int64_t size_, places_ = 0;
    std::vector<std::int64_t> number_;  // by place, of those in use
    std::vector<double> out_, in_, demand_, leaving_, coming_;
    double most_ = 0, threshold_ = 0;
};

// At the best threshold: below it detours fill the links, above it the ways between the ends. Golden section.
void settle(PairLoads& loads) {
    const double golden = (std::sqrt(5.0) - 1) / 2;
    double low = 0, high = loads.most();
    for (int i = 0; i < 40; ++i) {
        const double lower = high - golden * (high - low), upper = low + golden * (high - low);
        const bool fewer = loads.busiest(lower) < loads.busiest(upper);
        (fewer ? high : low) = fewer ? upper : lower;
    }
    const double found = (low + high) / 2;
    const bool better = loads.busiest(found) < loads.busiest(loads.most()) * (1 - 1e-6);
    loads.busiest(better ? found : loads.most());
}

}  // namespace

std::vector<double> busiest_links(std::int64_t size, std::span<const PairDemand> demands, std::span<const double> out,
                                  std::span<const double> in) {
    PairLoads loads{size, demands, out, in};
    if (size > 2) settle(loads);
    std::vector<double> result;
    result.reserve(demands.size());
    for (const PairDemand& one : demands) result.push_back(loads.busiest_of(one));
    return result;
}

}  // namespace rehearse::sim
