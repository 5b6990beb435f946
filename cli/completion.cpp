// SPDX-License-Identifier: Apache-2.0
// `rehearse completion SHELL`: what a shell needs to complete commands, options and the words that may follow them,
// written from the same options as --help.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/option_words.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

namespace {

std::vector<std::string> spellings(const CLI::Option& option) {
    std::vector<std::string> all;
    for (const std::string& name : option.get_snames()) all.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
    return all;
}

// Between single quotes of a shell.
std::string in_quotes(std::string_view text) {
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'') {
            result += "'\\''";
        } else {
            result += c;
        }
    }
    return result + "'";
}

std::string bash(const CLI::App& program) {
    std::string cases, commands = "--help --version";
    for (const CLI::App* command : program.get_subcommands({})) {
        commands += ' ' + command->get_name();
        std::vector<std::string> names;
        for (const CLI::Option* option : named_options(*command)) {
            for (const std::string& name : spellings(*option)) names.push_back(name);
            const std::vector<std::string> words = words_of(*option);
            if (words.empty()) continue;
            std::vector<std::string> asked;
            for (const std::string& name : spellings(*option))
                asked.push_back(in_quotes(command->get_name() + " " + name));
            cases += fmt::format("        {}) words={} ;;\n", fmt::join(asked, "|"),
                                 in_quotes(fmt::format("{}", fmt::join(words, " "))));
        }
        cases += fmt::format("        {}\\ *) if [[ $now == -* ]]; then words={}; else words={}; fi ;;\n",
                             command->get_name(), in_quotes(fmt::format("{}", fmt::join(names, " "))),
                             in_quotes(fmt::format("{}", fmt::join(positional_words(*command), " "))));
    }
    return fmt::format(R"(# bash completion of rehearse, by `rehearse completion bash`
_rehearse() {{
    local now=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W {} -- "$now"))
        return
    fi
    case "${{COMP_WORDS[1]}} $before" in
{}    esac
    COMPREPLY=($(compgen -W "$words" -- "$now"))
}}
complete -o default -F _rehearse rehearse
)",
                       in_quotes(commands), cases);
}

// What zsh reads between brackets or behind a colon.
std::string plain(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

// What zsh's _arguments does for a value. A space in front keeps it from adding words of its own.
std::string zsh_action(const std::vector<std::string>& words, bool files) {
    if (words.empty()) return "_files";
    return fmt::format(" {} {}", files ? "_rehearse_word_or_file" : "compadd --", fmt::join(words, " "));
}

std::string zsh(const CLI::App& program) {
    std::string commands, cases;
    for (const CLI::App* command : program.get_subcommands({})) {
        commands +=
            fmt::format("        {}\n", in_quotes(command->get_name() + ":" + plain(command->get_description())));
        cases += fmt::format("        {})\n            _arguments", command->get_name());
        for (const CLI::Option* option : named_options(*command)) {
            const std::vector<std::string> words = words_of(*option);
            const std::string value =
                takes_value(*option) ? ":value:" + plain(zsh_action(words, takes_file(*option))) : "";
            for (const std::string& name : spellings(*option)) {
                cases += fmt::format(" \\\n                {}",
                                     in_quotes(fmt::format("{}[{}]{}", name, plain(short_text(*option)), value)));
            }
        }
        cases += fmt::format(" \\\n                {} ;;\n",
                             in_quotes("*:word:" + plain(zsh_action(positional_words(*command), true))));
    }
    return fmt::format(R"(#compdef rehearse
# zsh completion of rehearse, by `rehearse completion zsh`
_rehearse_word_or_file() {{
    compadd -- "$@"
    _files
}}
_rehearse() {{
    local -a commands=(
{}    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{}    esac
}}
_rehearse "$@"
)",
                       commands, cases);
}

// fish knows two escapes between single quotes.
std::string fish_quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') result += '\\';
        result += c;
    }
    return result + "'";
}

std::string fish(const CLI::App& program) {
    std::string text = "# fish completion of rehearse, by `rehearse completion fish`\n";
    for (const CLI::App* command : program.get_subcommands({})) {
        text += fmt::format("complete -c rehearse -n __fish_use_subcommand -f -a {} -d {}\n", command->get_name(),
                            fish_quoted(command->get_description()));
        if (const auto words = positional_words(*command); !words.empty())
            text += fmt::format("complete -c rehearse -n '__fish_seen_subcommand_from {}' -a {}\n", command->get_name(),
                                fish_quoted(fmt::format("{}", fmt::join(words, " "))));
        for (const CLI::Option* option : named_options(*command)) {
            text += fmt::format("complete -c rehearse -n '__fish_seen_subcommand_from {}'", command->get_name());
            for (const std::string& name : option->get_snames()) text += " -s " + name;
            for (const std::string& name : option->get_lnames()) text += " -l " + name;
            if (takes_value(*option)) text += takes_file(*option) ? " -r" : " -x";
            if (const auto words = words_of(*option); !words.empty())
                text += " -a " + fish_quoted(fmt::format("{}", fmt::join(words, " ")));
            text += " -d " + fish_quoted(short_text(*option)) + '\n';
        }
    }
    return text;
}

}  // namespace

Run add_completion(CommandLine& app) {
    struct Options {
        Common common;
        std::string shell;
    };
    const auto options = std::make_shared<Options>();
    app.add_option("SHELL", options->shell, "bash, zsh or fish")->required();
    add_output(app, options->common);
    return [&app, options] {
        const CLI::App& program = app.program();
        std::string text;
        if (options->shell == "bash") {
            text = bash(program);
        } else if (options->shell == "zsh") {
            text = zsh(program);
        } else if (options->shell == "fish") {
            text = fish(program);
        } else {
            throw InputError(fmt::format("completion '{}': one of bash, zsh, fish", options->shell));
        }
        print(text, options->common);
        return good;
    };
}

}  // namespace rehearse::cli
