// SPDX-License-Identifier: Apache-2.0
// One document, three ways out: a table for people, CSV (one row per tuple of independent variables), JSON for
// programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/json.hpp"
#include "core/units.hpp"

namespace rehearse::cli {

class CommandLine;

enum class Format { table, csv, json };

/// The options that every subcommand has.
struct Common {
    Format format = Format::table;
    std::string output;  // empty: stdout
    bool force = false;  // overwrite files
    bool quiet = false;
    int verbose = 0;
};
void add_common(CommandLine& app, Common& common);
/// Of these only --output and --force, for a command whose result has one form.
void add_output(CommandLine& app, Common& common);

/// --budget SECONDS of timing.
void add_budget(CommandLine& app, Seconds& budget);

/// "20%" or "0.2" of `option` as 0.2; infinity when it is empty. InputError otherwise.
double share_or_infinity(std::string_view option, std::string_view text);

/// How a table shows a value; CSV and JSON always carry the plain number in base units.
enum class Show { text, count, seconds, bytes, flops, flop_rate, percent, number };
struct Column {
    std::string key, title;
    Show show = Show::text;
    bool begins_part = false;  // in a table that is too wide for a line, this column begins what stands below
};

struct Table {
    std::string rows;   // key of the array of objects in the document
    std::string title;  // above the table; may be empty
    std::vector<Column> columns;
};

struct Report {
    Json document;                 // begins with "schema", "version"
    std::vector<Table> tables;     // CSV writes the rows of the first one, with all their scalar keys
    std::string footer;            // below the tables, its lines wrapped
    bool footer_is_drawn = false;  // as a picture in letters, whose lines stay whole
};

/// A document of this kind: schema "rehearse.<kind>/1", version, configuration, host.
Json document(std::string_view kind, Json configuration);

/// To stdout or --output. InputError when that file exists (without --force) or cannot be written.
void print(const Report& report, const Common& common);
void print(std::string_view text, const Common& common);

/// InputError when a file of the user's would be overwritten, or there is nowhere to write it: asked before the work,
/// not after it.
void check_writable(const std::string& path, const Common& common);

/// Progress and talk: on stderr, not with -q.
void talk(const Common& common, std::string_view text);

}  // namespace rehearse::cli
