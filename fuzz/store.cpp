// SPDX-License-Identifier: Apache-2.0
// SQLite files of searched plans: read, claimed from and written to.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz/target.hpp"
#include "search/store.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rehearse;
    // Its journal lies beside it: it has a folder of its own.
    static const std::filesystem::path folder = [] {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_fuzz_XXXXXX").string();
        require(mkdtemp(name.data()) != nullptr, "a folder for the store");
        return std::filesystem::path{name};
    }();
    const std::string path = folder / "plans.db";
    std::filesystem::remove(path + "-journal");
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(data),
                                                static_cast<std::streamsize>(size));
    try {
        search::Store store{path, "job"};
        search::Others others = store.others();
        others.find("data=8", 8);
        if (others.claim("data=8", 8)) others.put("data=8", 8, {Seconds{1}, Seconds{}, Seconds{}, Bytes{1}});
        others.find("data=8", 8);
    } catch (const InputError&) {
    } catch (const BackendError&) {  // what SQLite itself says of a damaged page
    }
    return 0;
}
