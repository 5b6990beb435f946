// SPDX-License-Identifier: Apache-2.0
#include "validate/replay_rules.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/text.hpp"
#include "match/pattern.hpp"
#include "models/reader/machine_reader.hpp"
#include "models/reader/toml.hpp"
#include "validate/published_files.hpp"

namespace rehearse::validate {

namespace {

constexpr std::array settings_table{
    ReplaySetting{"network", "a network by name (rehearse models)"},
    ReplaySetting{"machine", "a machine by name (rehearse machines)"},
    ReplaySetting{"plan", "how the run is split (rehearse predict --plan help)"},
    ReplaySetting{"precision", "a word of rehearse predict --precision"},
    ReplaySetting{"optimizer", "sgd, adam or lamb"},
    ReplaySetting{
        "update_passes",
        "how often the optimizer's kernels read or write a parameter, where it is not one kernel; 0: no update"},
    ReplaySetting{"fuse", "operators joined (rehearse predict --fuse)"},
    ReplaySetting{"loader", "how samples become batches (rehearse predict --loader); without it they are there"},
    ReplaySetting{"framework", "a profile by name (rehearse frameworks); other settings of the row go before its own"},
    ReplaySetting{"layout",
                  "nchw: channel by channel, as 16-bit convolutions do not want it; nhwc-turned: turned for a library "
                  "that wants it"},
    ReplaySetting{"software", "of models/software.toml: values cross memory as often as under it"},
    ReplaySetting{"batch", "samples a device, where the columns do not say"},
    ReplaySetting{"copies",
                  "copies of the network, each of `batch` samples (128, or 512/4); without it, as many as devices"},
    ReplaySetting{"global_batch", "samples of a step, where the columns do not say"},
    ReplaySetting{"dataset", "samples of an epoch"},
    ReplaySetting{"epochs", "epochs of a training"},
    ReplaySetting{"sample_flops", "operations of a sample as the source counted them, in units of 1e9"},
    ReplaySetting{"counted", "samples that a throughput counts for each one that was trained (2 or 100/70)"},
    ReplaySetting{"baseline", "devices of the run that a speed-up or an efficiency is relative to"},
    ReplaySetting{"against",
                  "the plan of that run, where it is another; on as many devices, unless baseline says how many"},
    ReplaySetting{"against_network", "the network of that run, where it is another"},
    ReplaySetting{"against_batch", "samples of a copy in that run, where they are others"},
    ReplaySetting{"data", "where samples come from; rows are anchored on rows that agree in it"},
    ReplaySetting{"measure", "what the figure is, where metric and unit do not say (throughput, step, epoch, ...)"},
    ReplaySetting{"stage", "of a staging time: the shared tier that samples are copied from, by `devices` nodes"},
    ReplaySetting{"input", "the tier that samples are read from; of a staging time the one inside the nodes"},
    ReplaySetting{"keep", "samples of `dataset` that a node keeps"},
    ReplaySetting{"sample", "a sample as stored: 57MB"},
    ReplaySetting{"reading", "how samples are read from `input` (rehearse predict --reading)"},
    ReplaySetting{"collective", "allreduce, alltoall, p2p: a collective by itself"},
    ReplaySetting{"bytes", "of a collective"},
    ReplaySetting{"pair_bytes", "of an all-to-all: what goes from each rank to each"},
    ReplaySetting{"algorithm",
                  "of a collective; several with '|' between them: the fastest of them, as a library chooses"},
    ReplaySetting{"window", "of a message: how many are under way, whose mean time counts"},
    ReplaySetting{"before", "of a collective: what passes before its first message goes"},
    ReplaySetting{"workload", "jobs on one machine (rehearse cluster --workload help), without their rate"},
    ReplaySetting{"hourly", "of a workload: jobs an hour, several with '+' between them; the best of them counts"},
    ReplaySetting{"devices", "of a workload, or where the column does not say"},
    ReplaySetting{"placement", "devices a node, where the job does not fill its nodes"},
    ReplaySetting{"error", "what the mapping adds to the band: relative, one standard deviation"},
    ReplaySetting{"cold", "why there is no cold prediction; the row may still be anchored"},
    ReplaySetting{"skip", "why there is no answer"},
};

// Of the columns in which a row says of itself what is simulated for it.
constexpr std::string_view own_setting = "run.";

using Columns = std::vector<std::pair<std::string, match::Pattern>>;

match::Pattern pattern(models::Reader& reader, std::string_view column) {
    const std::string text = reader.text(column);
    try {
        return match::Pattern{text, column, match::Case::ignored};
    } catch (const InputError& error) {
        reader.fail(column, error.what());
    }
}

/// The columns that `when` or `unless` of a rule looks at.
Columns columns_of(models::Reader& reader, const toml::table& written) {
    Columns columns;
    for (const auto& [key, node] : written) {
        const std::string column{key.str()};
        if (column == "id") reader.fail(column, "a rule must not look at the id: it would know the answer");
        columns.emplace_back(column, pattern(reader, column));
    }
    return columns;
}

}  // namespace

struct ReplayRules::Rule {
    Columns when, unless;
    ReplaySettings set;
    std::string origin;

