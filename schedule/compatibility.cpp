// SPDX-License-Identifier: Apache-2.0
#include "schedule/compatibility.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"

namespace rehearse::schedule {

namespace {

const Feature& feature_named(std::string_view name) {
    const auto found = std::ranges::find(features(), name, &Feature::name);
    require(found != features().end(), "a conflict or a need names a feature");
    return **found;
}

/// Whether what a feature that is asked for conflicts with is, too.
bool holds(const Conflict& conflict, const Asked& asked) {
    if (!feature_named(conflict.with).in(asked)) return false;
    return conflict.unless.empty() || !feature_named(conflict.unless).in(asked);
}

/// The text of a plan: axes with their sizes ("" where open), and options by axis.
struct Written {
    std::vector<std::pair<std::string, std::string>> axes;
    std::map<std::string, std::vector<std::pair<std::string, std::string>>, std::less<>> options;
};

std::pair<std::string, std::string> assignment(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return {std::string{text}, ""};
    return {std::string{text.substr(0, equals)}, std::string{text.substr(equals + 1)}};
}

/// Whether it could be added: nothing else is there, or the same, or of an axis one size alone is given.
bool add(std::vector<std::pair<std::string, std::string>>& to, std::pair<std::string, std::string> item) {
    const auto known = std::ranges::find(to, item.first, [](const auto& each) { return each.first; });
    if (known == to.end()) {
        to.push_back(std::move(item));
        return true;
    }
    if (known->second.empty()) known->second = item.second;
    return item.second.empty() || known->second == item.second;
}

bool add(Written& to, std::string_view example) {
    for (const std::string_view text : split(example, ',')) {
        const std::vector<std::string_view> parts = split(text, ':');
        const std::pair<std::string, std::string> axis = assignment(parts.front());
        if (!add(to.axes, axis)) return false;
        for (std::size_t i = 1; i < parts.size(); ++i) {
            if (!add(to.options[axis.first], assignment(parts[i]))) return false;
        }
    }
    return true;
}

std::string text_of(const Written& written) {
    std::string text;
    for (const auto& [axis, size] : written.axes) {
        text += (text.empty() ? "" : ",") + axis + (size.empty() ? "" : "=" + size);
        const auto options = written.options.find(axis);
        if (options == written.options.end()) continue;
        for (const auto& [name, value] : options->second) text += fmt::format(":{}={}", name, value);
    }
    return text;
}

/// How two features go together, as one letter: . they do, - not yet, x never, = an option has one value.
char mark_of(const Feature& a, const Feature& b) {
    const std::optional<std::string> text = example_of(a, b);
    if (!text) return '=';
    Job job;
    if (a.ask != nullptr) a.ask(job);
    if (b.ask != nullptr) b.ask(job);
    const Plan plan = read_plan(*text);
    const Asked both{plan, job};
    if (!a.in(both) || !b.in(both)) return '=';  // of the job, too
    const std::optional<Clash> clash = clash_of(both);
    if (!clash) return '.';
    return clash->conflict->when == When::never ? 'x' : '-';
}

constexpr std::size_t width = 100;

/// Words behind `indent` blanks, cut at the width; the first line begins with `text`, which is as long.
std::string filled(std::string text, std::size_t indent, const std::vector<std::string>& words) {
    std::string lines;
    for (const std::string& word : words) {
        if (text.size() + 1 + word.size() > width) {
            lines += text + "\n";
            text = std::string(indent, ' ');
        }
        text += " " + word;
    }
    return lines + text + "\n";
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (const std::string_view word : split(text, ' ')) words.emplace_back(word);
    return words;
}

/// The reasons of one feature, those alike together: "kfac - tensor, dense=shared: factors are of whole layers".
std::string reasons_of(const Feature& feature, const Feature* before) {
    const bool shared = before != nullptr && before->conflicts.data() == feature.conflicts.data();
    if (shared && !feature.conflicts.empty()) return fmt::format("  {:<19}   as {}\n", feature.name, before->name);
    std::vector<std::pair<const Conflict*, std::string>> reasons;  // with the features of which they are
    for (const Conflict& conflict : feature.conflicts) {
        const std::string with =
            std::string{conflict.with} +
            (conflict.unless.empty() ? std::string{} : fmt::format(" without {}", conflict.unless));
        const auto alike = std::ranges::find_if(reasons, [&](const auto& known) {
            return known.first->when == conflict.when && known.first->why == conflict.why;
        });
        if (alike != reasons.end()) {
            alike->second += ", " + with;
        } else {
            reasons.emplace_back(&conflict, with);
        }
    }
    std::string text;
    for (const auto& [conflict, with] : reasons) {
        const char mark = conflict->when == When::never ? 'x' : '-';
        text += filled(fmt::format("  {:<19} {}", feature.name, mark), 23,
                       words_of(fmt::format("{}: {}", with, conflict->why)));
    }
    return text;
}

}  // namespace

const std::vector<const Feature*>& features() {
    static const std::vector<const Feature*> all = [] {
        std::vector<const Feature*> rows;
        for (const Vocabulary* vocabulary : vocabularies()) {
            for (const Feature& feature : vocabulary->features) rows.push_back(&feature);
        }
        return rows;
    }();
    return all;
}

std::string to_string(const Clash& clash) {
    const Conflict& conflict = *clash.conflict;
    return fmt::format("{} does not go with {}: {}{}; {}", clash.feature->name, conflict.with, conflict.why,
                       conflict.when == When::later ? " (not in this version)" : "",
                       conflict.instead.empty() ? "leave out one" : conflict.instead);
}

// What can never be is said first: nobody waits for the rest of it.
std::optional<Clash> clash_of(const Asked& asked) {
    std::optional<Clash> found;
    for (const Feature* feature : features()) {
        if (!feature->in(asked)) continue;
        for (const Conflict& conflict : feature->conflicts) {
            if (!holds(conflict, asked)) continue;
            if (conflict.when == When::never) return Clash{feature, &conflict};
            if (!found) found = Clash{feature, &conflict};
        }
    }
    return found;
}

void check_plan(const Plan& plan) {
    const Asked asked{plan, Job{}};
    for (const Feature* feature : features()) {
        if (!feature->in(asked)) continue;
        for (const Need& need : feature->needs) {
            if (feature_named(need.feature).in(asked)) continue;
            throw InputError(fmt::format("{} needs {}: {}", feature->name, need.written, need.why));
        }
    }
    if (const std::optional<Clash> clash = clash_of(asked)) throw InputError(to_string(*clash));
}

// Completion fills in micro-batches that nobody asked for: only features of jobs are looked at, which come second.
void check_job(const Plan& plan, const Job& job) {
    const Asked asked{plan, job};
    for (const Feature* feature : features()) {
        for (const Conflict& conflict : feature->conflicts) {
            const Feature& other = feature_named(conflict.with);
            if (other.ask == nullptr || !feature->in(asked) || !holds(conflict, asked)) continue;
            throw InputError(fmt::format("--plan '{}': {}", plan.text, to_string(Clash{feature, &conflict})));
        }
    }
}

std::optional<std::string> example_of(const Feature& a, const Feature& b) {
    Written both;
    if (!add(both, a.example) || !add(both, b.example)) return std::nullopt;
    return text_of(both);
}

std::string compatibility_text() {
    std::string text = "What goes together (. yes, - not in this version, x never, = one option has one value):\n";
    const std::vector<const Feature*>& all = features();
    for (const int ten : {10, 1}) {
        text += std::string(24, ' ');
        for (std::size_t column = 0; column < all.size(); ++column) {
            if (column % 5 == 0) text += ' ';
            const auto number = static_cast<int>(column) + 1;
            text += ten == 10 && number < 10 ? ' ' : static_cast<char>('0' + number / ten % 10);
        }
        text += "\n";
    }
    for (std::size_t row = 0; row < all.size(); ++row) {
        text += fmt::format("  {:<19} {:>2}", all[row]->name, row + 1);
        for (std::size_t column = 0; column < row; ++column) {
            if (column % 5 == 0) text += ' ';
            text += mark_of(*all[row], *all[column]);
        }
        text += "\n";
    }
    text += "Why not:\n";
    const Feature* before = nullptr;
    for (const Feature* feature : all) text += reasons_of(*feature, std::exchange(before, feature));
    return text;
}

}  // namespace rehearse::schedule
