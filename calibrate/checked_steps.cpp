// SPDX-License-Identifier: Apache-2.0
#include "calibrate/checked_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "prices/interval.hpp"

namespace rehearse::calibrate {

// Ratios, not differences: half of the time and twice the time are equally far off.
InSitu in_situ(std::span<const CheckedStep> checked, const std::string& host, const std::string& date) {
    if (checked.empty()) throw InputError("no training step was measured to check the prices with");
    double squares = 0, worst = 1;
    int steps = 0;
    std::vector<double> noises;
    std::string words, contradicted;
    for (const CheckedStep& step : checked) {
        const double ratio = std::max(step.predicted / step.measured, step.measured / step.predicted);
        squares += std::pow(std::log(ratio), 2);
        worst = std::max(worst, ratio);
        noises.push_back(step.noise);
        steps += step.steps;
        const std::string text = fmt::format("{} {} {:+.1f} %", step.model, step.plan, 100 * step.error());
        words += (words.empty() ? "" : ", ") + text;
        if (ratio > most_in_doubt) contradicted += (contradicted.empty() ? "" : ", ") + text;
    }
    InSitu result;
    result.bias = std::exp(std::sqrt(squares / static_cast<double>(checked.size()))) - 1;
    result.noise = median(noises);
    result.source = fmt::format("measured, {}, {}, {} samples: {}", host, date, steps, words);
    if (contradicted.empty()) return result;
    result.noise = std::max(result.noise, (worst - 1) / prices::ninety_percent);
    result.doubt = fmt::format(
        "training steps contradict the prices that were measured on {} on {} ({}), as on a host that is busy with "
        "other "
        "things: calibrate again when it is not",
        host, date, contradicted);
    return result;
}

}  // namespace rehearse::calibrate
