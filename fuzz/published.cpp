// SPDX-License-Identifier: Apache-2.0
// Published rows, under the rules that are shipped.
#include "validate/published.hpp"
#include "fuzz/target.hpp"
#include "validate/replay_rules.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    static const validate::ReplayRules rules = validate::shipped_replay_rules();
    return fuzz::refusing([&] {
        for (const validate::PublishedRow& row : validate::read_published(fuzz::text_of(data, size), "fuzz.csv")) {
            fuzz::refusing([&] { rules.settings(row); });
        }
    });
}
