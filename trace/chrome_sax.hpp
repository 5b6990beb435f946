// SPDX-License-Identifier: Apache-2.0
// The elements of a Chrome trace one after the other, so that a file of any size is read in little memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/input_file.hpp"

namespace rehearse::trace {

/// A JSON object without objects in it; a list is kept as its text, "[1, 2]".
class FlatObject {
public:
    struct Value {
        enum class Kind { none, boolean, whole, real, text };
        Kind kind = Kind::none;
        std::int64_t whole = 0;  // also of a boolean
        double real = 0;         // also of a whole number
        std::string text;
    };
    struct Field {
        std::string key;
        Value value;
    };

    void clear() { size_ = 0; }
    /// A place for the value of `key`; places of cleared objects are used again.
    Value& add(const std::string& key);

    /// Nothing when there is no such key or its value is of another kind.
    std::optional<std::string_view> text(std::string_view key) const;
    std::optional<std::int64_t> whole(std::string_view key) const;
    std::optional<double> real(std::string_view key) const;
    bool has(std::string_view key) const { return find(key) != nullptr; }
    /// A line each, "key: value", in the order of the file.
    std::string lines() const;

private:
    const Value* find(std::string_view key) const;

    std::vector<Field> fields_;
    std::size_t size_ = 0;
};

/// {"ph":"X","pid":1,...,"args":{...}}
struct ChromeElement {
    FlatObject fields, args;
};

struct ChromeVisitor {
    std::function<void(const FlatObject&)> head;        // "otherData"
    std::function<void(const ChromeElement&)> element;  // of "traceEvents"
    std::function<void(const FlatObject&)> job{};       // "distributedInfo" of PyTorch: rank, world_size, backend
};

/// InputError when the file is no JSON, cut off, or JSON without "traceEvents".
void visit_chrome(InputFile& file, const ChromeVisitor& visitor);

}  // namespace rehearse::trace
