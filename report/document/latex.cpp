// SPDX-License-Identifier: Apache-2.0
// A document as LaTeX, tables with booktabs.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "report/document/document.hpp"

namespace rehearse::report {

namespace {

// What TeX reads as something else, and letters that pdflatex has under other names.
constexpr std::pair<std::string_view, std::string_view> escapes[]{{"\\", "\\textbackslash{}"},
                                                                  {"{", "\\{"},
                                                                  {"}", "\\}"},
                                                                  {"%", "\\%"},
                                                                  {"&", "\\&"},
                                                                  {"_", "\\_"},
                                                                  {"#", "\\#"},
                                                                  {"$", "\\$"},
                                                                  {"~", "\\textasciitilde{}"},
                                                                  {"^", "\\textasciicircum{}"},
                                                                  {"<", "\\textless{}"},
                                                                  {">", "\\textgreater{}"},
                                                                  {"×", "$\\times$"},
                                                                  {"·", "$\\cdot$"},
                                                                  {"≥", "$\\geq$"},
                                                                  {"≤", "$\\leq$"},
                                                                  {"±", "$\\pm$"},
                                                                  {"µ", "\\textmu{}"},
                                                                  {"–", "--"}};

std::string escaped(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        bool found = false;
        for (const auto& [letter, with] : escapes) {
            if (!text.starts_with(letter)) continue;
            result += with;
            text.remove_prefix(letter.size());
            found = true;
            break;
        }
        if (found) continue;
        result += text.front();
        text.remove_prefix(1);
    }
    return result;
}

}  // namespace

std::string to_latex(const Table& table) {
    std::string columns, titles, units;
    bool any_unit = false;
    for (const Column& column : table.columns) {
        columns += column.figures ? 'r' : 'l';
        titles += (titles.empty() ? "" : " & ") + escaped(column.title);
        units += (&column == table.columns.data() ? "" : " & ") +
                 (shows_unit(column) ? fmt::format("({})", escaped(column.unit)) : "");
        any_unit = any_unit || shows_unit(column);
    }
    std::string text = fmt::format(
        "\\begin{{table}}[htbp]\n\\centering\\small\n\\caption{{{}}}\n\\label{{tab:{}}}\n"
        "\\resizebox{{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}}{{!}}{{%\n"
        "\\begin{{tabular}}{{@{{}}{}@{{}}}}\n\\toprule\n{} \\\\\n",
        escaped(table.caption), table.key, columns, titles);
    if (any_unit) text += units + " \\\\\n";
    text += "\\midrule\n";
    for (const std::vector<Cell>& row : table.rows) {
        for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : " & ") + escaped(row[i].text);
        text += " \\\\\n";
    }
    text += "\\bottomrule\n\\end{tabular}}\n";
    if (!table.note.empty())
        text += fmt::format("\n\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {}}}\n", escaped(table.note));
    return text + "\\end{table}\n";
}

std::string to_latex(const Document& document, const std::string& figures) {
    std::string text =
        "\\documentclass[11pt,a4paper]{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage[T1]{fontenc}\n"
        "\\usepackage[margin=22mm]{geometry}\n\\usepackage{booktabs,graphicx,textcomp,lmodern}\n"
        "\\setlength{\\parindent}{0pt}\\setlength{\\parskip}{6pt}\n";
    text += fmt::format("\\title{{{}}}\n\\author{{{}}}\n\\date{{}}\n\\begin{{document}}\n\\maketitle\n",
                        escaped(document.title), escaped(document.subtitle));
    if (!document.abstract.empty()) text += escaped(document.abstract) + "\n\n";
    for (const Section& section : document.sections) {
        text += fmt::format("\\section{{{}}}\n", escaped(section.title));
        for (const Block& block : section.blocks) {
            if (const auto* paragraph = std::get_if<Paragraph>(&block)) text += escaped(paragraph->text) + "\n\n";
            if (const auto* command = std::get_if<Command>(&block))
                text += fmt::format("{{\\raggedright\\small\\ttfamily {}\\par}}\n\n", escaped(command->text));
            if (const auto* table = std::get_if<Table>(&block)) text += to_latex(*table) + "\n";
            if (const auto* figure = std::get_if<Figure>(&block))
                text += fmt::format(
                    "\\begin{{figure}}[htbp]\n\\centering\n\\includegraphics[width=\\linewidth]{{{}/{}.pdf}}\n"
                    "\\caption{{{}}}\n\\label{{fig:{}}}\n\\end{{figure}}\n\n",
                    figures, figure->key, escaped(figure->caption), figure->key);
        }
    }
    return text + fmt::format("\\vfill\n{{\\footnotesize {}}}\n\\end{{document}}\n", escaped(document.footer));
}

}  // namespace rehearse::report
