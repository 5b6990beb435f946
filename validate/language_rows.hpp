// SPDX-License-Identifier: Apache-2.0
// Measured training of transformers by plan: time and memory of each row beside what the closed forms of predict/ say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/language_memory.hpp"
#include "predict/language_time.hpp"

namespace rehearse::validate {

struct LanguageRow {
    std::string id, source, device, model;
    std::string assumed{};  // what of the recipe the source does not print, and what was taken for it
    predict::LanguageModel sizes;
    predict::LanguagePlan plan;
    std::int64_t devices = 1, batch = 1;  // of a step, samples
    Seconds measured;
    std::optional<Bytes> memory;  // allocated, of the fullest rank
};
/// Columns: those of calibrate/llm/results.csv. InputError with file and line, also where the plan's ranks are not the
/// devices.
std::vector<LanguageRow> read_language_rows(std::string_view text, const std::string& origin);
std::vector<LanguageRow> shipped_language_rows();

struct LanguageAnswer {
    LanguageRow row;
    predict::LanguageTime time;
    predict::LanguageMemory memory;
    /// Of each other row of the same source and model as the one that was measured: the mean error, and the error with
    /// the first of them.
    std::optional<double> with_pilot;
    std::optional<Seconds> anchored;  // by the first other row
    /// How much longer (a logarithm) the step is where the host takes one standard deviation longer for an operator,
    /// cold and beyond what the first other row says of it.
    double host = 0, anchored_host = 0;
    double cold() const { return predict::total(time) / row.measured - 1; }
};
/// InputError where a row's device is not in calibrate/llm/nodes.csv.
std::vector<LanguageAnswer> answer(const std::vector<LanguageRow>& rows);

/// Kendall's tau of samples a second and device among rows of one source, model, number of devices and sequence:
/// concordant less discordant pairs over all pairs that were measured apart by more than 2 %; pairs that are
/// predicted alike are neither. Nothing without pairs.
std::optional<double> rank_correlation(const std::vector<LanguageAnswer>& answers);

}  // namespace rehearse::validate
