// SPDX-License-Identifier: Apache-2.0
// What frameworks do beside the kernels that they call, as data: frameworks/*.toml, a source for every setting.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::models {

struct FrameworkSetting {
    std::string name, value, source;
};

struct FrameworkProfile {
    std::string name, summary;
    std::vector<FrameworkSetting> settings;
    std::string value(std::string_view setting) const;  // empty: the framework says nothing of it
};

/// What a profile may set, with its meaning.
struct FrameworkWord {
    std::string_view name, meaning;
    bool of_plan = false;  // an option of the plan's data axis
};
std::span<const FrameworkWord> framework_words();

/// The profile that nothing is said by: the default.
inline constexpr std::string_view default_framework = "rehearse";

/// Those that are built in, by name.
std::vector<FrameworkProfile> frameworks();
/// By name or file. InputError with file and line for an unknown setting or one without value or source.
FrameworkProfile load_framework(const std::string& name_or_file);
FrameworkProfile parse_framework(std::string_view toml, const std::string& name, const std::string& origin);

/// The plan with the framework's options on its data axis where it does not say otherwise.
std::string plan_with(const std::string& plan, const FrameworkProfile& profile);

}  // namespace rehearse::models
