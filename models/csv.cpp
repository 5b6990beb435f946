// SPDX-License-Identifier: Apache-2.0
#include "models/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::models {

namespace {

// `field` without blanks at its ends: "problem, time_us" has the columns problem and time_us.
std::string_view trimmed(std::string_view field) {
    const std::size_t first = std::min(field.find_first_not_of(' '), field.size());
    return field.substr(first, field.find_last_not_of(' ') + 1 - first);
}

// Quotes open and close anywhere; two of them inside quotes are one. `closed` is false when the line ends within.
std::vector<std::string> fields_of(std::string_view line, bool& closed) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
            fields.back() += line[++i];
        } else if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            fields.emplace_back();
        } else {
            const std::size_t end = std::min(line.find_first_of("\",", i + 1), line.size());
            const std::string_view piece = line.substr(i, end - i);
            fields.back().append(quoted ? piece : trimmed(piece));
            i = end - 1;
        }
    }
    closed = !quoted;
    return fields;
}

}  // namespace

Csv::Csv(std::string_view text, std::string origin) : origin_(std::move(origin)) {
    int number = 0;
    for (std::string_view line : split(text, '\n')) {
        ++number;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.starts_with('#')) continue;
        bool closed = true;
        std::vector<std::string> fields = fields_of(line, closed);
        if (!closed) throw InputError(fmt::format("{}:{}: a quote is not closed in this line", origin_, number));
        if (header_.empty()) {
            header_ = std::move(fields);
            header_line_ = number;
            const std::size_t other = header_.front().find_first_of(";\t");
            if (header_.size() == 1 && other != std::string::npos)
                throw InputError(fmt::format("{}:{}: fields are separated by {} here, by commas is right", origin_,
                                             number, header_.front()[other] == ';' ? "';'" : "tabs"));
            continue;
        }
        if (fields.size() != header_.size()) {
            throw InputError(fmt::format("{}:{}: {} fields, the header in line {} has {}", origin_, number,
                                         fields.size(), header_line_, header_.size()));
        }
        rows_.push_back({number, std::move(fields)});
    }
    if (header_.empty())
        throw InputError(fmt::format("{}: it is empty: a header line and rows were expected", origin_));
}

bool Csv::has(std::string_view column) const { return std::ranges::find(header_, column) != header_.end(); }

std::size_t Csv::column(std::string_view name) const {
    const auto found = std::ranges::find(header_, name);
    if (found != header_.end()) return static_cast<std::size_t>(found - header_.begin());
    const std::vector<std::string_view> known(header_.begin(), header_.end());
    throw InputError(fmt::format("{}:{}: no column '{}'{}; there are {}", origin_, header_line_, name,
                                 did_you_mean(name, known), join(known)));
}

const std::string& Csv::text(std::size_t row, std::string_view name) const { return rows_[row].fields[column(name)]; }

std::int64_t Csv::whole(std::size_t row, std::string_view name, std::int64_t least) const {
    try {
        const std::int64_t value = parse_int(text(row, name), name);
        // Sizes multiply to counts of elements, which must stay exact in a double.
        if (value >= least && value <= 1'000'000'000) return value;
    } catch (const InputError&) {  // told below, with the line
    }
    fail(row, fmt::format("{} is '{}', a whole number from {} to 1e9 was expected", name, text(row, name), least));
}

double Csv::positive(std::size_t row, std::string_view name) const {
    try {
        const double value = parse_number(text(row, name), name);
        if (value > 0 && std::isfinite(value)) return value;
    } catch (const InputError&) {  // told below, with the line
    }
    fail(row, fmt::format("{} is '{}', a number above zero was expected", name, text(row, name)));
}

void Csv::only(std::span<const std::string_view> columns) const {
    for (const std::string& name : header_) {
        if (std::ranges::find(columns, name) != columns.end()) continue;
        const std::vector<std::string_view> known(columns.begin(), columns.end());
        throw InputError(fmt::format("{}:{}: unknown column '{}'{}; there are {}", origin_, header_line_, name,
                                     did_you_mean(name, known), join(known)));
    }
}

double Csv::not_negative(std::size_t row, std::string_view name) const {
    try {
        const double value = parse_number(text(row, name), name);
        if (value >= 0 && std::isfinite(value)) return value;
    } catch (const InputError&) {  // told below, with the line
    }
    fail(row, fmt::format("{} is '{}', a number of 0 or above was expected", name, text(row, name)));
}

void Csv::fail(std::size_t row, std::string_view what) const {
    throw InputError(fmt::format("{}:{}: {}", origin_, rows_[row].line, what));
}

}  // namespace rehearse::models
