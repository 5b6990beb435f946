// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <sstream>
#include <thread>

#include "cli/choice.hpp"
#include "cli/command_line.hpp"
#include "cli/help.hpp"
#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/table_text.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/quoting.hpp"
#include "core/text.hpp"
#include "core/units.hpp"

namespace rehearse::cli {

namespace {

// Names may be of bytes that are no UTF-8, which JSON has no place for.
std::string json_text(const Json& value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string csv_cell(const Json& value) {
    if (value.is_null()) return "";
    const std::string text = value.is_string() ? value.get<std::string>() : json_text(value, -1);
    return csv_field(text);
}

void print_csv(std::ostream& out, const Json& rows) {
    std::vector<std::string> keys;
    for (const Json& row : rows) {
        for (const auto& [key, value] : row.items()) {
            if (!value.is_structured() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
        }
    }
    out << fmt::format("{}\n", fmt::join(keys, ","));
    for (const Json& row : rows) {
        std::vector<std::string> cells;
        for (const std::string& key : keys) cells.push_back(csv_cell(row.value(key, Json{})));
        out << fmt::format("{}\n", fmt::join(cells, ","));
    }
}

// JSON has no NaN; one here is a bug that must not leave the house as null.
void require_finite(const Json& value) {
    if (value.is_number_float()) require(std::isfinite(value.get<double>()), "a reported number is finite");
    if (value.is_structured()) {
        for (const Json& part : value) require_finite(part);
    }
}

std::string rendered(const Report& report, Format format) {
    std::ostringstream out;
    if (format == Format::json) {
        out << json_text(report.document, 2) << '\n';
    } else if (format == Format::csv) {
        print_csv(out, report.document.at(report.tables.at(0).rows));
    } else {
        for (std::size_t i = 0; i < report.tables.size(); ++i) {
            if (i > 0) out << '\n';
            out << table_text(report.document.at(report.tables[i].rows), report.tables[i]);
        }
        if (report.footer.empty()) return out.str();
        out << '\n';
        const std::string footer = printable(report.footer);
        for (const std::string_view line : split(footer, '\n')) {
            out << (report.footer_is_drawn ? std::string{line} : wrapped(line, 0)) << '\n';
        }
    }
    return out.str();
}

}  // namespace

void add_output(CommandLine& app, Common& common) {
    app.add_option("--output", common.output, "write the result to this file instead of stdout")->option_text("FILE");
    app.add_flag("--force", common.force, "overwrite files that exist");
}

void add_common(CommandLine& app, Common& common) {
    add_choice<Format>(app, "--format", common.format,
                       {{"table", Format::table}, {"csv", Format::csv}, {"json", Format::json}}, "of the result");
    add_output(app, common);
    app.add_flag("-q,--quiet", common.quiet, "no progress and talk on stderr");
    app.add_flag_function(
        "-v,--verbose", [&common](std::int64_t times) { common.verbose = static_cast<int>(times); }, "more of it");
}

void add_budget(CommandLine& app, Seconds& budget) {
    const auto set = [&budget](double seconds) {
        if (!(seconds > 0)) unfit("--budget", fmt::format("{}: seconds, above 0", seconds));
        budget = Seconds{seconds};
    };
    app.add_option_function<double>("--budget", set, "seconds of timing")
        ->option_text("SECONDS")
        ->default_str(fmt::format("{:g}", budget.value));
}

Json document(std::string_view kind, Json configuration) {
    Json host;
    utsname names{};
    if (uname(&names) == 0) host["name"] = names.nodename;
    host["threads"] = std::thread::hardware_concurrency();
    return {{"schema", fmt::format("rehearse.{}/1", kind)},
            {"version", REHEARSE_VERSION},
            {"host", host},
            {"configuration", std::move(configuration)}};
}

void check_writable(const std::string& path, const Common& common) {
    if (path.empty()) return;
    const std::filesystem::path file{path};
    std::error_code why;
    const std::filesystem::file_status status = std::filesystem::status(file, why);
    if (!std::filesystem::status_known(status)) {
        throw InputError(fmt::format("{}: cannot be written: {}: give another path", path, why.message()));
    }
    if (std::filesystem::is_directory(status)) throw InputError(fmt::format("{}: is a directory, not a file", path));
    const bool replaces = std::filesystem::is_regular_file(status);
    if (replaces && !common.force) {
        throw InputError(fmt::format("{}: exists already; --force overwrites it", path));
    }
    if (std::filesystem::exists(status) && !replaces) return;  // a device or a pipe: nothing is made beside it
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    if (!std::filesystem::is_directory(folder)) {
        throw InputError(fmt::format("{}: there is no folder '{}' to write it in", path, folder.string()));
    }
    if (access(folder.c_str(), W_OK) != 0) {
        throw InputError(
            fmt::format("{}: nothing can be written in '{}': {}", path, folder.string(), std::strerror(errno)));
    }
}

void print(const Report& report, const Common& common) {
    require_finite(report.document);
    print(rendered(report, common.format), common);
}

void print(std::string_view text, const Common& common) {
    if (common.output.empty()) {
        std::cout << text << std::flush;
        if (!std::cout) throw BackendError("stdout cannot be written");
        return;
    }
    check_writable(common.output, common);
    replace_file(common.output, text);
}

double share_or_infinity(std::string_view option, std::string_view text) {
    if (text.empty()) return std::numeric_limits<double>::infinity();
    std::string_view digits = text;
    if (digits.ends_with('%')) digits.remove_suffix(1);
    const double value = parse_number(digits, option) / (digits.size() < text.size() ? 100 : 1);
    if (!(value >= 0)) throw InputError(fmt::format("{} {}: a share like 20% or 0.2", option, text));
    return value;
}

void talk(const Common& common, std::string_view text) {
    if (common.quiet) return;
    clear_bar();
    std::cerr << printable(text) << '\n';
}

}  // namespace rehearse::cli
