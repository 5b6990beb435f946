// SPDX-License-Identifier: Apache-2.0
// A regular expression in the first line, on the text behind it: bounded in time and stack.
#include <algorithm>

#include "fuzz/target.hpp"
#include "match/pattern.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view input = fuzz::text_of(data, size);
    const std::size_t line = std::min(input.find('\n'), input.size());
    return fuzz::refusing([&] {
        const match::Pattern pattern{input.substr(0, line), "--filter", match::Case::ignored};
        pattern.is_in(input.substr(line));
        pattern.groups_of(input.substr(line));
    });
}
