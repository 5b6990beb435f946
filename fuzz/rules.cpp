// SPDX-License-Identifier: Apache-2.0
// Rules of published rows, on every row that is shipped.
#include "fuzz/target.hpp"
#include "validate/published.hpp"
#include "validate/replay_rules.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    // Every hundredth, of many systems: what a rule does to a row, it does to the next one.
    static const std::vector<validate::PublishedRow> rows = [] {
        std::vector<validate::PublishedRow> some;
        const std::vector<validate::PublishedRow> all = validate::shipped_published();
        for (std::size_t i = 0; i < all.size(); i += 100) some.push_back(all[i]);
        return some;
    }();
    return fuzz::refusing([&] {
        validate::ReplayRules rules;
        rules.add(fuzz::text_of(data, size), "fuzz.toml");
        for (const validate::PublishedRow& row : rows) fuzz::refusing([&] { rules.settings(row); });
    });
}
