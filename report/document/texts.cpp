// SPDX-License-Identifier: Apache-2.0
// A document as Markdown, CSV and JSON.
#include <fmt/format.h>

#include <algorithm>

#include "report/document/document.hpp"

namespace rehearse::report {

namespace {

std::string replaced(std::string text, std::string_view what, std::string_view with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

// A bar would end a cell.
std::string of_cell(const std::string& text) { return replaced(text, "|", "\\|"); }

std::string markdown(const Table& table, int number) {
    std::string text = fmt::format("**Table {}.** {}\n\n|", number, table.caption), rule = "|";
    for (const Column& column : table.columns) {
        text += fmt::format(" {} |", of_cell(heading(column)));
        rule += column.figures ? "---:|" : "---|";
    }
    text += "\n" + rule + "\n";
    for (const std::vector<Cell>& row : table.rows) {
        text += "|";
        for (const Cell& cell : row) text += fmt::format(" {} |", of_cell(cell.text));
        text += "\n";
    }
    return text + (table.note.empty() ? "" : fmt::format("\n{}\n", table.note)) + "\n";
}

// RFC 4180.
std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    return "\"" + replaced(text, "\"", "\"\"") + "\"";
}

}  // namespace

std::string heading(const Column& column) {
    return shows_unit(column) ? fmt::format("{} ({})", column.title, column.unit) : column.title;
}

std::string to_markdown(const Document& document, const std::string& figures) {
    std::string text = fmt::format("# {}\n\n{}\n\n", document.title, document.subtitle);
    if (!document.abstract.empty()) text += document.abstract + "\n\n";
    int section_number = 0, tables = 0, charts = 0;
    for (const Section& section : document.sections) {
        text += fmt::format("## {}. {}\n\n", ++section_number, section.title);
        for (const Block& block : section.blocks) {
            if (const auto* paragraph = std::get_if<Paragraph>(&block)) text += paragraph->text + "\n\n";
            if (const auto* command = std::get_if<Command>(&block)) text += "```sh\n" + command->text + "\n```\n\n";
            if (const auto* table = std::get_if<Table>(&block)) text += markdown(*table, ++tables);
            if (const auto* figure = std::get_if<Figure>(&block))
                text += fmt::format("![{}]({}/{}.svg)\n\n**Figure {}.** {}\n\n", figure->caption, figures, figure->key,
                                    ++charts, figure->caption);
        }
    }
    return text + "---\n" + document.footer + "\n";
}

namespace {

struct Keyed {
    const std::string& key;
    nlohmann::ordered_json value;  // a number or a text
};

// The ends of an interval are two values; its text, where it has no ends, stands for both.
std::vector<Keyed> keyed(const Column& column, const Cell& cell) {
    const nlohmann::ordered_json& value = cell.value;
    const auto end = [&](std::size_t i) {
        return value.is_array() ? value.at(i) : value.is_null() ? nlohmann::ordered_json(cell.text) : value;
    };
    std::vector<Keyed> all{{column.key, end(0)}};
    if (!column.upper_key.empty()) all.push_back({column.upper_key, end(1)});
    return all;
}

}  // namespace

std::string to_csv(const Table& table) {
    std::string text, line;
    const auto add = [&](const std::string& field) { line += (line.empty() ? "" : ",") + field; };
    for (const Column& column : table.columns) {
        for (const Keyed& each : keyed(column, {})) add(each.key);
    }
    text = line + "\n";
    for (const std::vector<Cell>& row : table.rows) {
        line.clear();
        for (std::size_t i = 0; i < row.size(); ++i) {
            for (const Keyed& each : keyed(table.columns[i], row[i]))
                add(quoted(each.value.is_number() ? each.value.dump() : row[i].text));
        }
        text += line + "\n";
    }
    return text;
}

nlohmann::ordered_json json_of(const Document& document) {
    using Json = nlohmann::ordered_json;
    Json json{{"title", document.title}, {"subtitle", document.subtitle}, {"tables", Json::object()}};
    for_each<Table>(document, [&](const Table& table, int) {
        Json columns = Json::array(), rows = Json::array();
        for (const Column& column : table.columns) {
            for (const Keyed& each : keyed(column, {}))
                columns.push_back({{"key", each.key}, {"title", column.title}, {"unit", column.unit}});
        }
        for (const std::vector<Cell>& cells : table.rows) {
            Json row;
            for (std::size_t i = 0; i < cells.size(); ++i) {
                for (const Keyed& each : keyed(table.columns[i], cells[i])) row[each.key] = each.value;
            }
            rows.push_back(row);
        }
        json["tables"][table.key] = {{"caption", table.caption}, {"columns", columns}, {"rows", rows}};
    });
    Json texts = Json::array();
    for (const Section& section : document.sections) {
        Json paragraphs = Json::array();
        for (const Block& block : section.blocks) {
            if (const auto* paragraph = std::get_if<Paragraph>(&block)) paragraphs.push_back(paragraph->text);
            if (const auto* command = std::get_if<Command>(&block)) paragraphs.push_back(command->text);
        }
        texts.push_back({{"title", section.title}, {"text", paragraphs}});
    }
    json["sections"] = texts;
    return json;
}

std::vector<std::string> faults(const Document& document) {
    std::vector<std::string> found;
    for_each<Table>(document, [&](const Table& table, int) {
        if (table.rows.empty()) found.push_back(fmt::format("table {} has no rows", table.key));
        for (const Column& column : table.columns)
            if (column.figures && column.unit.empty())
                found.push_back(fmt::format("table {}: figures of '{}' have no unit", table.key, column.title));
        for (std::size_t r = 0; r < table.rows.size(); ++r) {
            if (table.rows[r].size() != table.columns.size())
                found.push_back(fmt::format("table {}, row {}: {} cells for {} columns", table.key, r,
                                            table.rows[r].size(), table.columns.size()));
            for (const Cell& cell : table.rows[r])
                if (cell.text.find_first_not_of(' ') == std::string::npos)
                    found.push_back(fmt::format("table {}, row {}: an empty cell", table.key, r));
        }
    });
    for (const Section& section : document.sections)
        if (section.blocks.empty()) found.push_back(fmt::format("section '{}' is empty", section.title));
    return found;
}

}  // namespace rehearse::report
