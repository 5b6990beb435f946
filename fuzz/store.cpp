// SPDX-License-Identifier: Apache-2.0
// SQLite files of searched plans: read, claimed from and written to.
#include "search/store.hpp"
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    const fuzz::NamedFile file{data, size};
    return fuzz::refusing([&] {
        try {
            search::Store store{file.path(), "job"};
            search::Others others = store.others();
            others.find("data=8", 8);
            if (others.claim("data=8", 8)) others.put("data=8", 8, {Seconds{1}, Seconds{}, Seconds{}, Bytes{1}});
            others.find("data=8", 8);
        } catch (const BackendError& error) {  // what SQLite itself says of a damaged page
            throw InputError(error.what());
        }
    });
}
