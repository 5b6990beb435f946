// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "calibrate/collective_lines.hpp"
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

/// Of one test, which tells by all of its rows what it is: rates of small messages are printed as 0.00.
struct TestRow {
    CollectiveRow row;
    std::string here;
};

// size count type redop root time algbw busbw #wrong, then the same in place; a header names the columns.
class NcclReader {
public:
    explicit NcclReader(const std::string& origin) : origin_(origin) {}

    FileSamples read(std::string_view text) {
        each_line(text, origin_, [&](std::string_view line, const std::string& here) {
            const std::vector<std::string_view> words = words_of(line);
            if (words.empty()) return;
            if (words.front().starts_with('#')) {
                header(words, here);
            } else if (line.find("Test NCCL failure") != std::string_view::npos ||
                       line.find("Test CUDA failure") != std::string_view::npos ||
                       line.find("NCCL WARN") != std::string_view::npos) {
                samples_.skipped.push_back(fmt::format("{}: {}", here, line));
            } else if (!times_.empty()) {
                row(words, here);
            }
        });
        end_test();
        return std::move(samples_);
    }

private:
    void header(const std::vector<std::string_view>& words, const std::string& here) {
        const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
        if (words.size() > 1 && (words[1] == "nThread" || words[1] == "Using")) {
            end_test();
            ranks_ = 0;
        }
        if (words.size() > 1 && words[1] == "Rank") ++ranks_;
        if (words.size() > 4 && words[1] == "Collective" && words[3] == "starting:") {  // since version 2.17
            end_test();
            named_ = words[4];
        }
        if (has("cputime")) {
            end_test();
            samples_.skipped.push_back(
                fmt::format("{}: times of the host's processor (-C 1), which are none of messages", here));
        }
        if (!has("time") || !has("size")) return;
        end_test();
        operation_ = root_ = 0;
        for (std::size_t i = 1; i < words.size(); ++i) {  // after the '#'
            if (words[i] == "time") times_.push_back(i - 1);
            if (words[i] == "redop") operation_ = i - 1;
            if (words[i] == "root") root_ = i - 1;
        }
        counts_wrong_ = has("#wrong");  // before, "error": how far sums in floating point were off
    }

    void row(const std::vector<std::string_view>& words, const std::string& here) {
        const auto bytes = number_of(words.front());
        if (!bytes || !(*bytes > 0)) return;
        if (words.size() < times_.front() + 3) {
            samples_.skipped.push_back(fmt::format("{}: {} of {} columns", here, words.size(), times_.front() + 3));
            return;
        }
        sums_ = operation_ != 0 && operation_ < words.size() && words[operation_] != "none";
        rooted_ = root_ != 0 && root_ < words.size() && words[root_] != "-1";
        for (std::size_t i = 0; i < times_.size(); ++i) {
            const std::size_t at = times_[i];
            if (words.size() < at + 3) continue;
            const auto time = number_of(words[at]);
            if (!time || !(*time > 0)) continue;  // N/A: not in place
            const auto wrong = counts_wrong_ && words.size() > at + 3 ? number_of(words[at + 3]) : std::nullopt;
            if (wrong && *wrong > 0) {
                samples_.skipped.push_back(fmt::format("{}: {} wrong values: a time of nothing", here, *wrong));
                continue;
            }
            rows_.push_back({{"", ranks_, Bytes{*bytes}, Seconds{*time * 1e-6}, i > 0}, here});
            const auto algbw = printed(words[at + 1]), busbw = printed(words[at + 2]);
            if (algbw && busbw && (!fastest_ || algbw->value > algbw_.value)) {
                algbw_ = *algbw;
                busbw_ = *busbw;
                fastest_ = rows_.size() - 1;
            }
        }
    }

