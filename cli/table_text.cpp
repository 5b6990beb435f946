// SPDX-License-Identifier: Apache-2.0
#include "cli/table_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "cli/help.hpp"
#include "cli/json.hpp"
#include "core/quoting.hpp"
#include "core/text.hpp"
#include "core/units.hpp"

namespace rehearse::cli {

namespace {

constexpr std::size_t gap = 2, least_text = 30;  // between columns; of a text that is wrapped

std::string shown(const Json& value, Show show) {
    if (value.is_null()) return "-";
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_string()) return printable(value.get<std::string>());
    const double number = value.get<double>();
    switch (show) {
        case Show::seconds:
            return time_text(number);
        case Show::bytes:
            return to_string(Bytes{number});
        case Show::flops:
            return to_string(Flops{number});
        case Show::flop_rate:
            return to_string(FlopRate{number});
        case Show::percent:
            return fmt::format("{:.1f} %", 100 * number);
        case Show::number:
            return number_text(number);
        case Show::count:
            return count_text(number);
        case Show::text:
            break;
    }
    return value.dump();
}

// Characters on screen: UTF-8 continuation bytes take no room.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

struct Cells {
    std::string title;
    bool is_text = true, begins_part = false;
    std::vector<std::string> rows;

    std::size_t widest() const {
        std::size_t most = width(title);
        for (const std::string& row : rows) most = std::max(most, width(row));
        return most;
    }
};
using Columns = std::vector<Cells>;

std::size_t width_of(const Columns& columns) {
    std::size_t sum = columns.empty() ? 0 : gap * (columns.size() - 1);
    for (const Cells& column : columns) sum += column.widest();
    return sum;
}

// Sources that stand in several rows become "[1]", and are listed below.
std::string take_sources_out(Columns& columns, const Table& table) {
    std::string list;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        std::vector<std::string>& rows = columns[c].rows;
        std::vector<std::string> sources;
        for (const std::string& row : rows) {
            if (std::ranges::find(sources, row) == sources.end()) sources.push_back(row);
        }
        if (table.columns[c].key != "source" || sources.size() == rows.size()) continue;
        for (std::string& row : rows) {
            const auto at = std::ranges::find(sources, row) - sources.begin();
            row = row.empty() || row == "-" ? row : fmt::format("[{}]", at + 1);
        }
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const std::string number = fmt::format("[{}] ", i + 1);
            if (!sources[i].empty() && sources[i] != "-")
                list += number + wrapped(sources[i], number.size(), most_columns()) + '\n';
        }
    }
    return list;
}

// The widest text as narrow as it must be, if that leaves it readable.
bool narrow(Columns& columns) {
    const std::size_t all = width_of(columns);
    Cells* widest = nullptr;
    for (Cells& column : columns) {
        if (column.is_text && (widest == nullptr || column.widest() > widest->widest())) widest = &column;
    }
    const std::size_t others = widest == nullptr ? all : all - widest->widest();
    if (widest == nullptr || others + least_text > most_columns()) return false;
    for (std::string& row : widest->rows) row = wrapped(row, 0, most_columns() - others);
    return true;
}

// How many of the first columns tell the rows apart; at most three.
std::size_t keys_of(const Columns& columns) {
    const std::size_t most = std::min<std::size_t>(3, columns.size() - 1);
    for (std::size_t n = 1; n <= most; ++n) {
        std::set<std::string> seen;
        for (std::size_t r = 0; r < columns[0].rows.size(); ++r) {
            std::string key;
            for (std::size_t c = 0; c < n; ++c) key += columns[c].rows[r] + '\n';
            seen.insert(key);
        }
        if (seen.size() == columns[0].rows.size()) return n;
    }
    return 1;
}

