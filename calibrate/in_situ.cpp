// SPDX-License-Identifier: Apache-2.0
#include "calibrate/in_situ.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "core/gradient_sums.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {

namespace {

/// A problem's share of a step.
struct Share {
    std::string problem;
    double share = 1;
};

std::vector<Share> shares_of(const Problem& problem, const std::vector<Problem>& sums, const DeviceClass& device) {
    const double own = price(problem, device).time.value;
    std::vector<Share> shares{{to_string(problem), own}};
    double whole = own;
    for (const Problem& sum : sums) {
        shares.push_back({to_string(sum), price(sum, device).time.value});
        whole += shares.back().share;
    }
    for (Share& each : shares) each.share = whole > 0 ? each.share / whole : 1.0 / std::ssize(shares);
    return shares;
}

/// Seconds by step of a class and by iteration but the first.
std::vector<std::vector<double>> seconds_of(const RankClass& rank_class, const Timeline& timeline) {
    std::map<std::string_view, std::size_t> index;
    for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
        if (problem_of(rank_class.steps[i]) != nullptr) index.emplace(rank_class.steps[i].name, i);
    }
    std::vector<std::vector<double>> seconds(rank_class.steps.size());
    for (const Event& event : timeline.events) {
        const auto step = index.find(event.step);
        if (event.stream != Stream::compute || event.iteration == 0 || step == index.end()) continue;
        seconds[step->second].push_back((event.end - event.start).value);
    }
    return seconds;
}

// All iterations of `blocks` but the first of each: a block of a slow network has but one more, which any other process
// may have disturbed.
Timeline joined(const std::vector<InSituSteps::Block>& blocks) {
    Timeline all;
    int iterations = 0;
    for (const InSituSteps::Block& block : blocks) {
        int most = 0;
        for (Event event : block.timeline.events) {
            most = std::max(most, event.iteration);
            if (event.iteration == 0) continue;
            event.iteration += iterations;
            all.events.push_back(std::move(event));
        }
        iterations += most;
    }
    return all;
}

}  // namespace

void InSituSteps::add(const Schedule& schedule, const RankClass& rank_class, std::vector<Block> blocks,
                      const DeviceClass& device) {
    require(!blocks.empty(), "steps in situ were timed");
    const Timeline timeline = joined(blocks);
    const auto middle = blocks.begin() + std::ssize(blocks) / 2;
    std::ranges::nth_element(blocks, middle, {}, &Block::step);
    add(schedule, rank_class, timeline, device, middle->step);
}

std::vector<double> step_sums(const RankClass& rank_class, const Timeline& timeline) {
    std::vector<double> sums;
    for (const std::vector<double>& step : seconds_of(rank_class, timeline)) {
        sums.resize(std::max(sums.size(), step.size()));
        for (std::size_t i = 0; i < step.size(); ++i) sums[i] += step[i];
    }
    if (sums.empty()) throw InputError("prices in situ need two training steps");
    return sums;
}

void InSituSteps::add(const Schedule& schedule, const RankClass& rank_class, const Timeline& timeline,
                      const DeviceClass& device, Seconds whole) {
    const std::vector<std::vector<Problem>> gradients = gradient_sums(schedule, rank_class);
    const std::vector<std::vector<double>> seconds = seconds_of(rank_class, timeline);
    const std::size_t iterations = step_sums(rank_class, timeline).size();
    double medians = 0;
    for (const std::vector<double>& step : seconds) medians += step.empty() ? 0 : median(step);
    const double stretch = medians > 0 ? whole.value / medians : 1;
    std::map<std::string, std::vector<double>> by_problem;  // by iteration
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        if (seconds[i].empty()) continue;
        const double middle = median(seconds[i]) * stretch;
        for (const auto& [problem, share] : shares_of(*problem_of(rank_class.steps[i]), gradients[i], device)) {
            InSituTimes& times = times_[problem];
            times.seconds += middle * share;
            times.places += 1;
            times.samples += static_cast<double>(seconds[i].size());
            std::vector<double>& sums = by_problem[problem];
            sums.resize(iterations);
            for (std::size_t k = 0; k < seconds[i].size(); ++k) sums[k] += seconds[i][k] * share;
        }
    }
    for (const auto& [problem, sums] : by_problem) times_[problem].error += robust_deviation(sums);
}

std::string InSituSteps::text() const {
    std::string lines;
    for (const auto& [problem, times] : times_) {
        lines += fmt::format("{} {} {} {} {}\n", problem, times.seconds, times.error, times.places, times.samples);
    }
    return lines;
}

