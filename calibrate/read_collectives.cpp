// SPDX-License-Identifier: Apache-2.0
#include "calibrate/read_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "calibrate/collective_times.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "match/pattern.hpp"

namespace rehearse::calibrate {

namespace {

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::string_view word : split(line, ' ')) {
        while (!word.empty() && (word.back() == '\r' || word.back() == '\t')) word.remove_suffix(1);
        while (!word.empty() && word.front() == '\t') word.remove_prefix(1);
        if (!word.empty()) words.push_back(word);
    }
    return words;
}

std::optional<double> number_of(std::string_view word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

// What launchers write before each line to tell whose it is: "0: " (srun --label), "[0] " (Intel MPI, MPICH),
// "[1,0]<stdout>:" (Open MPI's --tag-output), or nothing.
std::string_view without_rank(std::string_view line) {
    static const match::Pattern tagged(R"((\s*(?:\[[\d,]+\](?:<std(?:out|err)>:)?|\d+:)\s?)[^\r\n]*\s*)", "a line");
    const auto tag = tagged.groups_of(line);
    return tag ? line.substr(tag->front().size()) : line;
}

template <typename Take>
void each_line(std::string_view text, const std::string& origin, const Take& take) {
    std::int64_t number = 0;
    for (const std::string_view line : split(text, '\n'))
        take(without_rank(line), fmt::format("{}:{}", origin, ++number));
}

// A chain's hops are not one message: of broadcasts and reductions only sizes count that fill it.
constexpr Bytes fills_a_chain{1 << 20};

void add(FileSamples& samples, const CollectiveRow& row, const std::string& here) {
    const std::optional<RingRounds> rounds = ring_rounds(row.kind, row.ranks);
    if (!rounds) {
        throw InputError(fmt::format("{}: {} among {} ranks: at least 2", here, row.kind, row.ranks));
    }
    if ((row.kind == "broadcast" || row.kind == "reduce") && row.bytes < fills_a_chain && row.ranks > 2) {
        samples.skipped.push_back(fmt::format("{}: {} of {} among {} ranks: hops of a chain, not one message", here,
                                              row.kind, to_string(row.bytes), row.ranks));
        return;
    }
    samples.messages.push_back(rounds->message(row.bytes, row.time));
    samples.collectives.push_back(row);
}

// --- nccl-tests

// size count type redop root time algbw busbw #wrong, then the same in place; a header names the columns.
class NcclReader {
public:
    explicit NcclReader(const std::string& origin) : origin_(origin) {}

    FileSamples read(std::string_view text) {
        each_line(text, origin_, [&](std::string_view line, const std::string& here) {
            const std::vector<std::string_view> words = words_of(line);
            if (words.empty()) return;
            if (words.front().starts_with('#')) {
                header(words);
            } else if (line.find("Test NCCL failure") != std::string_view::npos ||
                       line.find("Test CUDA failure") != std::string_view::npos ||
                       line.find("NCCL WARN") != std::string_view::npos) {
                samples_.skipped.push_back(fmt::format("{}: {}", here, line));
            } else if (!times_.empty()) {
                row(words, here);
            }
        });
        return std::move(samples_);
    }

private:
    void header(const std::vector<std::string_view>& words) {
        const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
        if (words.size() > 1 && (words[1] == "nThread" || words[1] == "Using")) ranks_ = 0;
        if (words.size() > 1 && words[1] == "Rank") ++ranks_;
        if (!has("time") || !has("size")) return;
        times_.clear();
        for (std::size_t i = 1; i < words.size(); ++i) {  // after the '#'
            if (words[i] == "time") times_.push_back(i - 1);
            if (words[i] == "redop") operation_ = i - 1;
            if (words[i] == "root") root_ = i - 1;
        }
    }

    void row(const std::vector<std::string_view>& words, const std::string& here) {
        const auto bytes = number_of(words.front());
        if (!bytes || !(*bytes > 0)) return;
        if (words.size() < times_.front() + 3) {
            samples_.skipped.push_back(fmt::format("{}: {} of {} columns", here, words.size(), times_.front() + 3));
            return;
        }
        for (std::size_t i = 0; i < times_.size(); ++i) {
            const std::size_t at = times_[i];
            if (words.size() < at + 3) continue;
            const auto time = number_of(words[at]), algbw = number_of(words[at + 1]), busbw = number_of(words[at + 2]);
            if (!time || !(*time > 0)) continue;  // N/A: not in place
            const auto wrong = words.size() > at + 3 ? number_of(words[at + 3]) : std::nullopt;
            if (wrong && *wrong > 0) {
                samples_.skipped.push_back(fmt::format("{}: {} wrong values: a time of nothing", here, *wrong));
                continue;
            }
            add(samples_, {kind(words, algbw, busbw, here), ranks_, Bytes{*bytes}, Seconds{*time * 1e-6}, i > 0}, here);
        }
    }

    // The ratio of the two bandwidths, printed with two decimals, where it is known.
    std::string kind(const std::vector<std::string_view>& words, std::optional<double> algbw,
                     std::optional<double> busbw, const std::string& here) {
        const bool sums = operation_ < words.size() && words[operation_] != "none";
        const bool rooted = root_ != 0 && root_ < words.size() && words[root_] != "-1";
        if (ranks_ < 2 && !sums && !rooted) ranks_ = 2;  // sendrecv among ranks that are not listed
        if (ranks_ < 2) {
            throw InputError(
                fmt::format("{}: the lines '# Rank ...' that say how many ranks there were are missing", here));
        }
        const double share = static_cast<double>(ranks_ - 1) / static_cast<double>(ranks_);
        const bool told = algbw && busbw && *algbw > 0.1;
        if (!told && !kind_.empty()) return kind_;
        const double factor = told ? *busbw / *algbw : sums && !rooted ? 2 * share : 1;
        const auto near = [&](double expected) { return std::abs(factor / expected - 1) < 0.1; };
        if (sums && !rooted && near(2 * share)) return kind_ = "all_reduce";
        if (sums && !rooted && near(share)) return kind_ = "reduce_scatter";
        if (sums && rooted && near(1)) return kind_ = "reduce";
        if (!sums && rooted) return kind_ = near(1) ? "broadcast" : "gather";
        if (!sums && near(1)) return kind_ = "send_recv";
        if (!sums && near(share)) return kind_ = "all_gather";  // or all_to_all: as many bytes
        throw InputError(
            fmt::format("{}: busbw / algbw is {:.2f}, which no test of nccl-tests has among {} ranks: the "
                        "lines '# Rank ...' do not say all ranks",
                        here, factor, ranks_));
    }

    const std::string& origin_;
    FileSamples samples_;
    std::int64_t ranks_ = 0;
    std::vector<std::size_t> times_;  // columns: out of place, in place
    std::size_t operation_ = 0, root_ = 0;
    std::string kind_;
};

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

class OsuReader {
public:
    OsuReader(const std::string& origin, std::int64_t ranks) : origin_(origin), ranks_(ranks) {}

    FileSamples read(std::string_view text) {
        each_line(text, origin_, [&](std::string_view line, const std::string& here) {
            const std::vector<std::string_view> words = words_of(line);
            if (!words.empty() && words.front().starts_with('#')) {
                if (line.find("OSU") != std::string_view::npos) title_ = line;
                return;
            }
            if (words.size() < 2 || title_.empty()) return;
            const auto size = number_of(words[0]), value = number_of(words[1]);
            if (size && value && *size > 0 && *value > 0) row(*size, *value, here);
        });
        return std::move(samples_);
    }

private:
    bool titled(std::string_view part) const { return title_.find(part) != std::string_view::npos; }

    void row(double size, double value, const std::string& here) {
        for (const OsuTest& test : osu_tests) {
            if (titled(test.title)) return collective(test, size, value, here);
        }
        constexpr double window = 65536;  // from here on a window in flight fills the link
        const bool many = titled("Multi");
        if (titled("Latency Test") && !many) {
            samples_.messages.push_back({Bytes{size}, Seconds{value * 1e-6}});
        } else if (titled("Bandwidth Test") && !many) {
            const double one_way = titled("Bi-") ? value / 2 : value;  // both directions together
            if (size >= window) samples_.messages.push_back({Bytes{size}, Seconds{size / (one_way * 1e6)}});
        } else {
            throw InputError(
                fmt::format("{}: '{}': of OSU, latency, bandwidth (of one pair, one or both ways) and blocking "
                            "collectives are read",
                            here, title_));
        }
    }

    void collective(const OsuTest& test, double size, double value, const std::string& here) {
        if (ranks_ < 2) {
            throw InputError(
                fmt::format("{}: OSU's {} does not say among how many ranks: give --ranks N", here, test.kind));
        }
        const double whole = test.per_rank ? size * static_cast<double>(ranks_) : size;
        add(samples_, {std::string{test.kind}, ranks_, Bytes{whole}, Seconds{value * 1e-6}, false}, here);
    }

    const std::string& origin_;
    std::int64_t ranks_;
    std::string_view title_;
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

FileSamples read_nccl(std::string_view text, const std::string& origin) { return NcclReader(origin).read(text); }

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
        const CollectiveRow row{kind, ranks, whole_of(kind, bytes, ranks), Seconds{us * 1e-6}, false};
        const auto [place, fresh] = shortest.try_emplace(
            {header.value("id", ""), whole_number(perf, "coll_sn", here), name}, std::pair(row, here));
        if (!fresh && row.time < place->second.first.time) place->second = {row, here};
    });
    for (const auto& [key, found] : shortest) add(samples, found.first, found.second);
    return samples;
}

}  // namespace rehearse::calibrate
