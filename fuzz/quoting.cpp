// SPDX-License-Identifier: Apache-2.0
// Texts of strangers on a terminal, in XML and in CSV: no control character is left.
#include "core/quoting.hpp"
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string text = printable(fuzz::text_of(data, size));
    for (const char c : text)
        require(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t', "it can be read");
    require(printable(text) == text, "what can be read stays as it is");
    csv_field(fuzz::text_of(data, size));
    return 0;
}
