// SPDX-License-Identifier: Apache-2.0
#include "calibrate/collective_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "calibrate/collective_times.hpp"
#include "core/error.hpp"
#include "match/pattern.hpp"

namespace rehearse::calibrate {

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    constexpr std::string_view blanks = " \t\r";
    for (std::size_t at = line.find_first_not_of(blanks); at < line.size(); at = line.find_first_not_of(blanks, at)) {
        const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

std::optional<double> number_of(std::string_view word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

std::string_view without_rank(std::string_view line) {
    static const match::Pattern tagged(R"((\s*(?:\[[\d,]+\](?:<std(?:out|err)>:)?|\d+:)\s?)[^\r\n]*\s*)", "a line");
    const auto tag = tagged.groups_of(line);
    return tag ? line.substr(tag->front().size()) : line;
}

void add_message(FileSamples& samples, Bytes size, Seconds one_way, bool streamed) {
    samples.messages.push_back({size, one_way});
    samples.collectives.push_back({std::string{message_kind}, 2, size, one_way, false, 0, streamed});
}

void add_collective(FileSamples& samples, const CollectiveRow& row, const std::string& here) {
    // A chain's hops are not one message: of broadcasts and reductions only sizes count that fill it.
    constexpr Bytes fills_a_chain{1 << 20};
    const std::optional<RingRounds> rounds = ring_rounds(row.kind, row.ranks);
    if (!rounds) {
        throw InputError(fmt::format("{}: {} among {} ranks: at least 2", here, row.kind, row.ranks));
    }
    if ((row.kind == "broadcast" || row.kind == "reduce") && row.bytes < fills_a_chain && row.ranks > 2) {
        samples.skipped.push_back(fmt::format("{}: {} of {} among {} ranks: hops of a chain, not one message", here,
                                              row.kind, to_string(row.bytes), row.ranks));
        return;
    }
    samples.messages.push_back(rounds->message(row.bytes, row.time));
    samples.collectives.push_back(row);
}

}  // namespace rehearse::calibrate
