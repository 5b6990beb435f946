// SPDX-License-Identifier: Apache-2.0
#include "calibrate/read_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "calibrate/collective_lines.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

// --- OSU

struct OsuTest {
    std::string_view title, kind;
    bool per_rank;  // its sizes are those of one rank's piece
};
// c/mpi/collective of osu-micro-benchmarks 7: longer titles before those that they contain.
constexpr std::array osu_tests{OsuTest{"Reduce_scatter", "reduce_scatter", false},
                               OsuTest{"Allreduce", "all_reduce", false},
                               OsuTest{"Allgather", "all_gather", true},
                               OsuTest{"All-to-All", "all_to_all", true},
                               OsuTest{"Alltoall", "all_to_all", true},
                               OsuTest{"Broadcast", "broadcast", false},
                               OsuTest{"Bcast", "broadcast", false},
                               OsuTest{"Scatter", "scatter", true},
                               OsuTest{"Gather", "gather", true},
                               OsuTest{"Reduce", "reduce", false}};

std::size_t decimals_of(std::string_view number) {
    const std::size_t point = number.find('.');
    return point == std::string_view::npos ? 0 : number.size() - point - 1;
}

class OsuReader {
public:
    OsuReader(const std::string& origin, std::int64_t ranks) : origin_(origin), ranks_(ranks) {}

    FileSamples read(std::string_view text) {
        each_line(text, origin_, [&](std::string_view line, const std::string& here) {
            const std::vector<std::string_view> words = words_of(line);
            if (!words.empty() && words.front().starts_with('#')) {
                if (line.find("OSU") != std::string_view::npos) {
                    title_ = line;
                    decimals_.reset();
                }
                return;
            }
            if (words.empty() || title_.empty()) return;
            if (is_last(line, text) && cut_off(words)) {
                samples_.skipped.push_back(fmt::format("{}: the text ends within this row: cut off", here));
                return;
            }
            if (titled("Barrier")) {  // its rows are times alone: none of them is a size
                if (number_of(words[0])) samples_.skipped.push_back(fmt::format("{}: a barrier moves no bytes", here));
                return;
            }
            if (words.size() < 2) return;
            const auto size = number_of(words[0]), value = number_of(words[1]);
            if (!size || !(*size > 0)) return;
            if (!value || !(*value > 0)) {
                samples_.skipped.push_back(fmt::format("{}: '{}' is no number above 0, with a point", here, words[1]));
                return;
            }
            decimals_ = decimals_of(words[1]);
            if (std::ranges::find(words, "Fail") != words.end()) {  // -c: the column "Validation"
                samples_.skipped.push_back(fmt::format("{}: its validation failed: a time of nothing", here));
            } else {
                row(*size, *value, here);
            }
        });
        return std::move(samples_);
    }

private:
    // Of the last row where no newline ends it: all numbers of a table have as many decimals.
    bool cut_off(const std::vector<std::string_view>& words) const {
        if (!number_of(words[0])) return false;
        return words.size() < 2 || (words.size() == 2 && decimals_ && decimals_of(words[1]) != *decimals_);
    }

    bool titled(std::string_view part) const { return title_.find(part) != std::string_view::npos; }

    void row(double size, double value, const std::string& here) {
        // What else goes on beside a collective that does not block, and whose neighbours a rank has, is in no figure;
        // what one side puts or gets (MPI_Put, SHMEM, UPC) is no message that both sides know of.
        constexpr std::array others{"Non-blocking", "Neighborhood", "MPI_", "One Sided", "SHMEM", "UPC"};
        const bool other = std::ranges::any_of(others, [&](const char* word) { return titled(word); });
        for (const OsuTest& test : osu_tests) {
            if (!other && titled(test.title)) return collective(test, size, value, here);
        }
        constexpr double window = 65536;  // from here on a window in flight fills the link
        const bool many = titled("Multi");
        if (titled("Latency Test") && !many && !other) {
            add_message(samples_, Bytes{size}, Seconds{value * 1e-6});
        } else if (titled("Bandwidth Test") && !many && !other) {
            const double one_way = titled("Bi-") ? value / 2 : value;  // both directions together
            if (size >= window) add_message(samples_, Bytes{size}, Seconds{size / (one_way * 1e6)}, true);
        } else {
            throw InputError(
                fmt::format("{}: '{}': of OSU, latency, bandwidth (of one pair that sends and receives, one or both "
                            "ways) and blocking collectives are read",
                            here, title_));
        }
    }

