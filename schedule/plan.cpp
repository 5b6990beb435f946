// SPDX-License-Identifier: Apache-2.0
// Reads "data=64:allreduce=hierarchical(ring,halving):bucket=25MB": axes between commas, an axis's options after
// colons.
#include "schedule/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/methods/servers.hpp"
#include "core/text.hpp"
#include "schedule/axes/axis.hpp"
#include "schedule/compatibility.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/plan_words.hpp"

namespace rehearse::schedule {

namespace {

// Promised by the plan language, not yet written.
constexpr std::array<std::string_view, 1> later_axes{"replica"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

/// "data[=N], tensor[=N]", or "allreduce=ring|..., bucket=SIZE, ..." for the options of an axis.
std::string what_works(std::string_view axis) {
    std::string text;
    for (const PlanWord& word : plan_words()) {
        if (word.axis != axis) continue;
        if (!text.empty()) text += ", ";
        text += axis.empty() ? fmt::format("{}[={}]", word.name, word.values)
                             : fmt::format("{}={}", word.name, word.values);
    }
    return text;
}

/// The row of an axis (`axis` empty) or of an option of `axis`; InputError says what there is instead.
const Word& find_word(std::string_view name, std::string_view axis) {
    std::vector<std::string_view> names;
    for (const Vocabulary* vocabulary : vocabularies()) {
        for (const Word& row : vocabulary->words) {
            if (row.word.axis != axis) continue;
            if (row.word.name == name) return row;
            names.push_back(row.word.name);
        }
    }
    const std::string kind = axis.empty() ? "axis" : fmt::format("option of {}", axis);
    if (name.empty()) throw InputError(fmt::format("an {} is missing; what works: {}", kind, what_works(axis)));
    if (axis.empty() && contains(later_axes, name)) {
        throw InputError(
            fmt::format("{} '{}' is not yet in this version; what works: {}", kind, name, what_works(axis)));
    }
    if (axis.empty()) names.insert(names.end(), later_axes.begin(), later_axes.end());
    throw InputError(
        fmt::format("unknown {} '{}'{}; what works: {}", kind, name, did_you_mean(name, names), what_works(axis)));
}

/// Parts between separators that are not inside parentheses: hierarchical(ring,halving) stays whole.
std::vector<std::string_view> split_outside(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth < 0) throw InputError("')' without '('");
        if (text[i] != separator || depth > 0) continue;
        parts.push_back(text.substr(begin, i - begin));
        begin = i + 1;
    }
    if (depth > 0) throw InputError("'(' without ')'");
    parts.push_back(text.substr(begin));
    return parts;
}

struct Assignment {
    std::string_view name, value;
    bool has_value = false;
};

Assignment read_assignment(std::string_view text) {
    const std::size_t at = text.find('=');
    if (at == std::string_view::npos) return {text, {}, false};
    return {text.substr(0, at), text.substr(at + 1), true};
}

void read_axis(std::string_view text, Plan& plan) {
    const int micro_batches = plan.micro_batches;
    const std::vector<std::string_view> parts = split_outside(text, ':');
    const Assignment axis = read_assignment(parts.front());
    const Word& row = find_word(axis.name, {});
    if (axis_index(plan.mesh, axis.name) >= 0 || (axis.name == "server" && plan.methods.get<Servers>().count != 0)) {
        throw InputError(fmt::format("axis '{}' is given twice", axis.name));
    }
    if (axis.has_value && axis.value.empty()) {
        throw InputError(fmt::format("'{}=' has no size; write {}={} or {} alone", axis.name, axis.name,
                                     row.word.values, axis.name));
    }
    row.read(plan, axis.value);
    std::set<std::string_view> seen;
    for (const std::string_view part : std::span{parts}.subspan(1)) {
        const Assignment option = read_assignment(part);
        const Word& option_row = find_word(option.name, axis.name);
        if (!seen.insert(option.name).second) throw InputError(fmt::format("'{}' is given twice", option.name));
        if (option.value.empty()) {
            throw InputError(
                fmt::format("'{}' has no value; write {}={}", option.name, option.name, option_row.word.values));
        }
        option_row.read(plan, option.value);
        if (option.name == "microbatches" && micro_batches != 0) {
            throw InputError("'microbatches' is given twice, with data and with pipe");
        }
    }
}

}  // namespace

void add_axis(Plan& plan, const char* name, std::string_view size) {
    const std::int64_t ranks = size.empty() ? 0 : parse_int(size, name);
    if (!size.empty() && ranks < 1) throw InputError(fmt::format("{}={}: an axis has at least one rank", name, size));
    plan.mesh.axes.push_back({name, ranks});
}
bool read_switch(std::string_view name, std::string_view value) {
    if (value != "on" && value != "off") throw InputError(fmt::format("{}={}: write {}=on or off", name, value, name));
    return value == "on";
}

