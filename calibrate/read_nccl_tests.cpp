// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "calibrate/collective_lines.hpp"
#include "calibrate/collective_times.hpp"
#include "calibrate/nccl_ranks.hpp"
#include "calibrate/read_collectives.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

// A printed rate and how far it may be from what was measured.
struct Printed {
    double value = 0, half = 0;
};

std::optional<Printed> printed(std::string_view word) {
    const std::optional<double> value = number_of(word);
    if (!value) return std::nullopt;
    const std::size_t point = word.find('.');
    const auto decimals = static_cast<double>(point == std::string_view::npos ? 0 : word.size() - point - 1);
    return Printed{*value, 0.5 * std::pow(10, -decimals)};
}

// Whether busbw / algbw may be `factor`, by what was printed of both.
bool may_be(const Printed& busbw, const Printed& algbw, double factor) {
    return std::abs(busbw.value - factor * algbw.value) <= busbw.half + factor * algbw.half;
}

// size count type redop root time algbw busbw #wrong, then the same in place; a header names the columns.
class NcclReader {
public:
    NcclReader(const std::string& origin, std::int64_t ranks) : origin_(origin), otherwise_(ranks) {}

    NcclLog read(std::string_view text) {
        each_line(text, origin_, [&](std::string_view line, const std::string& here) {
            const std::vector<std::string_view> words = words_of(line);
            if (words.empty()) return;
            if (words.front().starts_with('#')) {
                header(words, here);
            } else if (line.find("Test NCCL failure") != std::string_view::npos ||
                       line.find("Test CUDA failure") != std::string_view::npos ||
                       line.find("NCCL WARN") != std::string_view::npos) {
                log_.skipped.push_back(fmt::format("{}: {}", here, line));
            } else if (!times_.empty()) {
                row(words, here, is_last(line, text));
            }
        });
        end_test();
        return std::move(log_);
    }

private:
    void header(const std::vector<std::string_view>& words, const std::string& here) {
        const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
        if (words.size() > 1 && (words[1] == "nThread" || words[1] == "Using")) {
            end_test();
            ranks_.clear();
        }
        if (words.size() > 1 && words[1] == "Rank") ranks_.push_back(rank_line(words));
        if (words.size() > 4 && words[1] == "Collective" && words[3] == "starting:") {  // since version 2.17
            end_test();
            named_ = words[4];
        }
        if (has("cputime")) {
            end_test();
            log_.skipped.push_back(
                fmt::format("{}: times of the host's processor (-C 1), which are none of messages", here));
        }
        if (!has("time") || !has("size")) return;
        end_test();
        operation_ = root_ = 0;
        columns_ = words.size() - 1;
        for (std::size_t i = 1; i < words.size(); ++i) {  // after the '#'
            if (words[i] == "time") times_.push_back(i - 1);
            if (words[i] == "redop") operation_ = i - 1;
            if (words[i] == "root") root_ = i - 1;
        }
        counts_wrong_ = has("#wrong");  // before, "error": how far sums in floating point were off
    }

    void row(const std::vector<std::string_view>& words, const std::string& here, bool last) {
        const auto bytes = number_of(words.front());
        if (!bytes || !(*bytes > 0)) return;
        // A text that ends within a row may end within a number.
        if (words.size() < times_.front() + 3 || (last && words.size() < columns_)) {
            log_.skipped.push_back(fmt::format("{}: {} of {} columns: cut off", here, words.size(), columns_));
            return;
        }
        sums_ = operation_ != 0 && operation_ < words.size() && words[operation_] != "none";
        rooted_ = root_ != 0 && root_ < words.size() && words[root_] != "-1";
        for (std::size_t i = 0; i < times_.size(); ++i) {
            const std::size_t at = times_[i];
            if (words.size() < at + 3) {
                log_.skipped.push_back(
                    fmt::format("{}: {} of {} columns: no time in place", here, words.size(), columns_));
                continue;
            }
            if (words[at] == "N/A") continue;  // not in place
            const auto time = number_of(words[at]);
            if (!time || !(*time > 0)) {
                log_.skipped.push_back(
                    fmt::format("{}: a time of '{}': right would be a number above 0, with a point", here, words[at]));
                continue;
            }
            const auto wrong = counts_wrong_ && words.size() > at + 3 ? number_of(words[at + 3]) : std::nullopt;
            if (wrong && *wrong > 0) {
                log_.skipped.push_back(fmt::format("{}: {} wrong values: a time of nothing", here, *wrong));
                continue;
            }
            rows_.push_back({{"", 0, Bytes{*bytes}, Seconds{*time * 1e-6}, i > 0}, here, !named_.empty()});
            const auto algbw = printed(words[at + 1]), busbw = printed(words[at + 2]);
            if (algbw && busbw && (!fastest_ || algbw->value > algbw_.value)) {
                algbw_ = *algbw;
                busbw_ = *busbw;
                fastest_ = rows_.size() - 1;
            }
        }
    }

