// SPDX-License-Identifier: Apache-2.0
// Tables of NCCL's collectives and of transformers.
#include "fuzz/target.hpp"
#include "validate/library_tables.hpp"
#include "validate/megatron_rows.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::refusing([&] { validate::read_library_rows(text, "fuzz.csv"); });
    return fuzz::refusing([&] { validate::read_megatron(text, "fuzz.csv", "fuzz"); });
}
