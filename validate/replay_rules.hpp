// SPDX-License-Identifier: Apache-2.0
// From what a published row says to what is simulated for it: rules on its columns, in TOML
// (calibrate/published/rules/*.toml), never its id.
//
//   [[rule]]
//   why = "Megatron-LM names its mesh in the strategy"
//   when = { system = "Megatron.*", strategy = 'TP(\d+) x PP(\d+).*' }   # regular expressions of whole columns
//   plan = "pipe={strategy.2},data,tensor={strategy.1}"                  # {column} its text, {column.1} a group of it
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/published.hpp"

namespace rehearse::validate {

/// A setting's name and its value, as text.
using ReplaySettings = std::map<std::string, std::string, std::less<>>;

/// What a rule may set, with its meaning: network, machine, plan, ...
struct ReplaySetting {
    std::string_view name, meaning;
};
std::span<const ReplaySetting> replay_settings();
/// Of a column "run.plan", "plan": a row may say of itself what is simulated for it, and then no rule does. Nothing for
/// a column that is no setting.
std::optional<std::string_view> setting_of(std::string_view column);

/// Rules apply in their order: where several match a row, each setting is that of the last one that gives it, and a
/// row's own go before all.
class ReplayRules {
public:
    /// InputError with file and line for an unknown key, column or setting, or a pattern that is not one.
    void add(std::string_view text, const std::string& origin);
    ReplaySettings settings(const PublishedRow& row) const;
    std::size_t size() const { return rules_.size(); }

private:
    struct Rule;
    std::vector<std::shared_ptr<const Rule>> rules_;
};

/// Those of calibrate/published/rules/, file after file in the order of their names.
ReplayRules shipped_replay_rules();

}  // namespace rehearse::validate
