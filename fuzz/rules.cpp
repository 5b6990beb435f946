// SPDX-License-Identifier: Apache-2.0
// Rules of published rows, on every row that is shipped.
#include "fuzz/target.hpp"
#include "validate/published.hpp"
#include "validate/replay_rules.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    static const std::vector<validate::PublishedRow> rows = validate::shipped_published();
    return fuzz::refusing([&] {
        validate::ReplayRules rules;
        rules.add(fuzz::text_of(data, size), "fuzz.toml");
        for (const validate::PublishedRow& row : rows) fuzz::refusing([&] { rules.settings(row); });
    });
}
