// SPDX-License-Identifier: Apache-2.0
// What a framework's file says, read into values.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "predict/framework.hpp"

namespace rehearse::predict {

namespace {

// Returns what a setting says, 0 where there is none. InputError for less than 0.
double count_of(const models::FrameworkProfile& profile, std::string_view setting) {
    const std::string value = profile.value(setting);
    if (value.empty()) return 0;
    const double read = parse_number(value, setting);
    if (!(read >= 0)) throw InputError(fmt::format("framework {}: {} '{}' is below 0", profile.name, setting, value));
    return read;
}

}  // namespace

bool is_layout(std::string_view layout) { return layout.empty() || layout == "nchw" || layout == "nhwc-turned"; }

void set_layout(Framework& framework, std::string_view layout) {
    framework.channels_first = layout == "nchw";
    framework.channels_last_turned = layout == "nhwc-turned";
}

std::optional<Bytes> workspace_of(const models::FrameworkProfile& profile) {
    const std::string value = profile.value("workspace");
    if (value.empty()) return std::nullopt;
    const auto read = parse_quantity<Bytes>(value);
    if (read < Bytes{}) throw InputError(fmt::format("framework {}: workspace '{}' is below 0", profile.name, value));
    return read;
}

HostIssue issue_of(const models::FrameworkProfile& profile) {
    const std::string spread = profile.value("issue_error");
    const double error = spread.empty() ? 0 : parse_number(spread, "issue_error");
    if (!(error >= 0)) throw InputError(fmt::format("framework {}: issue_error '{}' is below 0", profile.name, spread));
    const auto issue = [&](std::string_view name) {
        const auto setting = std::ranges::find(profile.settings, name, &models::FrameworkSetting::name);
        if (setting == profile.settings.end()) return Issue{};
        const auto time = parse_quantity<Seconds>(setting->value);
        if (time < Seconds{})
            throw InputError(fmt::format("framework {}: {} '{}' is below 0", profile.name, name, setting->value));
        if (spread.empty())
            throw InputError(fmt::format(
                "framework {}: {} has no issue_error beside it: how far hosts differ, like 0.2", profile.name, name));
        return Issue{time, error, setting->source};
    };
    return {issue("issue"), issue("issue_convolution"), issue("issue_product"), issue("issue_normalization")};
}

Statistics statistics_of(const models::FrameworkProfile& profile) {
    return {count_of(profile, "statistics"), count_of(profile, "statistics_shared")};
}

Copies copies_of(const models::FrameworkProfile& profile) {
    return {count_of(profile, "bucket_copies"), count_of(profile, "gather_copies"),
            count_of(profile, "scatter_copies")};
}

MemoryHabits memory_habits_of(const models::FrameworkProfile& profile) {
    MemoryHabits habits;
    const auto of = [&](std::string_view setting, std::string_view allowed) {
        const std::string value = profile.value(setting);
        if (!value.empty() && value != allowed)
            throw InputError(fmt::format("framework {}: {} '{}' is not {}", profile.name, setting, value, allowed));
        return !value.empty();
    };
    if (const std::string loss = profile.value("loss"); !loss.empty()) {
        if (loss != "operators" && loss != "fused")
            throw InputError(fmt::format("framework {}: loss '{}' is not operators or fused", profile.name, loss));
        habits.loss = loss == "fused" ? MemoryHabits::Loss::fused : MemoryHabits::Loss::operators;
    }
    habits.bucket_copies = of("bucket_memory", "copies");
    if (const std::string index = profile.value("pool_index"); !index.empty()) {
        const auto read = parse_quantity<Bytes>(index);
        if (read < Bytes{})
            throw InputError(fmt::format("framework {}: pool_index '{}' is below 0", profile.name, index));
        habits.pool_index = read.value;
    }
    return habits;
}

Framework framework_of(const models::FrameworkProfile& profile, Optimizer optimizer) {
    Framework framework;
    const std::string layout = profile.value("layout"), software = profile.value("software");
    const std::string passes = profile.value(fmt::format("{}_passes", to_string(optimizer)));
    if (!is_layout(layout))
        throw InputError(fmt::format("framework {}: layout '{}' is not nchw or nhwc-turned", profile.name, layout));
    set_layout(framework, layout);
    const std::string transforms = profile.value("transforms");
    if (!transforms.empty() && transforms != "off")
        throw InputError(fmt::format("framework {}: transforms '{}' is not off", profile.name, transforms));
    framework.transforms = transforms.empty();
    framework.workspace = workspace_of(profile);
    const std::string gradients = profile.value("strided_gradients");
    if (!gradients.empty() && gradients != "dense")
        throw InputError(fmt::format("framework {}: strided_gradients '{}' is not dense", profile.name, gradients));
    framework.dense_gradients = !gradients.empty();
    const std::string dilations = profile.value("dilations");
    if (!dilations.empty() && dilations != "space-to-batch")
        throw InputError(fmt::format("framework {}: dilations '{}' is not space-to-batch", profile.name, dilations));
    framework.dilated_in_batches = !dilations.empty();
    if (!passes.empty()) {
        framework.update_passes = parse_number(passes, "passes");
        if (!(*framework.update_passes >= 0))
            throw InputError(
                fmt::format("framework {}: {}_passes '{}' is below 0", profile.name, to_string(optimizer), passes));
    }
    if (const std::string rate = profile.value("update_rate"); !rate.empty() && !passes.empty()) {
        framework.update_rate = parse_quantity<Bandwidth>(rate);
        if (framework.update_rate <= Bandwidth{})
            throw InputError(fmt::format("framework {}: update_rate '{}' is not above 0", profile.name, rate));
    }
    framework.copies = copies_of(profile);
    const std::string update = profile.value("update");
    if (!update.empty() && update != "after-sums")
        throw InputError(fmt::format("framework {}: update '{}' is not after-sums", profile.name, update));
    framework.update_after_sums = !update.empty();
    const std::string transport = profile.value("transport");
    if (!transport.empty() && transport != "sockets")
        throw InputError(fmt::format("framework {}: transport '{}' is not sockets", profile.name, transport));
    framework.sockets = !transport.empty();
    framework.issue = issue_of(profile);
    framework.statistics = statistics_of(profile);
    const std::string memory = profile.value("memory");
    if (!memory.empty() && memory != "megatron-core")
        throw InputError(fmt::format("framework {}: memory '{}' is not megatron-core", profile.name, memory));
    framework.megatron_memory = !memory.empty();
    framework.memory = memory_habits_of(profile);
    if (!software.empty()) {
        framework.passes = models::load_software(software);
        framework.memory.keeps_probabilities = framework.passes->score_passes.value > 0;
    }
    return framework;
}

}  // namespace rehearse::predict
