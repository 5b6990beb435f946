// SPDX-License-Identifier: Apache-2.0
// Problem strings: what is read says the same when it is written and read again.
#include "core/op.hpp"
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    return fuzz::refusing([&] {
        const Problem problem = parse_problem(fuzz::text_of(data, size));
        const std::string text = to_string(problem);
        require(to_string(parse_problem(text)) == text, "a problem reads as it was written");
    });
}
