// SPDX-License-Identifier: Apache-2.0
// `rehearse manual [COMMAND]`: the manual page of the program or of a command in roff (man 7), written from the same
// options, columns and examples as --help.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/option_words.hpp"
#include "cli/reference.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

namespace {

// Text that roff takes for nothing else.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
        if (c == '\\') {
            result += "\\e";
        } else if (c == '-') {
            result += "\\-";
        } else {
            result += c;
        }
    }
    return result;
}

std::string capitals(std::string_view text) {
    std::string result{text};
    std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::toupper(c); });
    return result;
}

std::string head(std::string_view page, std::string_view summary) {
    return fmt::format(".TH {} 1 \"\" \"rehearse {}\" \"Rehearse\"\n.SH NAME\n{} \\- {}\n", capitals(page),
                       REHEARSE_VERSION, escaped(page), escaped(summary));
}

// Lines as they are: examples, tables of columns.
std::string literal(std::string_view text) { return fmt::format(".nf\n{}\n.fi\n", escaped(text)); }

std::string options_of(const CLI::App& command) {
    std::string text;
    for (const CLI::Option* option : command.get_options()) {
        const std::string name = option->get_name(true, true);
        const std::string value =
            takes_value(*option) && !option->get_lnames().empty() ? option->get_option_text() : "";
        text += fmt::format(".TP\n.B {}{}\n{}\n", escaped(name.substr(0, name.find('{'))),
                            value.empty() ? "" : " \\fI" + escaped(value) + "\\fR", escaped(option->get_description()));
    }
    return text;
}

std::string page_of(const CLI::App& command) {
    const std::string name = command.get_name();
    return head("rehearse-" + name, command.get_description()) +
           fmt::format(".SH SYNOPSIS\n.B rehearse {}\n[\\fIoptions\\fR]\n.SH OPTIONS\n", escaped(name)) +
           options_of(command) + ".SH COLUMNS AND EXAMPLES\n" + literal(command.get_footer()) +
           ".SH SEE ALSO\n.BR rehearse (1)\n";
}

std::string listed(std::string_view title, std::span<const Meaning> rows) {
    std::string text = fmt::format(".SH {}\n", title);
    for (const Meaning& row : rows) {
        std::string meaning{row.meaning};
        std::erase(meaning, '`');
        text += fmt::format(".TP\n.B {}\n{}\n", row.word, escaped(meaning));
    }
    return text;
}

std::string page_of_program(const CLI::App& program) {
    std::string text = head("rehearse", program.get_description()) +
                       ".SH SYNOPSIS\n.B rehearse\n\\fIcommand\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n";
    std::string others;
    for (const CLI::App* command : program.get_subcommands({})) {
        text += fmt::format(".TP\n.B {}\n{}\n", escaped(command->get_name()), escaped(command->get_description()));
        others += fmt::format("{}.BR rehearse\\-{} (1)", others.empty() ? "" : ",\n", escaped(command->get_name()));
    }
    return text + listed("EXIT STATUS", exit_codes()) + listed("ENVIRONMENT", environment_variables()) +
           ".SH SEE ALSO\n" + others + '\n';
}

}  // namespace

Run add_manual(CommandLine& app) {
    struct Options {
        Common common;
        std::string command, folder, reference;
    };
    const auto options = std::make_shared<Options>();
    app.add_option("COMMAND", options->command, "of the command; without it that of the program");
    app.add_option("--all", options->folder, "write all pages into this folder, as rehearse.1, rehearse-predict.1, ...")
        ->option_text("FOLDER");
    app.add_option("--reference", options->reference,
                   "write the reference pages of docs/reference into this folder, in Markdown")
        ->option_text("FOLDER");
    add_output(app, options->common);
    return [&app, options] {
        const CLI::App& program = app.program();
        if (!options->reference.empty()) {
            for (const auto& [page, text] : reference_pages()) {
                const std::string path = fmt::format("{}/{}", options->reference, page);
                check_writable(path, options->common);
                replace_file(path, text);
            }
            return good;
        }
        if (!options->folder.empty()) {
            const auto write = [&](const std::string& page, const std::string& text) {
                const std::string path = fmt::format("{}/{}.1", options->folder, page);
                check_writable(path, options->common);
                replace_file(path, text);
            };
            write("rehearse", page_of_program(program));
            for (const CLI::App* command : program.get_subcommands({}))
                write("rehearse-" + command->get_name(), page_of(*command));
            return good;
        }
        if (options->command.empty()) {
            print(page_of_program(program), options->common);
            return good;
        }
        for (const CLI::App* command : program.get_subcommands({})) {
            if (command->get_name() != options->command) continue;
            print(page_of(*command), options->common);
            return good;
        }
        throw InputError(fmt::format("manual '{}': no such command", options->command));
    };
}

}  // namespace rehearse::cli
