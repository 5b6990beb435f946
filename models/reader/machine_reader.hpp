// SPDX-License-Identifier: Apache-2.0
// One table of a machine file, read key by key, so that every mistake is told with its file and line. Only
// machine_*.cpp and this_host.cpp include this header; toml++'s types go no further.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "core/error.hpp"
#include "core/machine.hpp"

namespace rehearse::models {

/// A table, and after it those of the machines that it extends: what it does not say, they say, each with its own
/// source and, in messages, its own file and line.
/// Large: one method a kind of figure that a table may hold, required or not.
class Reader {
public:
    /// What a figure may be.
    enum class Least { above_zero, zero, anything };

    /// `where` names the table in messages ("device 'v100'"); a `source` key in it is the source of each figure in it
    /// and below that does not name its own.
    Reader(const toml::table& table, const std::string& origin, std::string where, std::string source = "");
    /// The table of a machine that the one before extends.
    void add_base(const toml::table& table) { add_layer(table, ""); }

    bool has(std::string_view key) const { return find(key).node != nullptr; }
    /// In the table itself, not in those that it extends.
    bool says(std::string_view key) const { return layers_.front().table->contains(key); }
    bool is_text(std::string_view key) const { return has(key) && find(key).node->is_string(); }
    /// A required string, not empty.
    std::string text(std::string_view key);
    std::string text(std::string_view key, std::string otherwise);
    /// A required whole number in [1, 1e9].
    std::int64_t count(std::string_view key);
    std::int64_t count(std::string_view key, std::int64_t otherwise);
    double number(std::string_view key);
    bool yes(std::string_view key, bool otherwise);
    std::vector<std::string> texts(std::string_view key);
    std::vector<std::int64_t> counts(std::string_view key);
    /// Different ones of 0 .. end - 1.
    std::vector<std::int64_t> indices(std::string_view key, std::int64_t end);
    std::vector<double> numbers(std::string_view key);
    /// Numbers with their source, as `figure` takes it; empty where nobody says one.
    std::pair<std::vector<double>, std::string> sourced_numbers(std::string_view key);
    std::string source();

    /// A quantity with its source: "900GBps" where the table has a source, or { value = "900GBps", source = "..." }.
    /// Above zero; a time may be zero. A plain number only for Q = double.
    template <typename Q>
    Sourced<Q> figure(std::string_view key, Least least = std::is_same_v<Q, Seconds> ? Least::zero : Least::above_zero);
    /// Zero without a source when the key is absent: unknown.
    template <typename Q>
    Sourced<Q> figure_if_given(std::string_view key,
                               Least least = std::is_same_v<Q, Seconds> ? Least::zero : Least::above_zero) {
        asked_.push_back(std::string(key));
        return has(key) ? figure<Q>(key, least) : Sourced<Q>{};
    }

    std::optional<Reader> table(std::string_view key, std::string where);
    /// The names of the tables in table `key`.
    std::vector<std::string> names_in(std::string_view key) const;
    /// The elements of [[key]] or key = [{...}]; none when absent. A machine's own take the place of all that it
    /// extends.
    std::vector<Reader> tables(std::string_view key, std::string_view where);
    /// ... its own first, then those of each machine that it extends.
    std::vector<std::vector<Reader>> all_tables(std::string_view key, std::string_view where);
    /// ... by their `name`: its own change those of the same name, others come after them.
    std::vector<Reader> named_tables(std::string_view key, std::string_view where);

    /// Unknown keys are errors: call it when all known ones were asked for.
    void done() const;
    void set_where(std::string where) { where_ = std::move(where); }

    [[noreturn]] void fail(std::string_view what) const;
    /// At the line of the key's value.
    [[noreturn]] void fail(std::string_view key, std::string_view what) const;

private:
    struct Layer {
        const toml::table* table;
        std::string source;
    };
    struct Found {
        const toml::node* node = nullptr;
        const Layer* layer = nullptr;
    };
    Found find(std::string_view key) const;
    Found need(std::string_view key);
    void add_layer(const toml::table& table, const std::string& source);
    const toml::array& array(std::string_view key, std::string_view of);
    std::vector<Reader> elements(std::string_view key, std::string_view where, const Found& found) const;
    [[noreturn]] void fail_at(const toml::node& node, std::string_view what) const;

    std::vector<Layer> layers_;
    std::string origin_, where_;
    std::vector<std::string> asked_;
};

template <typename Q>
Sourced<Q> Reader::figure(std::string_view key, Least least) {
    const Found found = need(key);
    const toml::node& node = *found.node;
    if (const auto* inner = node.as_table()) {
        Reader reader(*inner, origin_, fmt::format("{}: {}", where_, key), found.layer->source);
        Sourced<Q> figure = reader.figure<Q>("value", least);
        reader.source();
        reader.done();
        return figure;
    }
    Sourced<Q> figure;
    const auto allowed = [&](double value) {
        return value > 0 || least == Least::anything || (value == 0 && least == Least::zero);
    };
    if constexpr (std::is_same_v<Q, double>) {
        figure.value = number(key);
        if (!allowed(figure.value)) fail(key, fmt::format("{} is {}, it must be above zero", key, figure.value));
    } else {
        const bool bare = node.is_number();
        try {
            figure.value = parse_quantity<Q>(bare ? fmt::format("{}", number(key)) : text(key));
        } catch (const InputError& error) {
            fail(key, bare ? fmt::format("{} has no unit: write it as a string: {}", key, error.what())
                           : fmt::format("{}: {}", key, error.what()));
        }
        if (!allowed(figure.value.value)) fail(key, fmt::format("{} is {}, it must be above zero", key, text(key)));
    }
    if (found.layer->source.empty())
        fail(key,
             fmt::format("{} has no source: write {{ value = ..., source = \"data sheet, paper or measurement\" }}, "
                         "or give the whole table a source",
                         key));
    figure.source = found.layer->source;
    return figure;
}

}  // namespace rehearse::models
