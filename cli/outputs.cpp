// SPDX-License-Identifier: Apache-2.0
#include "cli/outputs.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <filesystem>
#include <map>
#include <string>

#include "cli/report.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::array writing{"--output",      "--trace",       "--plot",        "--script", "--out",
                             "--machine-out", "--samples-out", "--save-speeds", "--draw",   "--roofline",
                             "--winners",     "--gantt",       "--learn",       "--store"};

std::string given(const CLI::App& command, const char* name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option == nullptr || option->results().empty() ? "" : option->results().front();
}

/// The same for two names of one file, whether it is there or not; empty of devices, which any number may write.
std::string place(const std::string& path) {
    std::error_code unknown;
    const fs::file_status status = fs::status(path, unknown);
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) return "";
    const fs::path whole = fs::weakly_canonical(path, unknown);
    return unknown ? path : whole.string();
}

}  // namespace

void check_outputs(const CLI::App& command) {
    std::map<std::string, std::string> options;  // by the place that they write
    for (const char* name : writing) {
        const std::string path = given(command, name);
        if (path.empty()) continue;
        const std::string where = place(path);
        if (where.empty()) continue;
        const auto [other, fresh] = options.try_emplace(where, name);
        if (!fresh) {
            throw InputError(
                fmt::format("{} and {} both name {}: give each a file of its own", other->second, name, path));
        }
    }
    const CLI::Option* output = command.get_option_no_throw("--output");
    if (output != nullptr && output->get_option_text() == "FOLDER") return;  // who writes a folder looks for itself
    Common common{.output = given(command, "--output")};
    const CLI::Option* force = command.get_option_no_throw("--force");
    common.force = force != nullptr && force->count() > 0;
    check_writable(common.output, common);
}

}  // namespace rehearse::cli
