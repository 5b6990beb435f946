// SPDX-License-Identifier: Apache-2.0
// Tables of measured kernels of boards, and what their data sheets say in a line.
#include "fuzz/target.hpp"
#include "models/measured_boards.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] { models::board_sheet(text); });
    return fuzz::refusing([&] { models::measured_boards(text, "fuzz.csv"); });
}
