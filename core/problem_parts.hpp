// SPDX-License-Identifier: Apache-2.0
// The pieces of a problem string, for parse_problem.cpp alone: numbers, lists and fields between colons, each checked.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/limits.hpp"
#include "core/op.hpp"
#include "core/text.hpp"

namespace rehearse {

// The parts of an operator's text between colons, read back.
class ProblemParts {
public:
    explicit ProblemParts(std::string_view text) : text_(text), parts_(split(text, ':')) {}

    [[noreturn]] void fail(std::string_view why) const {
        throw InputError(fmt::format("problem '{}': {}", text_, why));
    }
    std::int64_t whole(std::string_view digits) const {
        const std::int64_t value = parse_int(digits, fmt::format("problem '{}'", text_));
        if (value < 0) fail(fmt::format("{} is negative", value));
        if (static_cast<double>(value) > most_elements)
            fail(fmt::format("{} is larger than any kernel's sizes", value));
        return value;
    }
    std::int64_t positive(std::string_view digits) const {
        const std::int64_t value = whole(digits);
        if (value < 1) fail("a size is 0: at least 1");
        return value;
    }
    std::string_view part(std::size_t i) const {
        if (i >= parts_.size()) fail("it ends too early");
        return parts_[i];
    }
    // "c64h56" as {c: 64, h: 56}; exactly the letters of `letters`, each at least 1.
    std::map<char, std::int64_t> fields(std::size_t i, std::string_view letters) const {
        std::map<char, std::int64_t> values;
        std::string_view rest = part(i);
        for (const char letter : letters) {
            if (!rest.starts_with(letter)) fail(fmt::format("expected '{}' at '{}'", letter, rest));
            rest.remove_prefix(1);
            const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
            values[letter] = positive(rest.substr(0, digits));
            rest.remove_prefix(digits);
        }
        std::vector<std::int64_t> sizes;
        for (const auto& [letter, size] : values) sizes.push_back(size);
        if (product_of(sizes) > most_work) fail("these sizes are larger than any kernel works on");
        if (!rest.empty()) fail(fmt::format("'{}' is left over", rest));
        return values;
    }
    // The text after `name` in the part that starts with it.
    std::optional<std::string_view> find(std::string_view name) const {
        for (const std::string_view p : parts_) {
            if (p.starts_with(name)) return p.substr(name.size());
        }
        return std::nullopt;
    }
    bool has(std::string_view word) const { return std::ranges::find(parts_, word) != parts_.end(); }
    std::vector<std::int64_t> list(std::string_view text, char separator) const {
        std::vector<std::int64_t> values;
        for (const std::string_view p : split(text, separator)) values.push_back(whole(p));
        return values;
    }
    // "2x6x6", each at least 1.
    Shape shape(std::string_view text) const {
        Shape sizes;
        for (const std::string_view p : split(text, 'x')) sizes.push_back(positive(p));
        if (product_of(sizes) > most_elements) fail("this shape has more elements than any kernel works on");
        return sizes;
    }
    // How many operands there are.
    std::int64_t inputs() const {
        constexpr std::int64_t most = 10000;
        const std::int64_t count = integer("inputs");
        if (count < 1 || count > most) fail(fmt::format("inputs{}: 1 to {}", count, most));
        return count;
    }
    double number(std::string_view name) const {
        const auto text = find(name);
        if (!text) fail(fmt::format("'{}' is missing", name));
        return number_of(*text);
    }
    double number_of(std::string_view text) const { return parse_number(text, fmt::format("problem '{}'", text_)); }
    std::int64_t integer(std::string_view name) const {
        const auto text = find(name);
        if (!text) fail(fmt::format("'{}' is missing", name));
        return whole(*text);
    }
    std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const {
        return find(name) ? integer(name) : otherwise;
    }
    // "1" stands for all `count` values.
    std::vector<std::int64_t> repeated(std::string_view name, std::size_t count, std::int64_t otherwise) const {
        const auto text = find(name);
        std::vector<std::int64_t> values = text ? list(*text, 'x') : std::vector{otherwise};
        if (values.size() == 1) values.assign(count, values[0]);
        if (values.size() != count) fail(fmt::format("'{}' takes 1 or {} numbers", name, count));
        return values;
    }
    // The fields of part 0, with those of a volume ("d" after c, "t" before r) where it has a depth.
    std::map<char, std::int64_t> image_fields(std::string_view letters) const {
        std::string all{letters};
        if (part(0).find('d') == std::string_view::npos) return fields(0, all);
        all.insert(all.find('h'), 1, 'd');
        if (const auto r = all.find('r'); r != std::string::npos) all.insert(r, 1, 't');
        return fields(0, all);
    }
    // Of a volume ("t" among the fields) with the sizes over depth first.
    Window window(std::map<char, std::int64_t>& f) const {
        const std::size_t n = f.contains('t') ? 3 : 2;
        const std::size_t h = n - 2;
        const std::size_t w = n - 1;
        const auto pad = repeated("pad", 2 * n, 0);
        const auto step = repeated("stride", n, 1);
        const auto dilation = repeated("dilation", n, 1);
        const Window flat{f['r'], f['s'],     step[h],    step[w],     pad[h],
                          pad[w], pad[n + h], pad[n + w], dilation[h], dilation[w]};
        if (n == 2) return flat;
        return {flat.kernel_h, flat.kernel_w,   flat.stride_h,  flat.stride_w,   flat.pad_top,
                flat.pad_left, flat.pad_bottom, flat.pad_right, flat.dilation_h, flat.dilation_w,
                f['t'],        step[0],         pad[0],         pad[n],          dilation[0]};
    }

private:
    std::string_view text_;
    std::vector<std::string_view> parts_;
};

}  // namespace rehearse