    void collective(const OsuTest& test, double size, double value, const std::string& here) {
        samples_.asked_ranks = true;
        if (ranks_ < 2) {
            throw InputError(
                fmt::format("{}: OSU's {} does not say among how many ranks: give --ranks N", here, test.kind));
        }
        const double whole = test.per_rank ? size * static_cast<double>(ranks_) : size;
        add_collective(samples_, {std::string{test.kind}, ranks_, Bytes{whole}, Seconds{value * 1e-6}, false}, here);
    }

    const std::string& origin_;
    std::int64_t ranks_;
    std::string_view title_;
    std::optional<std::size_t> decimals_;  // of the last row's number
    FileSamples samples_;
};

// --- NCCL Inspector

using Json = nlohmann::json;

std::string inspected_kind(const std::string& name) {
    static const std::map<std::string, std::string> kinds{
        {"AllReduce", "all_reduce"}, {"AllGather", "all_gather"}, {"ReduceScatter", "reduce_scatter"},
        {"Broadcast", "broadcast"},  {"Reduce", "reduce"},        {"AllToAll", "all_to_all"},
        {"Gather", "gather"},        {"Scatter", "scatter"},      {"Send", "send_recv"},
        {"Recv", "send_recv"}};
    const auto found = kinds.find(name);
    return found == kinds.end() ? std::string{} : found->second;
}

// 0 where there is none. Not Json::value, which makes a whole number of any double, also of those that no int64 holds.
std::int64_t whole_number(const Json& object, const char* key, const std::string& here) {
    const auto found = object.find(key);
    if (found == object.end()) return 0;
    constexpr double exact = 0x1p53;
    const double value = found->is_number() ? found->get<double>() : -1;
    if (value < 0 || value > exact || value != std::floor(value))
        throw InputError(fmt::format("{}: {} is {}: a whole number", here, key, found->dump()));
    return static_cast<std::int64_t>(value);
}

// Sizes of all-gathers and reduce-scatters are one rank's piece: what algobw says of each record
// (coll_algobw_gbs x coll_exec_time_us = n x coll_msg_size_bytes).
Bytes whole_of(const std::string& kind, double bytes, std::int64_t ranks) {
    const bool piece = kind == "all_gather" || kind == "reduce_scatter";
    return Bytes{piece ? bytes * static_cast<double>(ranks) : bytes};
}

}  // namespace

FileSamples read_osu(std::string_view text, const std::string& origin, std::int64_t ranks) {
    return OsuReader(origin, ranks).read(text);
}

bool is_inspector(std::string_view text) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    return line.find("\"coll_perf\"") != std::string_view::npos ||
           line.find("\"p2p_perf\"") != std::string_view::npos ||
           line.find("inspector_output_format_version") != std::string_view::npos;
}

FileSamples read_inspector(std::string_view text, const std::string& origin) {
    FileSamples samples;
    std::map<std::tuple<std::string, std::int64_t, std::string>, std::pair<CollectiveRow, std::string>> shortest;
    each_line(text, origin, [&](std::string_view line, const std::string& here) {
        if (words_of(line).empty()) return;
        const Json record = Json::parse(line, nullptr, false);
        if (!record.is_object() || !record.contains("header")) {
            throw InputError(
                fmt::format("{}: no record of NCCL Inspector: right would be its JSON, a record a line, whole", here));
        }
        if (!record.contains("coll_perf")) return;
        const Json &header = record["header"], &perf = record["coll_perf"];
        const std::string name = perf.value("coll", ""), kind = inspected_kind(name);
        const std::int64_t ranks = whole_number(header, "n_ranks", here);
        const double bytes = perf.value("coll_msg_size_bytes", 0.0), us = perf.value("coll_exec_time_us", 0.0);
        if (kind.empty() || ranks < 2 || !(bytes > 0)) {
            samples.skipped.push_back(fmt::format("{}: {} of {} bytes among {} ranks", here, name, bytes, ranks));
            return;
        }
        if (!(us > 0)) throw InputError(fmt::format("{}: coll_exec_time_us is {}: above 0", here, us));
        if (samples.where.empty() && record.contains("metadata"))
            samples.where = record["metadata"].value("hostname", "");
        const CollectiveRow row{
            kind, ranks, whole_of(kind, bytes, ranks), Seconds{us * 1e-6}, false, whole_number(header, "nnodes", here)};
        const auto [place, fresh] = shortest.try_emplace(
            {header.value("id", ""), whole_number(perf, "coll_sn", here), name}, std::pair(row, here));
        if (!fresh && row.time < place->second.first.time) place->second = {row, here};
    });
    for (const auto& [key, found] : shortest) add_collective(samples, found.first, found.second);
    return samples;
}

}  // namespace rehearse::calibrate
