// SPDX-License-Identifier: Apache-2.0
// A document as a value: sections of paragraphs, tables, charts and commands. What stands in it is decided in
// application.hpp; how it looks as PDF, LaTeX, Markdown, CSV and JSON in the files beside this one.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <variant>
#include <vector>

#include "picture/chart.hpp"

namespace rehearse::report {

/// What people read and, of a figure, its value in the column's base unit.
struct Cell {
    std::string text;
    nlohmann::ordered_json value{};  // null: the text is all; of an interval its two ends
};

struct Column {
    std::string key;    // in CSV and JSON: with the base unit, as step_s
    std::string title;  // for people
    std::string unit;   // what its figures are in; of counts the title itself, of texts empty
    bool figures = true;
    std::string upper_key{};  // of intervals: the key of their upper end, a column of its own in CSV and JSON
};

struct Table {
    std::string key, caption;
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows;
    std::string note{};  // below it
};

struct Figure {
    std::string key, caption;
    picture::Chart chart;
    picture::Size size{640, 330};
};

struct Paragraph {
    std::string text;
};

/// A command line, to be copied.
struct Command {
    std::string text;
};

using Block = std::variant<Paragraph, Table, Figure, Command>;

struct Section {
    std::string title;
    std::vector<Block> blocks;
};

struct Document {
    std::string title, subtitle, abstract;
    std::vector<Section> sections;
    std::string footer;  // at the foot of each page
};

/// Numbered through, as "Table 3": of each format alike.
template <typename T, typename Visit>
void for_each(const Document& document, Visit visit) {
    int number = 0;
    for (const Section& section : document.sections)
        for (const Block& block : section.blocks)
            if (const T* found = std::get_if<T>(&block)) visit(*found, ++number);
}

/// Whether the unit says more than the title.
inline bool shows_unit(const Column& column) { return !column.unit.empty() && column.unit != column.title; }
/// The title of a column with its unit, in one line.
std::string heading(const Column& column);

/// Pages of A4, as pictures.
std::vector<picture::Picture> pages(const Document& document);

/// `figures` is where the charts lie, as a path from the document's folder.
std::string to_markdown(const Document& document, const std::string& figures);
/// A whole document for pdflatex, with booktabs.
std::string to_latex(const Document& document, const std::string& figures);
/// A table alone, as a LaTeX document takes it by \input.
std::string to_latex(const Table& table);
std::string to_csv(const Table& table);
/// Tables by their keys, with columns, units and rows of plain numbers.
nlohmann::ordered_json json_of(const Document& document);

/// A cell without text, a figure's column without a unit, a row of another length: what is wrong, for tests and for
/// us. Nothing where all is well.
std::vector<std::string> faults(const Document& document);

}  // namespace rehearse::report
