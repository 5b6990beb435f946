// SPDX-License-Identifier: Apache-2.0
#include "models/reader/machine_extends.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/file.hpp"
#include "core/text.hpp"
#include "models/reader/machine_files.hpp"
#include "models/reader/toml.hpp"

namespace rehearse::models {
namespace {

struct File {
    std::string text, origin;
};

File file_of(const std::string& wanted, const std::string& origin, const Reader& reader) {
    if (const auto shipped = shipped_machine(wanted))
        return {std::string{*shipped}, fmt::format("models/machines/{}.toml", wanted)};
    if (wanted.ends_with(".toml")) {
        const std::string path = (std::filesystem::path{origin}.parent_path() / wanted).lexically_normal().string();
        try {
            return {read_file(path), path};
        } catch (const InputError& error) {
            reader.fail("extends", error.what());
        }
    }
    std::vector<std::string_view> names;
    for (const MachineFile& file : machine_files()) names.push_back(file.name);
    reader.fail("extends",
                fmt::format("no machine '{}' is known{}; give the name of one that `rehearse machines` lists, "
                            "or the path of a .toml file",
                            wanted, did_you_mean(wanted, names)));
}

}  // namespace

Extended::Extended(std::string_view text, const std::string& origin) : origin_(origin) {
    tables_.push_back(parse_toml(text, origin));
    std::vector<std::string> origins{origin};
    for (;;) {
        Reader reader(tables_.back(), origins.back(), "");
        const std::string wanted = reader.text("extends", "");
        if (wanted.empty()) return;
        File file = file_of(wanted, origins.back(), reader);
        if (std::ranges::find(origins, file.origin) != origins.end())
            reader.fail("extends", fmt::format("'{}' extends this file in turn", wanted));
        tables_.push_back(parse_toml(file.text, file.origin));
        origins.push_back(std::move(file.origin));
    }
}

Reader Extended::reader() const {
    Reader reader(tables_.front(), origin_, "");
    for (auto base = std::next(tables_.begin()); base != tables_.end(); ++base) reader.add_base(*base);
    reader.text("extends", "");
    return reader;
}

}  // namespace rehearse::models
