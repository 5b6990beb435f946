// SPDX-License-Identifier: Apache-2.0
#include "validate/library_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "models/csv.hpp"
#include "models/models.hpp"
#include "validate/published_files.hpp"

namespace rehearse::validate {

namespace {

struct Operation {
    std::string_view word;
    CollectiveKind kind;
};
constexpr std::array operations{
    Operation{"all_reduce", CollectiveKind::all_reduce}, Operation{"all_gather", CollectiveKind::all_gather},
    Operation{"reduce_scatter", CollectiveKind::reduce_scatter}, Operation{"broadcast", CollectiveKind::broadcast},
    Operation{"all_to_all", CollectiveKind::all_to_all}};
constexpr std::string_view message_test = "sendrecv";

template <typename T>
std::optional<T> number_in(std::string_view word) {
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    return value;
}

// "2.18.3" as 21803; nothing of another text.
std::optional<std::int64_t> version_of(std::string_view text) {
    const std::vector<std::string_view> words = split(text, '.');
    if (words.size() > 3) return std::nullopt;
    std::int64_t version = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        const std::optional<int> part = i < words.size() ? number_in<int>(words[i]) : 0;
        if (!part || *part < 0 || *part > 99) return std::nullopt;
        version = version * 100 + *part;
    }
    return version;
}

}  // namespace

std::optional<CollectiveKind> library_test(std::string_view word) {
    if (word == message_test) return std::nullopt;
    std::vector<std::string_view> words;
    for (const Operation& each : operations) {
        if (each.word == word) return each.kind;
        words.push_back(each.word);
    }
    words.push_back(message_test);
    throw InputError(fmt::format("operation '{}': one of {}{}", word, join(words), did_you_mean(word, words)));
}

CollectiveKind library_operation(std::string_view word) {
    const std::optional<CollectiveKind> kind = library_test(word);
    if (!kind) throw InputError(fmt::format("operation '{}': of a collective, not of a message", word));
    return *kind;
}

std::string_view word_of(CollectiveKind kind) {
    const auto found = std::ranges::find(operations, kind, &Operation::kind);
    return found == operations.end() ? "?" : found->word;
}

double bus_bandwidth(std::optional<CollectiveKind> kind, Bytes bytes, Seconds time, std::int64_t ranks) {
    if (!(time > Seconds{0})) return 0;
    const auto n = static_cast<double>(ranks);
    const double share = kind == CollectiveKind::all_reduce           ? 2 * (n - 1) / n
                         : !kind || kind == CollectiveKind::broadcast ? 1
                                                                      : (n - 1) / n;
    return bytes.value / time.value / 1e9 * share;
}

std::vector<LibraryRow> read_library_rows(std::string_view text, const std::string& origin) {
    const models::Csv csv{text, origin};
    std::vector<LibraryRow> rows;
    for (std::size_t i = 0; i < csv.size(); ++i) {
        LibraryRow row;
        row.table = csv.text(i, "table");
        row.machine = csv.text(i, "machine");
        row.transport = csv.text(i, "transport");
        row.provenance = csv.text(i, "provenance");
        const std::optional<std::int64_t> version = version_of(csv.text(i, "version"));
        if (!version)
            csv.fail(i, fmt::format("version '{}': up to three numbers below 100, as 2.18.3", csv.text(i, "version")));
        row.version = *version;
        row.nodes = csv.whole(i, "nodes", 1);
        row.devices_per_node = csv.whole(i, "devices_per_node", 1);
        row.bytes = Bytes{csv.positive(i, "bytes")};
        row.time = Seconds{csv.positive(i, "time_us") * 1e-6};
        const std::string& timed = csv.text(i, "timed");
        if (timed != "alone" && timed != "in a row") csv.fail(i, fmt::format("timed '{}': alone or in a row", timed));
        row.alone = timed == "alone";
        row.kind = library_operation(csv.text(i, "op"));
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<LibraryRow> shipped_library_rows() {
    std::vector<LibraryRow> all;
    for (const PublishedFile& file : library_table_files()) {
        std::vector<LibraryRow> rows = read_library_rows(file.text, fmt::format("calibrate/nccl/{}.csv", file.name));
        std::ranges::move(rows, std::back_inserter(all));
    }
    return all;
}

LibraryPrices::Key LibraryPrices::key_of(const LibraryRow& row) {
    return {row.machine, row.version, row.transport, row.nodes, row.devices_per_node};
}

LibraryPrices::LibraryPrices(const std::vector<LibraryRow>& rows,
                             const std::vector<std::shared_ptr<const CollectiveLibrary>>& libraries) {
    std::map<std::string, Machine> machines;
    for (const LibraryRow& row : rows) {
        if (times_.contains(key_of(row))) continue;
        auto machine = machines.find(row.machine);
        if (machine == machines.end()) machine = machines.emplace(row.machine, models::load_machine(row.machine)).first;
        CollectiveSoftware software = machine->second.collectives;
        for (const auto& each : libraries) {
            if (each->name == software.library->name) software.library = each;
        }
        software.version = row.version;
        if (!row.transport.empty()) software.transport = row.transport;
        std::vector<int> devices(static_cast<std::size_t>(row.devices_per_node));
        std::iota(devices.begin(), devices.end(), 0);
        times_.emplace(key_of(row), sim::LibraryTimes{machine->second, software, 0, row.nodes, devices});
    }
}

LibraryAnswer LibraryPrices::answer(const LibraryRow& row) const {
    const sim::LibraryTimes& times = times_.at(key_of(row));
    LibraryAnswer one{row, times.price(row.kind, row.bytes), {}};
    if (row.alone) one.predicted.time += times.waiting();
    one.band = prices::around(one.predicted.time, prices::log_reach(one.predicted.error));
    return one;
}

std::vector<LibraryAnswer> answer(const std::vector<LibraryRow>& rows) {
    const LibraryPrices prices{rows};
    std::vector<LibraryAnswer> answers;
    answers.reserve(rows.size());
    for (const LibraryRow& row : rows) answers.push_back(prices.answer(row));
    return answers;
}

double count_of(std::optional<CollectiveKind> kind, Bytes bytes, std::int64_t ranks) {
    const bool each = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
                      kind == CollectiveKind::all_to_all;
    return std::floor(bytes / size_of(DataType::f32) / (each ? static_cast<double>(ranks) : 1.0));
}

}  // namespace rehearse::validate