    /// The groups of each match of `when`, by "column" and "column.1"; nothing when one does not match or one of
    /// `unless` does.
    std::optional<ReplaySettings> matched(const PublishedRow& row) const {
        ReplaySettings groups;
        for (const auto& [column, text] : unless) {
            if (text.groups_of(row.text(column))) return std::nullopt;
        }
        for (const auto& [column, text] : when) {
            const auto found = text.groups_of(row.text(column));
            if (!found) return std::nullopt;
            for (std::size_t i = 0; i < found->size(); ++i) groups[fmt::format("{}.{}", column, i + 1)] = (*found)[i];
        }
        for (const auto& [column, value] : row.columns) groups[column] = value;
        return groups;
    }

    std::string filled(const std::string& text, const ReplaySettings& groups) const {
        std::string result;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const std::size_t end = text[i] == '{' ? text.find('}', i) : std::string::npos;
            if (end == std::string::npos) {
                result += text[i];
                continue;
            }
            const std::string name = text.substr(i + 1, end - i - 1);
            const auto group = groups.find(name);
            if (group == groups.end()) {
                throw InputError(
                    fmt::format("{}: '{{{}}}' is no column and no group of one in '{}'", origin, name, text));
            }
            result += group->second;
            i = end;
        }
        return result;
    }
};

std::optional<std::string_view> setting_of(std::string_view column) {
    if (!column.starts_with(own_setting)) return std::nullopt;
    const auto found = std::ranges::find(settings_table, column.substr(own_setting.size()), &ReplaySetting::name);
    return found == settings_table.end() ? std::nullopt : std::optional{found->name};
}

std::span<const ReplaySetting> replay_settings() { return settings_table; }

void ReplayRules::add(std::string_view text, const std::string& origin) {
    const toml::table table = models::parse_toml(text, origin);
    models::Reader top(table, origin, "");
    std::size_t next = 0;
    for (models::Reader& reader : top.tables("rule", "rule")) {
        const toml::table& written = *(*table["rule"].as_array())[next++].as_table();
        auto rule = std::make_shared<Rule>();
        reader.text("why");
        rule->origin = fmt::format("{}:{}", origin, written.source().begin.line);
        auto when = reader.table("when", "rule: when");
        if (!when) reader.fail("'when' is missing: the columns that the rule looks at");
        rule->when = columns_of(*when, *written["when"].as_table());
        if (auto unless = reader.table("unless", "rule: unless")) {
            rule->unless = columns_of(*unless, *written["unless"].as_table());
        }
        for (const ReplaySetting& setting : settings_table) {
            std::string value = reader.text(setting.name, "");
            if (!value.empty()) rule->set[std::string{setting.name}] = std::move(value);
        }
        reader.done();
        rules_.push_back(std::move(rule));
    }
    top.done();
}

ReplaySettings ReplayRules::settings(const PublishedRow& row) const {
    ReplaySettings result;
    for (const auto& rule : rules_) {
        const std::optional<ReplaySettings> groups = rule->matched(row);
        if (!groups) continue;
        for (const auto& [name, value] : rule->set) result[name] = rule->filled(value, *groups);
    }
    for (const auto& [column, value] : row.columns) {
        if (!value.empty() && setting_of(column)) result[std::string{*setting_of(column)}] = value;
    }
    return result;
}

ReplayRules shipped_replay_rules() {
    ReplayRules rules;
    for (const PublishedFile& file : replay_rule_files()) {
        rules.add(file.text, fmt::format("calibrate/published/rules/{}.toml", file.name));
    }
    return rules;
}

}  // namespace rehearse::validate
