// SPDX-License-Identifier: Apache-2.0
// Reads "data=64:allreduce=hierarchical(ring,halving):bucket=25MB": axes between commas, an axis's options after
// colons.
#include "schedule/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::schedule {

namespace {

Bytes read_positive_size(std::string_view value) {
    const auto bytes = parse_quantity<Bytes>(value);
    if (bytes <= Bytes{0}) throw InputError(fmt::format("{} must be more than 0; 1B makes one bucket a layer", value));
    return bytes;
}

void read_data(Plan& plan, std::string_view size) {
    const std::int64_t ranks = size.empty() ? 0 : parse_int(size, "data");
    if (!size.empty() && ranks < 1) throw InputError(fmt::format("data={}: an axis has at least one rank", size));
    plan.mesh.axes.push_back({"data", ranks});
}

void read_all_reduce(Plan& plan, std::string_view value) { plan.all_reduce = parse_algorithm(value); }
void read_bucket(Plan& plan, std::string_view value) { plan.bucket = read_positive_size(value); }
void read_first_bucket(Plan& plan, std::string_view value) { plan.first_bucket = read_positive_size(value); }

void read_overlap(Plan& plan, std::string_view value) {
    if (value != "on" && value != "off") throw InputError(fmt::format("overlap={}: write overlap=on or off", value));
    plan.overlap = value == "on";
}

struct Word {
    PlanWord word;
    void (*read)(Plan& plan, std::string_view value);
};

constexpr std::array table{
    Word{{"data", "N", "N copies of the network, each on its share of the batch; without =N: as many as devices", {}},
         read_data},
    Word{{"allreduce", "ring|doubling|halving|tree|hierarchical(INSIDE,ACROSS)|doubletree|torus[(RxC)]",
          "how gradients are summed; default hierarchical(ring,halving) across full nodes, else ring", "data"},
         read_all_reduce},
    Word{{"bucket", "SIZE", "gradients are sent in buckets of at least SIZE; default 25MB", "data"}, read_bucket},
    Word{{"first", "SIZE", "the first bucket is sent at SIZE already, when that is less; default 1MB", "data"},
         read_first_bucket},
    Word{{"overlap", "on|off", "off: nothing is sent before the whole backward pass has ended; default on", "data"},
         read_overlap},
};

constexpr std::array words = [] {
    std::array<PlanWord, table.size()> result{};
    for (std::size_t i = 0; i < table.size(); ++i) result[i] = table[i].word;
    return result;
}();

// Promised by the plan language, not yet written.
constexpr std::array<std::string_view, 7> later_axes{"tensor", "pipe",    "spatial", "server",
                                                     "groups", "replica", "expert"};
constexpr std::array<std::string_view, 2> later_options{"lag", "zero"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

/// "data[=N]", or "allreduce=ring|..., bucket=SIZE, ..." for the options of an axis.
std::string what_works(std::string_view axis) {
    std::string text;
    for (const PlanWord& word : words) {
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
    for (const Word& row : table) {
        if (row.word.axis != axis) continue;
        if (row.word.name == name) return row;
        names.push_back(row.word.name);
    }
    const std::string kind = axis.empty() ? "axis" : fmt::format("option of {}", axis);
    if (name.empty()) throw InputError(fmt::format("an {} is missing; what works: {}", kind, what_works(axis)));
    const std::span<const std::string_view> later =
        axis.empty() ? std::span<const std::string_view>{later_axes} : std::span<const std::string_view>{later_options};
    if (contains(later, name)) {
        throw InputError(
            fmt::format("{} '{}' is not yet in this version; what works: {}", kind, name, what_works(axis)));
    }
    names.insert(names.end(), later.begin(), later.end());
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
    const std::vector<std::string_view> parts = split_outside(text, ':');
    const Assignment axis = read_assignment(parts.front());
    const Word& row = find_word(axis.name, {});
    if (axis_index(plan.mesh, axis.name) >= 0) throw InputError(fmt::format("axis '{}' is given twice", axis.name));
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
    }
}

}  // namespace

std::span<const PlanWord> plan_words() { return words; }

Plan parse_plan(std::string_view text) {
    Plan plan;
    plan.text = text;
    try {
        if (text.empty()) throw InputError(fmt::format("the plan is empty; what works: {}", what_works({})));
        if (text.ends_with(".toml")) throw InputError("a plan in a file is not yet in this version; write it as text");
        if (std::ranges::any_of(text, [](unsigned char c) { return std::isspace(c) != 0; })) {
            throw InputError("a plan has no spaces; write it like data=8:bucket=25MB");
        }
        for (const std::string_view axis : split_outside(text, ',')) read_axis(axis, plan);
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': {}", text, error.what()));
    }
    return plan;
}

}  // namespace rehearse::schedule
