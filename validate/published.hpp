// SPDX-License-Identifier: Apache-2.0
// Published figures of training runs and collectives: tables in, rows out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::validate {

/// One published figure. `columns` holds every column of its table as it was written, `id`, `system` and the rest too.
struct PublishedRow {
    std::map<std::string, std::string, std::less<>> columns;
    std::int64_t devices = 0;  // 0: not said
    double value = 0;          // in `unit`
    std::string origin;        // "azure.csv: row '...'", for messages

    const std::string& text(std::string_view column) const;
    std::optional<double> number(std::string_view column) const;  // nothing when empty; InputError when no number
};

/// InputError with file and line when a column is missing, a figure is no positive number, or its unit does not count
/// what its metric does. Columns: id, system,
/// machine, device, n_devices, model, precision, strategy, batch_per_device, global_batch, metric, value, unit, extra,
/// provenance; others are kept. Columns "run.network", "run.machine", "run.plan", ... are settings of the row itself
/// (validate/replay_rules.hpp) and need a "run.why"; InputError for one that is no setting.
std::vector<PublishedRow> read_published(std::string_view text, const std::string& origin);

/// Rows in whose id, system, machine, device, model, precision, strategy or metric the regular expression matches; all
/// of an empty one. InputError with `what` in front where it is none.
std::function<bool(const PublishedRow&)> rows_matching(std::string_view expression, std::string_view what);

/// Those of calibrate/published/.
std::vector<PublishedRow> shipped_published();

}  // namespace rehearse::validate
