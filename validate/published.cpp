// SPDX-License-Identifier: Apache-2.0
#include "validate/published.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "match/pattern.hpp"
#include "models/csv.hpp"
#include "validate/measure.hpp"
#include "validate/published_files.hpp"
#include "validate/replay_rules.hpp"

namespace rehearse::validate {

namespace {

constexpr std::array needed{"id",    "system",           "machine",      "device", "n_devices",
                            "model", "precision",        "strategy",     "metric", "value",
                            "unit",  "batch_per_device", "global_batch", "extra",  "provenance"};

// What a row says of itself is a setting that rules have, too, and has a reason.
void check_own(const PublishedRow& row) {
    bool any = false;
    for (const auto& [column, value] : row.columns) {
        if (!column.starts_with("run.") || column == "run.why") continue;
        if (!setting_of(column)) {
            std::vector<std::string_view> known;
            for (const ReplaySetting& setting : replay_settings()) known.push_back(setting.name);
            throw InputError(fmt::format("{}: column '{}': no such setting{}; there are {}", row.origin, column,
                                         did_you_mean(column.substr(4), known), join(known)));
        }
        any = any || !value.empty();
    }
    if (any && row.text("run.why").empty()) {
        throw InputError(
            fmt::format("{}: it has settings of its own (run.*), but run.why does not say why", row.origin));
    }
}

}  // namespace

const std::string& PublishedRow::text(std::string_view column) const {
    static const std::string none;
    const auto found = columns.find(column);
    return found == columns.end() ? none : found->second;
}

std::optional<double> PublishedRow::number(std::string_view column) const {
    const std::string& written = text(column);
    if (written.empty()) return std::nullopt;
    try {
        return parse_number(written, column);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", origin, error.what()));
    }
}

std::vector<PublishedRow> read_published(std::string_view text, const std::string& origin) {
    const models::Csv csv(text, origin);
    for (const char* column : needed) csv.column(column);
    std::vector<PublishedRow> rows;
    for (std::size_t i = 0; i < csv.size(); ++i) {
        PublishedRow row;
        for (const std::string& column : csv.header()) row.columns[column] = csv.text(i, column);
        row.origin = fmt::format("{}: row '{}'", origin, row.text("id"));
        if (!row.text("n_devices").empty()) row.devices = csv.whole(i, "n_devices", 1);
        row.value = csv.positive(i, "value");
        check_own(row);
        const std::optional<Measure> measure = measure_of(row, {});
        if (measure && row.text("run.measure").empty()) {
            if (const std::string wrong = wrong_unit(row, *measure); !wrong.empty()) csv.fail(i, wrong);
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::function<bool(const PublishedRow&)> rows_matching(std::string_view expression, std::string_view what) {
    if (expression.empty()) return [](const PublishedRow&) { return true; };
    return [pattern = match::Pattern{expression, what}](const PublishedRow& row) {
        std::string text;
        for (const char* column : {"id", "system", "machine", "device", "model", "precision", "strategy", "metric"}) {
            text += row.text(column) + " ";
        }
        return pattern.is_in(text);
    };
}

std::vector<PublishedRow> shipped_published() {
    std::vector<PublishedRow> all;
    for (const PublishedFile& file : published_files()) {
        for (PublishedRow& row : read_published(file.text, fmt::format("calibrate/published/{}.csv", file.name))) {
            all.push_back(std::move(row));
        }
    }
    return all;
}

}  // namespace rehearse::validate
