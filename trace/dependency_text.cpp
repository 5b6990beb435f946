// SPDX-License-Identifier: Apache-2.0
#include "trace/dependency_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "trace/layout.hpp"

namespace rehearse::trace {

namespace {

// Up to the next space, which is taken off, too.
std::string_view word(std::string_view& line) {
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos) throw InputError("a step's line has four words");
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end + 1);
    return word;
}

Dependencies::Step step_in(std::string_view line, std::int64_t number) {
    Dependencies::Step step;
    const auto stream = stream_named(word(line));
    if (!stream) throw InputError("no stream");
    step.stream = *stream;
    step.micro_batch = static_cast<int>(parse_int(word(line), "micro-batch"));
    const std::string_view after = word(line);
    if (after != "-") {
        for (const std::string_view before : split(after, ',')) {
            const std::int64_t index = parse_int(before, "after");
            if (index < 0 || index >= number) throw InputError("a step waits for an earlier one");
            step.after.push_back(static_cast<int>(index));
        }
    }
    step.step = line;
    return step;
}

}  // namespace

std::string ranks_text(const Dependencies& dependencies) {
    return fmt::format("{}", fmt::join(dependencies.ranks, " "));
}

std::string steps_text(const Dependencies& dependencies) {
    std::string text;
    for (const Dependencies::Step& step : dependencies.steps) {
        text += fmt::format("{} {} {} {}\n", to_string(step.stream), step.micro_batch,
                            step.after.empty() ? "-" : fmt::format("{}", fmt::join(step.after, ",")), step.step);
    }
    return text;
}

std::optional<Dependencies> dependencies_in(std::string_view ranks, std::string_view steps) {
    try {
        Dependencies found;
        for (const std::string_view rank : split(ranks, ' ')) found.ranks.emplace_back(parse_int(rank, "rank"));
        while (!steps.empty()) {
            const std::size_t end = steps.find('\n');
            if (end == std::string_view::npos) return std::nullopt;
            found.steps.push_back(step_in(steps.substr(0, end), std::ssize(found.steps)));
            steps.remove_prefix(end + 1);
        }
        return found;
    } catch (const InputError&) {
        return std::nullopt;
    }
}

}  // namespace rehearse::trace