    void end_test() {
        if (!rows_.empty()) {
            const std::string kind = this->kind();
            for (TestRow& each : rows_) {
                each.row.kind = kind;
                if (ranks_ < 2) each.row.ranks = 2;  // sendrecv, as kind() says
                if (!kind.empty()) add_collective(samples_, each.row, each.here);
            }
        }
        if (!times_.empty()) named_.clear();
        rows_.clear();
        times_.clear();
        fastest_.reset();
    }

    // By its name, where the version prints it. "": of a test that is not read.
    std::string kind() {
        static const std::map<std::string_view, std::string> kinds{
            {"all_reduce_perf", "all_reduce"}, {"all_gather_perf", "all_gather"},
            {"reduce_perf", "reduce"},         {"reduce_scatter_perf", "reduce_scatter"},
            {"alltoall_perf", "all_to_all"},   {"broadcast_perf", "broadcast"},
            {"gather_perf", "gather"},         {"scatter_perf", "scatter"},
            {"sendrecv_perf", "send_recv"}};
        const std::string& here = rows_.front().here;
        const bool pairs = named_.empty() ? !sums_ && !rooted_ : named_ == "sendrecv_perf";
        if (ranks_ < 2 && !pairs) {
            throw InputError(
                fmt::format("{}: the lines '# Rank ...' that say how many ranks there were are missing", here));
        }
        if (named_.empty()) return kind_by_rates();
        if (const auto found = kinds.find(named_); found != kinds.end()) return found->second;
        samples_.skipped.push_back(fmt::format("{}: {}, which is no collective that is priced", here, named_));
        return "";
    }

    // By the operation, the root and the ratio of the two bandwidths in the row with the highest.
    std::string kind_by_rates() const {
        const std::string& here = fastest_ ? rows_[*fastest_].here : rows_.front().here;
        const auto ranks = static_cast<double>(ranks_ < 2 ? 2 : ranks_);
        const double share = (ranks - 1) / ranks;
        std::vector<std::pair<std::string, double>> tests;
        if (sums_ && !rooted_) tests = {{"all_reduce", 2 * share}, {"reduce_scatter", share}};
        if (sums_ && rooted_) tests = {{"reduce", 1}};
        if (!sums_ && rooted_) tests = {{"broadcast", 1}, {"gather", share}};
        if (!sums_ && !rooted_) tests = {{"send_recv", 1}, {"all_gather", share}};  // or all_to_all: as many bytes
        const std::string possible = join_names(tests);
        std::erase_if(tests, [&](const auto& test) { return fastest_ && !may_be(busbw_, algbw_, test.second); });
        if (tests.size() == 1) return tests.front().first;
        if (tests.empty()) {
            throw InputError(
                fmt::format("{}: busbw / algbw is {:.2f}, which no test of nccl-tests has among {} ranks: "
                            "the lines '# Rank ...' do not say all ranks",
                            here, busbw_.value / algbw_.value, ranks));
        }
        throw InputError(
            fmt::format("{}: no row is long enough for busbw / algbw to tell {} apart: give larger messages "
                        "(-e 64M), or the line '# Collective test starting: ...' of version 2.17",
                        here, possible));
    }

    static std::string join_names(const std::vector<std::pair<std::string, double>>& tests) {
        std::string names;
        for (const auto& [name, factor] : tests) names += (names.empty() ? "" : " and ") + name;
        return names;
    }

    const std::string& origin_;
    FileSamples samples_;
    std::int64_t ranks_ = 0;
    std::vector<std::size_t> times_;  // columns: out of place, in place
    std::size_t operation_ = 0, root_ = 0;
    bool counts_wrong_ = true, sums_ = false, rooted_ = false;
    std::vector<TestRow> rows_;
    Printed algbw_, busbw_;               // of rows_[*fastest_]
    std::optional<std::size_t> fastest_;  // none: no row says both
    std::string named_;
};

}  // namespace

FileSamples read_nccl(std::string_view text, const std::string& origin) { return NcclReader(origin).read(text); }

}  // namespace rehearse::calibrate
