// SPDX-License-Identifier: Apache-2.0
#include "store/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace rehearse::store {

namespace {

/// One running kernel's one space of process numbers; empty where /proc does not tell.
std::string here() {
    std::string boot;
    std::ifstream{"/proc/sys/kernel/random/boot_id"} >> boot;
    std::error_code unknown;
    const std::string space = std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string();
    return boot.empty() || unknown ? "" : fmt::format("{} {}", boot, space);
}

/// When a process began, in ticks since boot (proc(5): field 22 of stat, the 20th behind the name in brackets); empty
/// where there is none, or it has ended and nobody has asked how.
std::string beginning(const std::string& number) {
    std::ifstream file{fmt::format("/proc/{}/stat", number)};
    std::string text;
    std::getline(file, text, '\0');  // names may have line breaks in them
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return "";
    std::istringstream fields{text.substr(name_end + 1)};
    std::string field;
    for (int i = 0; i < 20 && fields >> field; ++i) {
        if (i == 0 && (field == "Z" || field == "X")) return "";
    }
    return field;
}

}  // namespace

std::string this_process() {
    const std::string number = fmt::format("{}", ::getpid());
    return fmt::format("{} {} {}", here(), number, beginning(number));
}

bool has_ended(std::string_view process) {
    const std::string space = here();
    if (space.empty() || !process.starts_with(space + " ")) return false;
    std::istringstream rest{std::string{process.substr(space.size())}};
    std::string number, began;
    rest >> number >> began;
    if (number.empty() || began.empty() || number.find_first_not_of("0123456789") != std::string::npos) return false;
    return beginning(number) != began;
}

}  // namespace rehearse::store
