// SPDX-License-Identifier: Apache-2.0
// Tables of text: comma-separated, a header line, quotes around fields with commas; lines that begin with # are
// comments. Every mistake is told with its file and line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::models {

class Csv {
public:
    /// InputError when there is no header, or a row has another number of fields than it.
    Csv(std::string_view text, std::string origin);

    std::size_t size() const { return rows_.size(); }
    const std::vector<std::string>& header() const { return header_; }
    bool has(std::string_view column) const;
    /// InputError at the header when there is no such column.
    std::size_t column(std::string_view name) const;

    /// InputError at the header for a column that is none of these.
    void only(std::span<const std::string_view> columns) const;

    const std::string& text(std::size_t row, std::string_view column) const;
    /// A whole number of at least `least`.
    std::int64_t whole(std::size_t row, std::string_view column, std::int64_t least) const;
    /// Above zero, finite.
    double positive(std::size_t row, std::string_view column) const;
    /// Zero or above, finite.
    double not_negative(std::size_t row, std::string_view column) const;
    [[noreturn]] void fail(std::size_t row, std::string_view what) const;

private:
    struct Row {
        int line = 0;
        std::vector<std::string> fields;
    };
    std::string origin_;
    int header_line_ = 0;
    std::vector<std::string> header_;
    std::vector<Row> rows_;
};

}  // namespace rehearse::models