    void end_test() {
        if (!rows_.empty()) add_test();
        if (!times_.empty()) named_.clear();
        rows_.clear();
        times_.clear();
        fastest_.reset();
    }

    void add_test() {
        if (!named_.empty() && named_kind().empty()) {
            log_.skipped.push_back(
                fmt::format("{}: {}, which is no collective that is priced", rows_.front().here, named_));
            return;
        }
        if (ranks_.size() == 1) {
            log_.skipped.push_back(
                fmt::format("{}: a test on one rank, which has nobody to send to", rows_.front().here));
            return;
        }
        log_.asked_ranks = log_.asked_ranks || ranks_.empty();
        const auto [kind, among] = kind_and_ranks();
        for (NcclRow& each : rows_) {
            each.row.kind = kind;
            each.row.ranks = among.ranks;
            each.row.hosts = among.hosts;
            log_.rows.push_back(std::move(each));
        }
    }

    // By its name, where the version prints it. "": of a test that is not read.
    std::string named_kind() const {
        static const std::map<std::string_view, std::string> kinds{
            {"all_reduce_perf", "all_reduce"}, {"all_gather_perf", "all_gather"},
            {"reduce_perf", "reduce"},         {"reduce_scatter_perf", "reduce_scatter"},
            {"alltoall_perf", "all_to_all"},   {"broadcast_perf", "broadcast"},
            {"gather_perf", "gather"},         {"scatter_perf", "scatter"},
            {"sendrecv_perf", "send_recv"}};
        const auto found = kinds.find(named_);
        return found == kinds.end() ? std::string{} : found->second;
    }

    // What it may be: as it is named, or by its operation and root.
    std::vector<std::string> possible_kinds() const {
        if (!named_.empty()) return {named_kind()};
        if (sums_)
            return rooted_ ? std::vector<std::string>{"reduce"}
                           : std::vector<std::string>{"all_reduce", "reduce_scatter"};
        if (rooted_) return {"broadcast", "gather"};
        return {"send_recv", "all_gather"};  // or all_to_all: as many bytes
    }

    // By the ratio of the two rates in the row with the highest.
    std::pair<std::string, Communicator> kind_and_ranks() const {
        const std::string& here = fastest_ ? rows_[*fastest_].here : rows_.front().here;
        const std::vector<std::string> kinds = possible_kinds();
        std::vector<Communicator> among = communicators(ranks_, otherwise_);
        if (among.back().ranks < 2) {
            if (std::ranges::find(kinds, "send_recv") == kinds.end()) {
                throw InputError(
                    fmt::format("{}: the lines '# Rank ...' that say how many ranks there were are missing: give "
                                "--ranks N",
                                rows_.front().here));
            }
            among = {{2, 0}};
        }
        for (const Communicator& each : among) {
            std::vector<std::string> left = kinds;
            std::erase_if(left, [&](const std::string& kind) {
                return fastest_ && !may_be(busbw_, algbw_, ring_rounds(kind, each.ranks)->bus_factor());
            });
            if (left.size() == 1) return {left.front(), each};
            if (left.empty()) continue;
            throw InputError(
                fmt::format("{}: no row is long enough for busbw / algbw to tell {} apart: give larger messages "
                            "(-e 64M), or the line '# Collective test starting: ...' of version 2.17",
                            here, fmt::join(kinds, " and ")));
        }
        throw InputError(
            fmt::format("{}: busbw / algbw is {:.2f}, which {} has among {} ranks: the lines '# Rank ...' do not say "
                        "the ranks of one communicator (NCCL_TESTS_SPLIT makes several), or not all",
                        here, busbw_.value / algbw_.value,
                        named_.empty() ? "no test of nccl-tests" : "no " + kinds.front(), among.back().ranks));
    }

    const std::string& origin_;
    std::int64_t otherwise_;  // ranks, where no line tells
    NcclLog log_;
    std::vector<RankLine> ranks_;
    std::vector<std::size_t> times_;  // columns: out of place, in place
    std::size_t operation_ = 0, root_ = 0, columns_ = 0;
    bool counts_wrong_ = true, sums_ = false, rooted_ = false;
    std::vector<NcclRow> rows_;           // of one test, which all of its rows tell: small rates are printed as 0.00
    Printed algbw_, busbw_;               // of rows_[*fastest_]
    std::optional<std::size_t> fastest_;  // none: no row says both
    std::string named_;
};

}  // namespace

NcclLog read_nccl_log(std::string_view text, const std::string& origin, std::int64_t ranks) {
    return NcclReader(origin, ranks).read(text);
}

FileSamples read_nccl(std::string_view text, const std::string& origin, std::int64_t ranks) {
    NcclLog log = read_nccl_log(text, origin, ranks);
    FileSamples samples;
    samples.skipped = std::move(log.skipped);
    samples.asked_ranks = log.asked_ranks;
    for (const NcclRow& each : log.rows) add_collective(samples, each.row, each.here);
    return samples;
}

}  // namespace rehearse::calibrate
