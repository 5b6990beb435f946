// SPDX-License-Identifier: Apache-2.0
// Quantities with units, each of five dimensions: exact texts read as what was written.
#include "core/units.hpp"
#include "core/text.hpp"
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view text = fuzz::text_of(data, size);
    const auto again = [&]<typename Quantity>(Quantity) {
        fuzz::refusing([&] {
            const auto value = parse_quantity<Quantity>(text);
            require(parse_quantity<Quantity>(to_exact_string(value)) == value, "a quantity reads as it was written");
        });
    };
    again(Bytes{});
    again(Seconds{});
    again(Bandwidth{});
    again(FlopRate{});
    fuzz::refusing([&] { parse_quantity<Flops>(text); });
    fuzz::refusing([&] { parse_int(text, "input"); });
    return fuzz::refusing([&] { parse_number(text, "input"); });
}
