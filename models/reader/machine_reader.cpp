// SPDX-License-Identifier: Apache-2.0
#include "models/reader/machine_reader.hpp"

#include <algorithm>
#include <cmath>

#include "core/text.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t most = 1'000'000'000;  // of anything that is counted

}  // namespace

Reader::Reader(const toml::table& table, const std::string& origin, std::string where, std::string source)
    : origin_(origin), where_(std::move(where)) {
    add_layer(table, source);
}

void Reader::add_layer(const toml::table& table, const std::string& source) {
    layers_.push_back({&table, source});
    const toml::node* own = table.get("source");
    if (own == nullptr) return;
    const auto value = own->value_exact<std::string>();
    if (!value) fail_at(*own, "'source' must be a string");
    if (value->empty()) fail_at(*own, "'source' is empty");
    layers_.back().source = *value;
}

void Reader::fail_at(const toml::node& node, std::string_view what) const {
    const toml::source_region& place = node.source();
    throw InputError(fmt::format("{}:{}: {}{}{}", place.path ? *place.path : origin_, place.begin.line, where_,
                                 where_.empty() ? "" : ": ", what));
}

void Reader::fail(std::string_view what) const { fail_at(*layers_.front().table, what); }

void Reader::fail(std::string_view key, std::string_view what) const {
    const toml::node* node = find(key).node;
    fail_at(node == nullptr ? *layers_.front().table : *node, what);
}

Reader::Found Reader::find(std::string_view key) const {
    for (const Layer& layer : layers_)
        if (const toml::node* node = layer.table->get(key)) return {node, &layer};
    return {};
}

Reader::Found Reader::need(std::string_view key) {
    asked_.emplace_back(key);
    const Found found = find(key);
    if (found.node == nullptr) fail(fmt::format("'{}' is missing", key));
    return found;
}

std::string Reader::text(std::string_view key) {
    const toml::node& node = *need(key).node;
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
    const toml::node& node = *need(key).node;
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
    const toml::node& node = *need(key).node;
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value)) fail_at(node, fmt::format("'{}' must be a number", key));
    return *value;
}

bool Reader::yes(std::string_view key, bool otherwise) {
    asked_.emplace_back(key);
    if (!has(key)) return otherwise;
    const auto value = need(key).node->value_exact<bool>();
    if (!value) fail(key, fmt::format("'{}' must be true or false", key));
    return *value;
}

const toml::array& Reader::array(std::string_view key, std::string_view of) {
    const toml::node& node = *need(key).node;
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

std::pair<std::vector<double>, std::string> Reader::sourced_numbers(std::string_view key) {
    const Found found = need(key);
    const auto* inner = found.node->as_table();
    if (inner == nullptr) return {numbers(key), found.layer->source};
    Reader reader(*inner, origin_, fmt::format("{}: {}", where_, key), found.layer->source);
    auto result = reader.sourced_numbers("value");
    reader.source();
    reader.done();
    return result;
}

std::string Reader::source() {
    asked_.emplace_back("source");
    for (const Layer& layer : layers_)
        if (!layer.source.empty()) return layer.source;
    fail("'source' is missing: say where the figure comes from");
}

std::optional<Reader> Reader::table(std::string_view key, std::string where) {
    asked_.emplace_back(key);
    std::optional<Reader> result;
    for (const Layer& layer : layers_) {
        const toml::node* node = layer.table->get(key);
        if (node == nullptr) continue;
        if (!node->is_table() && result) break;  // what comes before says it in another way
        if (!node->is_table()) fail_at(*node, fmt::format("'{}' must be one table: [{}]", key, key));
        if (result) {
            result->add_layer(*node->as_table(), layer.source);
        } else {
            result.emplace(*node->as_table(), origin_, where, layer.source);
        }
    }
    return result;
}

std::vector<std::string> Reader::names_in(std::string_view key) const {
    std::vector<std::string> names;
    for (const Layer& layer : layers_) {
        const toml::node* node = layer.table->get(key);
        if (node == nullptr || !node->is_table()) continue;
        for (const auto& [name, inner] : *node->as_table())
            if (std::ranges::find(names, name.str()) == names.end()) names.emplace_back(name.str());
    }
    return names;
}

std::vector<Reader> Reader::elements(std::string_view key, std::string_view where, const Found& found) const {
    std::vector<Reader> result;
    if (found.node == nullptr) return result;
    if (!found.node->is_array()) fail_at(*found.node, fmt::format("'{}' must be a list of tables: [[{}]]", key, key));
    for (const toml::node& element : *found.node->as_array()) {
        if (!element.is_table()) fail_at(element, fmt::format("'{}' must be a list of tables: [[{}]]", key, key));
        result.emplace_back(*element.as_table(), origin_, std::string(where), found.layer->source);
    }
    return result;
}

std::vector<Reader> Reader::tables(std::string_view key, std::string_view where) {
    asked_.emplace_back(key);
    return elements(key, where, find(key));
}

std::vector<std::vector<Reader>> Reader::all_tables(std::string_view key, std::string_view where) {
    asked_.emplace_back(key);
    std::vector<std::vector<Reader>> result;
    for (const Layer& layer : layers_) result.push_back(elements(key, where, {layer.table->get(key), &layer}));
    return result;
}

std::vector<Reader> Reader::named_tables(std::string_view key, std::string_view where) {
    asked_.emplace_back(key);
    std::vector<Reader> result;  // of the machine farthest away first
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
        const auto known = result.size();
        for (Reader& own : elements(key, where, {layer->table->get(key), &*layer})) {
            const auto end = result.begin() + static_cast<std::ptrdiff_t>(known);
            const auto same = std::find_if(result.begin(), end, [&](Reader& other) {
                return own.is_text("name") && other.is_text("name") && own.text("name") == other.text("name");
            });
            if (same != end) {
                own.layers_.insert(own.layers_.end(), same->layers_.begin(), same->layers_.end());
                *same = std::move(own);
            } else {
                result.push_back(std::move(own));
            }
        }
    }
    return result;
}

void Reader::done() const {
    const std::vector<std::string_view> known(asked_.begin(), asked_.end());
    for (const Layer& layer : layers_) {
        for (const auto& [key, node] : *layer.table) {
            const std::string_view name = key.str();
            if (name == "source" || std::ranges::find(known, name) != known.end()) continue;
            const toml::source_region& place = key.source();
            throw InputError(fmt::format("{}:{}: {}{}unknown key '{}'{}", place.path ? *place.path : origin_,
                                         place.begin.line, where_, where_.empty() ? "" : ": ", name,
                                         did_you_mean(name, known)));
        }
    }
}

}  // namespace rehearse::models
