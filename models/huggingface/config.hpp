// SPDX-License-Identifier: Apache-2.0
// A config.json as Hugging Face's libraries write it: keys that are asked for, and those that nobody asked for.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/models.hpp"

namespace rehearse::models::huggingface {

/// What is absent or null is as if it were not there. InputError: "path:line: key 'hidden_size' ...".
class Config {
public:
    /// InputError when `text` is no JSON object.
    Config(std::string_view text, std::string origin);

    bool has(std::string_view key) const;
    /// A size: at least 1; InputError when it is absent. The other form: `otherwise` when it is absent.
    std::int64_t size(std::string_view key) const;
    std::int64_t size(std::string_view key, std::int64_t otherwise, std::int64_t least = 0) const;
    /// Where null says that there is none of it: 0, which absent does not say.
    std::int64_t size_unless_null(std::string_view key, std::int64_t otherwise) const;
    std::vector<std::int64_t> sizes(std::string_view key) const;
    std::vector<std::int64_t> sizes(std::string_view key, std::vector<std::int64_t> otherwise) const;
    double number(std::string_view key, double otherwise) const;
    /// Of rotary embeddings: of `rope_parameters`, where transformers 5 keeps it, else of the config itself.
    double of_rotary(std::string_view key, double otherwise) const;
    /// `of` times a number, rounded down; at least 0, and a size that `size` would take.
    std::int64_t part(std::string_view key, double otherwise, std::int64_t of) const;
    /// The numbers of a head of `size` that rotary embeddings turn: by `key`, or by rope_parameters.
    std::int64_t turned(std::string_view key, double otherwise, std::int64_t size) const;
    bool flag(std::string_view key, bool otherwise) const;
    std::string text(std::string_view key, std::string_view otherwise) const;
    /// The first text of a list, as `architectures` is; empty when it is absent.
    std::string first(std::string_view key) const;
    /// Labels of a classifier: num_labels, else the entries of id2label, else `otherwise`.
    std::int64_t labels(std::int64_t otherwise) const;
    /// InputError unless the value is `wanted` (or absent): "key 'x' is true: ... is not supported, only false".
    void only(std::string_view key, bool wanted, std::string_view why) const;
    [[noreturn]] void fail(std::string_view key, std::string_view what) const;
    const std::string& origin() const { return origin_; }

    /// Keys that nobody asked for, without those that say nothing of a network's sizes.
    std::vector<std::string> unread() const;

private:
    const nlohmann::json* find(std::string_view key) const;
    std::string origin_, text_;
    nlohmann::json json_;
    mutable std::set<std::string, std::less<>> read_;
};

/// Sizes of a sample that --sizes may give, each with what is taken without.
class Sizes {
public:
    /// `typed`: what was typed in the place of --sizes ("llama3-8b@1"); empty: that was.
    Sizes(const ImportOptions& options, std::string origin, std::string typed = "")
        : given_(options.sizes), origin_(std::move(origin)), typed_(std::move(typed)) {}
    /// `most`: 0 for no limit. A note says what was taken unasked, and why.
    std::int64_t take(const std::string& name, std::int64_t otherwise, std::int64_t most, std::string_view why,
                      std::vector<std::string>& notes);
    /// InputError when a size was given that nobody asked for.
    void check() const;

private:
    std::map<std::string, std::int64_t> given_;
    std::string origin_, typed_;
    std::vector<std::string> asked_;
};

}  // namespace rehearse::models::huggingface
