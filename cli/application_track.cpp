// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/application.hpp"
#include "core/error.hpp"
#include "models/models.hpp"
#include "validate/replay_rows.hpp"
#include "validate/row_errors.hpp"

namespace rehearse::cli {

namespace {

using validate::Answer;
using validate::ReplayedRow;
using validate::RowErrors;

// Devices of machines by name, each machine read once.
class Devices {
public:
    const std::string& of(const std::string& machine) {
        const auto [found, is_new] = known_.try_emplace(machine);
        if (is_new) {
            try {
                found->second = class_of(models::load_machine(machine), 0).like;
            } catch (const InputError&) {  // a machine that a rule names but nobody has
                found->second.clear();
            }
        }
        return found->second;
    }

private:
    std::map<std::string, std::string> known_;
};

const Answer* answer_of(const ReplayedRow& row, bool anchored) {
    if (row.from_memory) return nullptr;
    const auto& answer = anchored ? row.anchored : row.cold;
    return answer ? &*answer : nullptr;
}

report::TrackRow summary_of(const RowErrors& errors, std::string system, std::string machine) {
    const validate::ErrorSummary summary = errors.summary();
    return {std::move(system), std::move(machine), static_cast<std::int64_t>(summary.rows),
            summary.median,    summary.p90,        summary.in_band};
}

}  // namespace

std::optional<report::TrackRecord> track_record(const Machine& machine, bool anchored, const Progress& progress) {
    const DeviceClass& device = class_of(machine, 0);
    if (device.like.empty()) return std::nullopt;
    Devices devices;
    const validate::ReplayRules rules = validate::shipped_replay_rules();
    const auto wanted = [&](const validate::PublishedRow& row) {
        const validate::ReplaySettings settings = rules.settings(row);
        if (settings.contains("collective")) return false;  // messages by themselves train nothing
        const auto found = settings.find("machine");
        return found != settings.end() && devices.of(found->second) == device.like;
    };
    report::TrackRecord track{.of = fmt::format("machines with the same device ({})", device.like),
                              .anchored = anchored,
                              .all = {},
                              .systems = {},
                              .used = {}};
    RowErrors all;
    std::map<std::pair<std::string, std::string>, RowErrors> systems;
    const auto predictions = anchored ? validate::Predictions::anchored : validate::Predictions::cold;
    for (const ReplayedRow& row : validate::replay_rows(validate::shipped_published(), rules, wanted, progress,
                                                        validate::Pilots::one, predictions)) {
        const Answer* answer = answer_of(row, anchored);
        if (answer == nullptr) continue;
        const prices::Interval<double> band{answer->low, answer->high};
        all.add(answer->predicted, row.row.value, band);
        systems[{row.row.text("system"), row.row.text("machine")}].add(answer->predicted, row.row.value, band);
        track.used.push_back({row.row.text("id"), row.row.text("model"), row.row.text("unit"),
                              row.row.text("provenance"), row.row.devices, row.row.value, answer->predicted,
                              validate::error_of(*answer, row.row.value)});
    }
    if (all.empty()) return std::nullopt;
    track.all = summary_of(all, "all", "all");
    for (const auto& [name, errors] : systems) track.systems.push_back(summary_of(errors, name.first, name.second));
    return track;
}

}  // namespace rehearse::cli
