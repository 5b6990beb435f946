// SPDX-License-Identifier: Apache-2.0
#include "models/mpi_libraries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"
#include "models/reader/machine_files.hpp"
#include "models/reader/machine_parse.hpp"

namespace rehearse::models {

namespace {

struct Version {
    std::int64_t since = 0;
    std::string text;
    MpiLibrary library;
};

struct Library {
    std::string name, summary;
    std::vector<Version> versions;  // oldest first
};

MpiLibrary::Band parse_band(Reader reader) {
    MpiLibrary::Band band;
    band.ranks = reader.count("ranks", 0);
    band.bytes = reader.numbers("bytes");
    if (!std::ranges::is_sorted(band.bytes)) reader.fail("bytes", "they grow from one to the next");
    for (const std::string& word : reader.texts("take")) band.take.push_back(parse_algorithm(word));
    if (band.take.size() != band.bytes.size() + 1)
        reader.fail("take", fmt::format("{} algorithms for {} limits: one more than limits is needed", band.take.size(),
                                        band.bytes.size()));
    reader.done();
    return band;
}

Library parse_file(const MachineFile& file) {
    const std::string origin = fmt::format("models/mpi/{}.toml", file.name);
    const toml::table table = toml::parse(file.text, origin);
    Reader top(table, origin, "library");
    Library library{.name = std::string{file.name}, .summary = top.text("summary"), .versions = {}};
    for (Reader& each : top.tables("version", "version")) {
        Version version;
        version.text = each.text("since");
        version.since = library_version(each, "since");
        version.library.name = fmt::format("{}({})", file.name, version.text);
        version.library.source = each.source();
        if (each.yes("leaders", false))
            version.library.leaders =
                each.has("leaders_most") ? each.number("leaders_most") : std::numeric_limits<double>::infinity();
        for (Reader& band : each.tables("band", "band")) version.library.bands.push_back(parse_band(band));
        if (version.library.bands.empty() || version.library.bands.back().ranks != 0)
            each.fail("the last band is of any number of ranks");
        each.done();
        library.versions.push_back(std::move(version));
    }
    top.done();
    return library;
}

const std::vector<Library>& libraries() {
    static const std::vector<Library> all = [] {
        std::vector<Library> read;
        for (const MachineFile& file : mpi_files()) read.push_back(parse_file(file));
        return read;
    }();
    return all;
}

const Library* find(std::string_view text) {
    const std::string_view name = text.substr(0, text.find('('));
    const auto found = std::ranges::find(libraries(), name, &Library::name);
    return found == libraries().end() ? nullptr : &*found;
}

// "4.1" and "4.1.2" as 40100 and 40102.
std::int64_t number_of(std::string_view version, std::string_view text) {
    std::int64_t number = 0, parts = 0;
    for (const std::string_view word : split(version, '.')) {
        const std::int64_t part = parse_int(word, fmt::format("version of {}", text));
        if (++parts > 3 || part < 0 || part > 99)
            throw InputError(fmt::format("{}: '{}' is not a version: write it like 4.1 or 4.1.2", text, version));
        number = number * 100 + part;
    }
    for (; parts < 3; ++parts) number *= 100;
    return number;
}

}  // namespace

Algorithm MpiLibrary::all_reduce(std::int64_t ranks, std::int64_t per_node, Bytes data) const {
    const std::int64_t nodes = per_node > 0 ? ranks / per_node : ranks;
    const bool led = nodes > 1 && per_node > 1 && nodes * per_node == ranks && data.value <= leaders;
    const std::int64_t speakers = led ? nodes : ranks;
    const auto band =
        std::ranges::find_if(bands, [&](const Band& each) { return each.ranks == 0 || speakers < each.ranks; });
    const auto place = std::ranges::upper_bound(band->bytes, data.value) - band->bytes.begin();
    const Algorithm& taken = band->take[at(place)];
    if (!led) return taken;
    return {.name = "hierarchical", .inside = "tree", .across = taken.name};
}

std::vector<MpiLibraryName> mpi_libraries() {
    std::vector<MpiLibraryName> names;
    for (const Library& each : libraries()) names.push_back({each.name, each.summary});
    return names;
}

bool is_mpi_library(std::string_view text) { return find(text) != nullptr; }

MpiLibrary mpi_library(std::string_view text) {
    const Library* library = find(text);
    require(library != nullptr, "a library that is known");
    const std::size_t open = text.find('(');
    if (open == std::string_view::npos) return library->versions.back().library;
    if (!text.ends_with(')')) throw InputError(fmt::format("{}: write it like {}(4.1)", text, library->name));
    const std::int64_t number = number_of(text.substr(open + 1, text.size() - open - 2), text);
    const Version* newest = nullptr;
    for (const Version& each : library->versions) {
        if (each.since <= number) newest = &each;
    }
    if (newest == nullptr)
        throw InputError(
            fmt::format("{}: older than any that is known; {} is the oldest", text, library->versions.front().text));
    return newest->library;
}

}  // namespace rehearse::models
