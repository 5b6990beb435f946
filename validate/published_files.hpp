// SPDX-License-Identifier: Apache-2.0
// The figures and rules of calibrate/published/, built into the binary.
#pragma once

#include <span>
#include <string_view>

namespace rehearse::validate {

struct PublishedFile {
    std::string_view name, text;
};
/// Defined in sources that RehearseEmbed.cmake writes.
std::span<const PublishedFile> published_files();
std::span<const PublishedFile> library_table_files();
std::span<const PublishedFile> replay_rule_files();
std::span<const PublishedFile> language_files();

}  // namespace rehearse::validate
