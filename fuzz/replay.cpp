// SPDX-License-Identifier: Apache-2.0
// fuzz_TARGET FILE|FOLDER...: gives the target each file once, as libFuzzer does with the files that it is given. Exit
// code 2 where there is none (a corpus that is not found tests nothing), or where a reader took none of them: it may
// never have seen what is in them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "fuzz/target.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(int argc, char** argv) {
    std::vector<fs::path> files;
    for (int i = 1; i < argc; ++i) {
        if (!fs::is_directory(argv[i])) {
            files.emplace_back(argv[i]);
            continue;
        }
        for (const auto& entry : fs::directory_iterator{argv[i]}) {
            if (entry.is_regular_file()) files.push_back(entry.path());
        }
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<fs::path> files = files_of(argc, argv);
    for (const fs::path& path : files) {
        std::cerr << path.string() << std::endl;  // what is under way when a target ends the process
        std::ifstream file{path, std::ios::binary};
        const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::cout << files.size() << " files\n";
    bool all_read = !files.empty();
    for (const auto& [line, count] : rehearse::fuzz::taken()) {
        if (count > 0) continue;
        std::cerr << "the reader in line " << line << " of the target took no file: a seed that it takes is missing\n";
        all_read = false;
    }
    return all_read ? 0 : 2;
}
