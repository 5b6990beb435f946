// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "trace/formats.hpp"
#include "trace/layout.hpp"

namespace rehearse::trace {

namespace {

struct Ending {
    std::string_view text;
    Format format;
};
constexpr std::array endings{Ending{".pftrace", Format::perfetto}, Ending{".perfetto-trace", Format::perfetto},
                             Ending{".json", Format::chrome}, Ending{".csv", Format::csv}};

// Perfetto's first byte is a newline (tag 0x0A), which only a strange JSON file has too: there its name decides.
Format format_of_content(InputFile& file) {
    const std::string head = file.head(9);
    const std::string_view start = head;
    if (start.empty()) file.is_not_a_trace("there is nothing inside the gzip file");
    if (start.front() == '\n' && file.is_gzip()) file.is_not_a_trace("a compressed Perfetto trace: gunzip it first");
    if (start == "timeline,") file.is_not_a_trace("CSV is for spreadsheets and is not read back");
    if (start[0] == '\n') return file.path().ends_with(".json") ? Format::chrome : Format::perfetto;
    if (std::string_view{"{[ \t\r"}.find(start[0]) != std::string_view::npos) return Format::chrome;
    file.is_not_a_trace(fmt::format("it begins with byte {:#04x}", static_cast<unsigned char>(start[0])));
}

Timeline pick(std::vector<Timeline> timelines, const std::string& path, std::string_view label) {
    const std::vector<std::string> labels = labels_of(timelines);
    const auto found = std::ranges::find(labels, label);
    if (found != labels.end()) return std::move(timelines[static_cast<std::size_t>(found - labels.begin())]);
    const std::vector<std::string_view> known(labels.begin(), labels.end());
    throw InputError(
        fmt::format("{}: has no timeline '{}'{}: it has {}", path, label, did_you_mean(label, known), join(known)));
}

void write_all(std::span<const Timeline> timelines, const std::string& path, Format format,
               std::span<const Dependencies> dependencies = {}) {
    require(!timelines.empty(), "a trace file has at least one timeline");
    OutputFile out(path);
    switch (format) {
        case Format::perfetto:
            write_perfetto(timelines, dependencies, out);
            break;
        case Format::chrome:
            write_chrome(timelines, out);
            break;
        case Format::csv:
            write_csv(timelines, out);
            break;
        case Format::links:
            write_links_csv(timelines, out);
            break;
    }
    out.commit();
}

}  // namespace

Format format_of(std::string_view path) {
    for (const Ending& ending : endings) {
        if (path.ends_with(ending.text)) return ending.format;
    }
    throw InputError(
        fmt::format("{}: cannot tell the format of a trace from the file's ending: "
                    "right would be .pftrace (Perfetto), .json (Chrome) or .csv",
                    path));
}

void write(const std::vector<Timeline>& timelines, const std::string& path, Format format) {
    write_all(timelines, path, format);
}

void write(const Timeline& timeline, const std::string& path) { write_all({&timeline, 1}, path, format_of(path)); }

void write(const Timeline& timeline, std::span<const Dependencies> dependencies, const std::string& path) {
    write_all({&timeline, 1}, path, format_of(path), dependencies);
}

std::vector<Timeline> read_all(const std::string& path) {
    InputFile file(path);
    return format_of_content(file) == Format::perfetto ? read_perfetto(file) : read_chrome(file);
}

Timeline read(const std::string& path) {
    const std::size_t mark = path.rfind('#');
    std::error_code ignored;
    if (mark != std::string::npos && !std::filesystem::exists(path, ignored)) {
        const std::string file = path.substr(0, mark);
        return pick(read_all(file), file, std::string_view{path}.substr(mark + 1));
    }
    std::vector<Timeline> timelines = read_all(path);
    if (timelines.size() == 1) return std::move(timelines.front());
    const std::vector<std::string> labels = labels_of(timelines);
    throw InputError(fmt::format("{}: has {} timelines ({}): pick one, as in '{}#{}'", path, timelines.size(),
                                 fmt::join(labels, ", "), path, labels.back()));
}

}  // namespace rehearse::trace
