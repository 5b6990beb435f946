// SPDX-License-Identifier: Apache-2.0
// The options of one command, as its file declares them. CLI11 lies behind this header: what includes it compiles all
// of that library, which takes longer than most commands.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rehearse::cli {

/// One option, or one argument by its place, that a command line has. Each function gives back the option itself.
class Option {
public:
    Option(CLI::App& app, CLI::Option& option) : app_(app), option_(option) {}

    /// Help shows `text` for its value: "N", "NAME|FILE.toml".
    Option* option_text(const std::string& text);
    Option* description(const std::string& text);
    /// Help shows what the variable holds now, or `text`, as what holds without the option.
    Option* capture_default_str();
    Option* default_str(const std::string& text);
    Option* required();
    /// One word may hold several values, with this between them.
    Option* delimiter(char between);
    /// How many values follow it.
    Option* expected(int least, int most);
    /// Whether words that follow its last value are values, too.
    Option* allow_extra_args(bool allowed);
    /// The command line does not take it beside the option of that name, or not without it.
    Option* excludes(const std::string& other);
    Option* needs(const std::string& other);
    /// Its value is above 0, or at least 0.
    Option* positive();
    Option* not_negative();

private:
    CLI::App& app_;
    CLI::Option& option_;
};

/// What may stand behind a command's name. It must live until the command has run.
class CommandLine {
public:
    explicit CommandLine(CLI::App& app) : app_(app) {}
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    /// An option whose text is read into `value`: command_line.cpp lists the types that there are.
    template <typename Value>
    Option* add_option(const std::string& name, Value& value, const std::string& help);
    /// An option whose text is read as a Value and given to `set`, which throws `unfit` or an InputError.
    template <typename Value>
    Option* add_option_function(const std::string& name, const std::function<void(const Value&)>& set,
                                const std::string& help);
    void add_flag(const std::string& name, bool& value, const std::string& help);
    /// `set` is given how often the flag stands there, less how often its opposite does.
    void add_flag_function(const std::string& name, const std::function<void(std::int64_t)>& set,
                           const std::string& help);
    /// An option that was added before, by its name with both hyphens.
    Option* get_option(const std::string& name);
    void remove_option(const std::string& name);
    /// Whatever else stands there is no mistake.
    void allow_extras();

    /// Whether the user gave this option; to be asked when the command runs.
    bool has(const std::string& name) const;
    /// The names of all options that there are, as users write them.
    std::vector<std::string> names() const;
    /// The program with all its commands.
    const CLI::App& program() const;

private:
    Option* added(CLI::Option* option);

    CLI::App& app_;
    std::deque<Option> options_;
};

/// Refuses a value of option `name`, as the command line refuses one that is no number.
[[noreturn]] void unfit(const std::string& name, const std::string& why);

}  // namespace rehearse::cli
