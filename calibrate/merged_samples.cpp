// SPDX-License-Identifier: Apache-2.0
#include "calibrate/merged_samples.hpp"

#include <map>
#include <utility>

#include "calibrate/fit.hpp"

namespace rehearse::calibrate {

namespace {

void add(Sample& all, const Sample& more) {
    all.times.insert(all.times.end(), more.times.begin(), more.times.end());
    if (all.where.find(more.where) == std::string::npos) all.where += " and " + more.where;
}

void summarize(Sample& sample) {
    std::vector<double> seconds;
    for (const Seconds time : sample.times) seconds.push_back(time.value);
    sample.median = Seconds{median(seconds)};
    sample.error = robust_deviation(seconds) / sample.median.value;
    sample.count = static_cast<std::int64_t>(seconds.size());
}

}  // namespace

std::vector<Sample> merged(const std::vector<Sample>& samples) {
    std::map<std::pair<std::string, std::string>, Sample> by_implementation;
    for (const Sample& sample : samples) {
        const auto [known, fresh] =
            by_implementation.try_emplace({to_string(sample.problem), sample.backend + "/" + sample.algorithm}, sample);
        if (!fresh) add(known->second, sample);
    }
    std::map<std::string, Sample> fastest;
    for (auto& [name, sample] : by_implementation) {
        summarize(sample);
        const auto [known, fresh] = fastest.try_emplace(name.first, sample);
        if (!fresh && sample.median < known->second.median) known->second = sample;
    }
    std::vector<Sample> one_each;
    for (auto& [name, sample] : fastest) one_each.push_back(std::move(sample));
    return one_each;
}

}  // namespace rehearse::calibrate
