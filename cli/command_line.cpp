// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <vector>

namespace rehearse::cli {

Option* Option::option_text(const std::string& text) {
    option_.option_text(text);
    return this;
}
Option* Option::description(const std::string& text) {
    option_.description(text);
    return this;
}
Option* Option::capture_default_str() {
    option_.capture_default_str();
    return this;
}
Option* Option::default_str(const std::string& text) {
    option_.default_str(text);
    return this;
}
Option* Option::required() {
    option_.required();
    return this;
}
Option* Option::delimiter(char between) {
    option_.delimiter(between);
    return this;
}
Option* Option::expected(int least, int most) {
    option_.expected(least, most);
    return this;
}
Option* Option::allow_extra_args(bool allowed) {
    option_.allow_extra_args(allowed);
    return this;
}
Option* Option::excludes(const std::string& other) {
    option_.excludes(app_.get_option(other));
    return this;
}
Option* Option::needs(const std::string& other) {
    option_.needs(app_.get_option(other));
    return this;
}
Option* Option::positive() {
    option_.check(CLI::PositiveNumber);
    return this;
}
Option* Option::not_negative() {
    option_.check(CLI::NonNegativeNumber);
    return this;
}

Option* CommandLine::added(CLI::Option* option) { return &options_.emplace_back(app_, *option); }

template <typename Value>
Option* CommandLine::add_option(const std::string& name, Value& value, const std::string& help) {
    return added(app_.add_option(name, value, help));
}
template <typename Value>
Option* CommandLine::add_option_function(const std::string& name, const std::function<void(const Value&)>& set,
                                         const std::string& help) {
    return added(app_.add_option_function<Value>(name, set, help));
}

// The types of values that options have.
template Option* CommandLine::add_option(const std::string&, bool&, const std::string&);
template Option* CommandLine::add_option(const std::string&, int&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option* CommandLine::add_option(const std::string&, float&, const std::string&);
template Option* CommandLine::add_option(const std::string&, double&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::string&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<std::int64_t>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<float>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<double>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* CommandLine::add_option_function(const std::string&, const std::function<void(const double&)>&,
                                                  const std::string&);
template Option* CommandLine::add_option_function(const std::string&, const std::function<void(const std::string&)>&,
                                                  const std::string&);
template Option* CommandLine::add_option_function(const std::string&,
                                                  const std::function<void(const std::vector<std::string>&)>&,
                                                  const std::string&);

void CommandLine::add_flag(const std::string& name, bool& value, const std::string& help) {
    app_.add_flag(name, value, help);
}
void CommandLine::add_flag_function(const std::string& name, const std::function<void(std::int64_t)>& set,
                                    const std::string& help) {
    app_.add_flag_function(name, set, help);
}
Option* CommandLine::get_option(const std::string& name) { return added(app_.get_option(name)); }
void CommandLine::remove_option(const std::string& name) { app_.remove_option(app_.get_option(name)); }
void CommandLine::allow_extras() { app_.allow_extras(); }
bool CommandLine::has(const std::string& name) const { return app_.count(name) > 0; }
std::vector<std::string> CommandLine::names() const {
    std::vector<std::string> names;
    for (const CLI::Option* option : app_.get_options()) names.push_back(option->get_name());
    return names;
}
const CLI::App& CommandLine::program() const { return *app_.get_parent(); }

void unfit(const std::string& name, const std::string& why) { throw CLI::ValidationError(name, why); }

}  // namespace rehearse::cli