void read_recompute(Plan& plan, std::string_view value) {
    constexpr std::array<std::string_view, 4> names{"off", "on", "blocks", "attention"};  // as in Recompute
    const auto found = std::ranges::find(names, value);
    if (found == names.end()) {
        throw InputError(fmt::format("recompute={}{}: write {}", value, did_you_mean(value, names), join(names)));
    }
    plan.recompute = static_cast<Recompute>(found - names.begin());
}

void read_attention(Plan& plan, std::string_view value) {
    if (value != "fused" && value != "kept") {
        throw InputError(fmt::format("attention={}: write attention=fused or kept", value));
    }
    plan.keep_attention = value == "kept";
}

int read_count(std::string_view name, std::string_view value, int most) {
    const std::int64_t count = parse_int(value, name);
    if (count < 1 || count > most) {
        throw InputError(fmt::format("{}={}: a whole number from 1 to {}", name, value, most));
    }
    return static_cast<int>(count);
}

std::vector<std::int64_t> read_terms(std::string_view name, std::string_view value) {
    std::vector<std::int64_t> terms;
    for (const std::string_view term : split(value, '+')) {
        const std::size_t times = term.find('x');
        const bool several = times != std::string_view::npos;
        const int count = several ? read_count(name, term.substr(0, times), most_micro_batches) : 1;
        const int each = read_count(name, several ? term.substr(times + 1) : term, most_micro_batches);
        terms.insert(terms.end(), static_cast<std::size_t>(count), each);
    }
    return terms;
}

double read_share(std::string_view name, std::string_view value, double most) {
    const double share = parse_number(value, name);
    if (!(share > 0 && share <= most)) {
        throw InputError(fmt::format("{}={}: a number above 0, at most {}", name, value, most));
    }
    return share;
}

void read_micro_batches(Plan& plan, std::string_view value) {
    plan.micro_batches = read_count("microbatches", value, most_micro_batches);
}
void read_micro_batch(Plan& plan, std::string_view value) {
    plan.micro_batch = read_count("microbatch", value, most_micro_batches);
}

bool read_choice(std::string_view name, std::string_view value, std::string_view first, std::string_view second) {
    if (value != first && value != second) {
        throw InputError(fmt::format("{}={}: write {}={} or {}", name, value, name, first, second));
    }
    return value == second;
}

std::span<const Vocabulary* const> vocabularies() {
    static const std::vector<const Vocabulary*> all = [] {
        std::vector<const Vocabulary*> rows;
        for (const PlanAxis* axis : axes()) rows.push_back(&axis->vocabulary);
        for (const Method* method : methods()) rows.push_back(&method->vocabulary);
        return rows;
    }();
    return all;
}

// Options of an axis begin with those of methods, which most plans have.
std::span<const PlanWord> plan_words() {
    static const std::vector<PlanWord> words = [] {
        std::vector<PlanWord> all, options;
        const auto add = [](const Vocabulary& from, bool axis, std::vector<PlanWord>& to) {
            for (const Word& row : from.words) {
                if (row.word.axis.empty() == axis) to.push_back(row.word);
            }
        };
        for (const Method* method : methods()) add(method->vocabulary, false, options);
        for (const PlanAxis* axis : axes()) add(axis->vocabulary, false, options);
        std::vector<PlanWord> of_axes;
        for (const Vocabulary* vocabulary : vocabularies()) add(*vocabulary, true, of_axes);
        for (const PlanWord& axis : of_axes) {
            all.push_back(axis);
            std::ranges::copy_if(options, std::back_inserter(all),
                                 [&](const PlanWord& option) { return option.axis == axis.name; });
        }
        return all;
    }();
    return words;
}

Plan read_plan(std::string_view text) {
    Plan plan;
    plan.text = text;
    if (text.empty()) throw InputError(fmt::format("the plan is empty; what works: {}", what_works({})));
    if (text.ends_with(".toml")) throw InputError("a plan in a file is not yet in this version; write it as text");
    if (std::ranges::any_of(text, [](unsigned char c) { return std::isspace(c) != 0; })) {
        throw InputError("a plan has no spaces; write it like data=8:bucket=25MB");
    }
    for (const std::string_view axis : split_outside(text, ',')) read_axis(axis, plan);
    if (plan.mesh.axes.empty()) throw InputError("server keeps weights for others: add data");
    return plan;
}

Plan parse_plan(std::string_view text) {
    try {
        Plan plan = read_plan(text);
        check_plan(plan);
        for (const Vocabulary* vocabulary : vocabularies()) {
            if (vocabulary->complete != nullptr) vocabulary->complete(plan);
        }
        return plan;
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': {}", text, error.what()));
    }
}

}  // namespace rehearse::schedule
