// SPDX-License-Identifier: Apache-2.0
#include "models/huggingface/huggingface.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/huggingface/families.hpp"

namespace rehearse::models {
namespace {

constexpr std::string_view file_name = "config.json";

std::filesystem::path config_at(const std::string& path) {
    return std::filesystem::is_directory(path) ? std::filesystem::path(path) / file_name : std::filesystem::path(path);
}

const nlohmann::json& published() {
    static const nlohmann::json all = nlohmann::json::parse(config_files().front().text);
    return all;
}

}  // namespace

bool is_config(const std::string& path) {
    if (path.ends_with(".json")) return true;
    std::error_code error;
    return std::filesystem::is_directory(path, error) && std::filesystem::exists(config_at(path), error);
}

Network load_config(const std::string& path, const ImportOptions& options) {
    const std::filesystem::path file = config_at(path);
    std::string name = file.stem().string();
    if (file.filename() == file_name) {
        const std::string folder = std::filesystem::absolute(file).parent_path().filename().string();
        if (!folder.empty()) name = folder;
    }
    return huggingface::from_config(read_file(file.string()), file.string(), name, options);
}

std::optional<Network> load_published_config(std::string_view name, ImportOptions options) {
    const std::size_t at = name.find('@');
    const auto found = published().find(name.substr(0, at));
    if (found == published().end()) return std::nullopt;
    const bool given = at != std::string_view::npos;
    if (given && options.sizes.contains("tokens"))
        throw InputError(fmt::format("--sizes tokens={}: '{}' says its tokens already", options.sizes["tokens"], name));
    if (given) options.sizes["tokens"] = parse_int(name.substr(at + 1), fmt::format("sequence of '{}'", name));
    const std::string whole{name};
    return huggingface::from_config(found->dump(), whole.substr(0, at), whole, options, given ? whole : "");
}

}  // namespace rehearse::models