void InSituSteps::add(const std::string& text) {
    std::istringstream lines{text};
    std::string problem;
    InSituTimes more;
    while (lines >> problem >> more.seconds >> more.error >> more.places >> more.samples) {
        InSituTimes& times = times_[problem];
        times.seconds += more.seconds;
        times.error += more.error;
        times.places += more.places;
        times.samples += more.samples;
    }
}

namespace {

struct Seen {
    Seconds alone, in_situ;
};

// Of kernels that were seen in steps: those of about as long a time alone, else the nearest.
std::vector<Seen> like(const std::vector<Seen>& all, Seconds alone) {
    const auto distance = [&](const Seen& seen) { return std::abs(std::log(seen.alone / alone)); };
    std::vector<Seen> near;
    for (const Seen& seen : all) {
        if (distance(seen) <= std::log(alike_within)) near.push_back(seen);
    }
    if (near.empty()) near.push_back(*std::ranges::min_element(all, {}, distance));
    return near;
}

void scale(Sample& sample, const std::vector<Seen>& all) {
    const std::vector<Seen> near = like(all, sample.alone);
    Seen sum;
    for (const Seen& seen : near) {
        sum.alone += seen.alone;
        sum.in_situ += seen.in_situ;
    }
    const double ratio = sum.in_situ / sum.alone;
    const double size = sample.alone / (sum.alone / static_cast<double>(near.size()));
    // Of a kernel much longer than those, only so much of itself takes longer.
    const double part = std::min(1.0, alike_within / size);
    sample.scaled = 1 + (ratio - 1) * part;
    sample.median = sample.alone * sample.scaled;
    double squares = 0;
    for (const Seen& seen : near) squares += std::pow(std::log(seen.in_situ / seen.alone / ratio) * part, 2);
    const double unsure =
        near.size() == 1 ? std::abs(std::log(sample.scaled)) : std::sqrt(squares / static_cast<double>(near.size()));
    sample.error = std::hypot(sample.error, unsure);
}

}  // namespace

void put_in_situ(std::vector<Sample>& samples, const std::map<std::string, InSituTimes>& times) {
    std::map<std::pair<std::string_view, Pass>, std::vector<Seen>> known;
    std::vector<Sample*> others;
    for (Sample& sample : samples) {
        const auto found = times.find(to_string(sample.problem));
        sample.alone = sample.median;
        if (found == times.end() || !(found->second.seconds > 0)) {
            others.push_back(&sample);
            continue;
        }
        const InSituTimes& in_situ = found->second;
        sample.median = Seconds{in_situ.seconds / in_situ.places};
        sample.error = in_situ.error / in_situ.seconds;
        sample.count = static_cast<std::int64_t>(in_situ.samples);
        known[{kind_of(sample.problem.op), sample.problem.pass}].push_back({sample.alone, sample.median});
    }
    for (Sample* const sample : others) {
        const auto of_kind = known.find({kind_of(sample->problem.op), sample->problem.pass});
        if (of_kind != known.end() && sample->alone > Seconds{0}) scale(*sample, of_kind->second);
    }
}

double stretch_in_steps(const std::vector<Sample>& samples, const std::map<std::string, InSituTimes>& times) {
    constexpr Seconds least{100e-6};
    constexpr std::size_t enough = 3;
    std::vector<double> ratios;
    for (const Sample& sample : samples) {
        const auto found = times.find(to_string(sample.problem));
        if (found == times.end() || sample.median < least) continue;
        ratios.push_back(found->second.seconds / found->second.places / sample.median.value);
    }
    return ratios.size() < enough ? 0 : median(ratios);
}

std::string contradiction_of_steps(const std::vector<InSituStretch>& stretches) {
    std::vector<InSituStretch> told = stretches;
    std::erase_if(told, [](const InSituStretch& each) { return each.ratio <= 0; });
    if (told.empty()) return "";
    const auto [least, most] = std::ranges::minmax_element(told, {}, &InSituStretch::ratio);
    if (most->ratio > most_stretched)
        return fmt::format("kernels of {} took {:.2g} times as long in training steps as by themselves", most->name,
                           most->ratio);
    if (most->ratio <= most_between_networks * least->ratio) return "";
    return fmt::format(
        "kernels took {:.2g} times as long in training steps of {} as by themselves, and {:.2g} times in "
        "those of {}",
        most->ratio, most->name, least->ratio, least->name);
}

}  // namespace rehearse::calibrate
