// SPDX-License-Identifier: Apache-2.0
#include "models/machine_reader.hpp"

#include <algorithm>
#include <cmath>

#include "core/text.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t most = 1'000'000'000;  // of anything that is counted

}  // namespace

Reader::Reader(const toml::table& table, const std::string& origin, std::string where, std::string source)
    : table_(&table), origin_(origin), where_(std::move(where)), source_(std::move(source)) {
    if (has("source")) source_ = text("source");
}

void Reader::fail_at(const toml::node& node, std::string_view what) const {
    throw InputError(
        fmt::format("{}:{}: {}{}{}", origin_, node.source().begin.line, where_, where_.empty() ? "" : ": ", what));
}

void Reader::fail(std::string_view what) const { fail_at(*table_, what); }

void Reader::fail(std::string_view key, std::string_view what) const {
    const toml::node* node = table_->get(key);
    fail_at(node == nullptr ? *table_ : *node, what);
}

const toml::node& Reader::need(std::string_view key) {
    asked_.emplace_back(key);
    const toml::node* node = table_->get(key);
    if (node == nullptr) fail(fmt::format("'{}' is missing", key));
    return *node;
}

std::string Reader::text(std::string_view key) {
    const toml::node& node = need(key);
    const auto value = node.value_exact<std::string>();
    if (!value) fail_at(node, fmt::format("'{}' must be a string", key));
    if (value->empty()) fail_at(node, fmt::format("'{}' is empty", key));
    return *value;
}

std::string Reader::text(std::string_view key, std::string otherwise) {
    asked_.emplace_back(key);
    return has(key) ? text(key) : otherwise;
}

std::int64_t Reader::count(std::string_view key) {
    const toml::node& node = need(key);
    const auto value = node.value_exact<std::int64_t>();
    if (!value) fail_at(node, fmt::format("'{}' must be a whole number", key));
    if (*value < 1 || *value > most) fail_at(node, fmt::format("'{}' is {}, it must be in 1..{}", key, *value, most));
    return *value;
}

std::int64_t Reader::count(std::string_view key, std::int64_t otherwise) {
    asked_.emplace_back(key);
    return has(key) ? count(key) : otherwise;
}

double Reader::number(std::string_view key) {
    const toml::node& node = need(key);
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value)) fail_at(node, fmt::format("'{}' must be a number", key));
    return *value;
}

bool Reader::yes(std::string_view key, bool otherwise) {
    asked_.emplace_back(key);
    if (!has(key)) return otherwise;
    const auto value = need(key).value_exact<bool>();
    if (!value) fail(key, fmt::format("'{}' must be true or false", key));
    return *value;
}

const toml::array& Reader::array(std::string_view key, std::string_view of) {
    const toml::node& node = need(key);
    const auto* values = node.as_array();
    if (values == nullptr || values->empty()) fail_at(node, fmt::format("'{}' must be a list of {}", key, of));
    return *values;
}

std::vector<std::string> Reader::texts(std::string_view key) {
    std::vector<std::string> result;
    for (const toml::node& node : array(key, "strings")) {
        const auto value = node.value_exact<std::string>();
        if (!value) fail_at(node, fmt::format("'{}' must be a list of strings", key));
        result.push_back(*value);
    }
    return result;
}

std::vector<std::int64_t> Reader::counts(std::string_view key) {
    std::vector<std::int64_t> result;
    for (const toml::node& node : array(key, "whole numbers")) {
        const auto value = node.value_exact<std::int64_t>();
        if (!value || *value < 1 || *value > most)
            fail_at(node, fmt::format("'{}' must be a list of whole numbers in 1..{}", key, most));
        result.push_back(*value);
    }
    return result;
}

std::vector<std::int64_t> Reader::indices(std::string_view key, std::int64_t end) {
    std::vector<std::int64_t> result;
    for (const toml::node& node : array(key, "whole numbers")) {
        const auto value = node.value_exact<std::int64_t>();
        if (!value || *value < 0 || *value >= end || std::ranges::find(result, *value) != result.end())
            fail_at(node, fmt::format("'{}' must be a list of different whole numbers in 0..{}", key, end - 1));
        result.push_back(*value);
    }
    return result;
}

std::vector<double> Reader::numbers(std::string_view key) {
    std::vector<double> result;
    for (const toml::node& node : array(key, "numbers")) {
        const auto value = node.is_number() ? node.value<double>() : std::nullopt;
        if (!value || !std::isfinite(*value) || *value <= 0)
            fail_at(node, fmt::format("'{}' must be a list of numbers above zero", key));
        result.push_back(*value);
    }
    return result;
}

std::string Reader::source() {
    asked_.emplace_back("source");
    if (source_.empty()) fail("'source' is missing: say where the figure comes from");
    return source_;
}

std::optional<Reader> Reader::table(std::string_view key, std::string where) {
    asked_.emplace_back(key);
    const toml::node* node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_table()) fail_at(*node, fmt::format("'{}' must be one table: [{}]", key, key));
    return Reader(*node->as_table(), origin_, std::move(where), source_);
}

std::vector<Reader> Reader::tables(std::string_view key, std::string_view where) {
    asked_.emplace_back(key);
    std::vector<Reader> result;
    const toml::node* node = table_->get(key);
    if (node == nullptr) return result;
    if (!node->is_array()) fail_at(*node, fmt::format("'{}' must be a list of tables: [[{}]]", key, key));
    for (const toml::node& element : *node->as_array()) {
        if (!element.is_table()) fail_at(element, fmt::format("'{}' must be a list of tables: [[{}]]", key, key));
        result.emplace_back(*element.as_table(), origin_, std::string(where), source_);
    }
    return result;
}

void Reader::done() const {
    const std::vector<std::string_view> known(asked_.begin(), asked_.end());
    for (const auto& [key, node] : *table_) {
        const std::string_view name = key.str();
        if (name == "source" || std::ranges::find(known, name) != known.end()) continue;
        throw InputError(fmt::format("{}:{}: {}{}unknown key '{}'{}", origin_, key.source().begin.line, where_,
                                     where_.empty() ? "" : ": ", name, did_you_mean(name, known)));
    }
}

}  // namespace rehearse::models