// Parts that fit, each with the keys in front. A part ends where the next column has no room or begins a part.
std::vector<Columns> parts_of(Columns columns) {
    if (width_of(columns) <= most_columns() || narrow(columns)) return {std::move(columns)};
    const std::size_t keys = keys_of(columns);
    const Columns heads(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(keys));
    std::vector<Columns> parts{heads};
    for (std::size_t c = keys; c < columns.size(); ++c) {
        Columns& part = parts.back();
        part.push_back(columns[c]);
        const bool is_full = width_of(part) > most_columns() || columns[c].begins_part;
        if (part.size() == keys + 1 || !is_full) continue;
        part.pop_back();
        parts.push_back(heads);
        parts.back().push_back(columns[c]);
    }
    for (Columns& part : parts) {
        if (width_of(part) > most_columns()) narrow(part);
    }
    return parts;
}

void print_row(std::string& out, const Columns& columns, const std::vector<std::size_t>& widths,
               const std::vector<std::string>& cells) {
    std::vector<std::vector<std::string_view>> lines;
    std::size_t height = 1;
    for (const std::string& cell : cells) {
        lines.push_back(split(cell, '\n'));
        height = std::max(height, lines.back().size());
    }
    for (std::size_t i = 0; i < height; ++i) {
        std::string text;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const std::string cell{i < lines[c].size() ? lines[c][i] : std::string_view{}};
            const std::string room(widths[c] - std::min(widths[c], width(cell)), ' ');
            text += (c > 0 ? std::string(gap, ' ') : "") + (columns[c].is_text ? cell + room : room + cell);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + '\n';
    }
}

void print_part(std::string& out, const Columns& columns) {
    std::vector<std::size_t> widths;
    std::vector<std::string> line;
    for (const Cells& column : columns) {
        std::size_t most = width(column.title);
        for (const std::string& row : column.rows) {
            for (const std::string_view each : split(row, '\n')) most = std::max(most, width(each));
        }
        widths.push_back(most);
        line.push_back(column.title);
    }
    print_row(out, columns, widths, line);
    for (std::size_t r = 0; r < columns.front().rows.size(); ++r) {
        line.clear();
        for (const Cells& column : columns) line.push_back(column.rows[r]);
        print_row(out, columns, widths, line);
    }
}

// "1055000" as 1,055,000; what stands behind a point or in front of a sign stays.
std::string apart(std::string digits) {
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    for (std::size_t at = std::min(digits.find('.'), digits.size()); at > first + 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

}  // namespace

std::string number_text(double value) {
    const double size = std::abs(value);
    if (size < 1e-4 || size >= 1e15) return fmt::format("{:.4g}", value);
    const int digits = std::max(0, 3 - static_cast<int>(std::floor(std::log10(size))));
    const double unit = std::pow(10.0, std::floor(std::log10(size)) - 3);
    std::string text = fmt::format("{:.{}f}", size >= 1e4 ? std::round(value / unit) * unit : value, digits);
    if (text.find('.') != std::string::npos) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.ends_with('.')) text.pop_back();
    }
    return apart(std::move(text));
}

std::string count_text(double value) { return apart(fmt::format("{:.0f}", value)); }

std::string time_text(double seconds) {
    if (seconds < 120) return to_string(Seconds{seconds});
    if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
    if (seconds < 2 * 86400) return fmt::format("{:.1f} h", seconds / 3600);
    return number_text(std::round(seconds / 8640) / 10) + " days";
}

std::string table_text(const Json& rows, const Table& table) {
    Columns columns;
    for (const Column& column : table.columns) {
        Cells& cells = columns.emplace_back();
        cells.title = column.title;
        cells.title.erase(0, std::min(cells.title.find_first_not_of(' '), cells.title.size()));
        cells.is_text = column.show == Show::text;
        cells.begins_part = column.begins_part;
        for (const Json& row : rows) cells.rows.push_back(shown(row.value(column.key, Json{}), column.show));
    }
    std::string out;
    if (!table.title.empty()) {
        const std::string title = printable(table.title);
        for (const std::string_view line : split(title, '\n')) out += wrapped(line, 0) + '\n';
    }
    const std::string sources = take_sources_out(columns, table);
    const std::vector<Columns> parts = parts_of(std::move(columns));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) out += '\n';
        print_part(out, parts[i]);
    }
    return sources.empty() ? out : out + "sources\n" + sources;
}

}  // namespace rehearse::cli
