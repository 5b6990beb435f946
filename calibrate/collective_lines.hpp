// SPDX-License-Identifier: Apache-2.0
// Lines of text that benchmarks print, taken apart. For the readers of samples alone.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/read_samples.hpp"
#include "core/text.hpp"

namespace rehearse::calibrate {

/// What stands between blanks and tabs.
std::vector<std::string_view> words_of(std::string_view line);

/// The finite number that the whole word is.
std::optional<double> number_of(std::string_view word);

/// `line` without what launchers write before it to tell whose it is: "0: " (srun --label), "[0] " (Intel MPI, MPICH),
/// "[1,0]<stdout>:" (Open MPI's --tag-output).
std::string_view without_rank(std::string_view line);

/// Whether `line` is the last of `text`, which it lies in, and no newline ends it: it may be cut off.
inline bool is_last(std::string_view line, std::string_view text) {
    return line.data() + line.size() == text.data() + text.size();
}

template <typename Take>
void each_line(std::string_view text, const std::string& origin, const Take& take) {
    std::int64_t number = 0;
    for (const std::string_view line : split(text, '\n'))
        take(without_rank(line), fmt::format("{}:{}", origin, ++number));
}

/// One message from a rank to another; `streamed`: as one of many in flight.
void add_message(FileSamples& samples, Bytes size, Seconds one_way, bool streamed = false);

/// `row` as the messages of a ring's rounds; InputError "here: ..." of a collective that is none.
void add_collective(FileSamples& samples, const CollectiveRow& row, const std::string& here);

}  // namespace rehearse::calibrate
