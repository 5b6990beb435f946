// SPDX-License-Identifier: Apache-2.0
// Networks as Hugging Face describes them: a config.json, or one of those that ship with Rehearse.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/models.hpp"

namespace rehearse::models {

/// Whether a path is that of a .json file, or of a folder with a config.json.
bool is_config(const std::string& path);
/// InputError: what is missing, wrong or unknown in it, by its key. The network is called after the file's folder.
Network load_config(const std::string& path, const ImportOptions& options = {});

/// "llama3-8b", or with N tokens "llama3-8b@N", of models/huggingface/published.json; none of that name: nothing.
std::optional<Network> load_published_config(std::string_view name, ImportOptions options = {});

/// The file built in, which RehearseEmbed.cmake writes.
struct ConfigFile {
    std::string_view name, text;
};
std::span<const ConfigFile> config_files();

}  // namespace rehearse::models
