// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_neusight.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <regex>
#include <utility>
#include <vector>

#include "calibrate/boards.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/measured_boards.hpp"
#include "models/price_models.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;
using calibrate::JudgedChoice;

constexpr std::size_t pooled_kernels = 600, pilots = 20;

/// Rows of one board, priced in one way.
struct Way {
    std::string board, prices;
    std::vector<JudgedChoice> rows;
    bool chooses = true;  // knows families
};

std::vector<MeasuredBoard> boards_of(const NeuSightOptions& options) {
    std::vector<MeasuredBoard> boards = options.samples.empty()
                                            ? models::measured_boards()
                                            : models::measured_boards(read_file(options.samples), options.samples);
    return boards;
}

// By DeepBench's kernels, on the board's data sheet.
std::vector<JudgedChoice> by_deepbench(const MeasuredBoard& board) {
    const std::shared_ptr<const PriceModel> model = models::deepbench_of(board);
    std::vector<JudgedChoice> rows;
    for (const BoardKernel& kernel : board.kernels) {
        const auto answer = model->answer(kernel.sample.problem);
        require(answer.has_value(), "DeepBench has convolutions of every GPU");
        rows.push_back(
            {{kernel.sample.problem, kernel.sample.time, {std::log(answer->time.value), answer->error}}, false});
    }
    return rows;
}

std::vector<Way> ways_of(const std::vector<MeasuredBoard>& boards, std::size_t at, const std::string& leave) {
    const MeasuredBoard& board = boards[at];
    if (leave == "device") {
        if (boards.size() < 2) throw InputError("--leave device: the table has one board, and nothing to learn from");
        return {{board.name, "data sheet", calibrate::judge_left_out(boards, at, pooled_kernels, 0)},
                {board.name, fmt::format("{} kernels", pilots),
                 calibrate::judge_left_out(boards, at, pooled_kernels, pilots)}};
    }
    std::vector<Way> ways{{board.name, "DeepBench", by_deepbench(board), false},
                          {board.name, "bound", calibrate::judge_bound(board)}};
    ways.push_back({board.name, "board",
                    leave == "family" ? calibrate::judge_unseen_sides(board, models::shipped_count)
                                      : calibrate::judge_unseen(board, models::shipped_count)});
    return ways;
}

Json group_of(const Way& way) {
    const calibrate::ErrorSummary s = calibrate::summarize(calibrate::judged_of(way.rows));
    Json group{{"set", "neusight"},  {"device", way.board},  {"precision", "f32"}, {"kind", "conv2d"},
               {"pass", "forward"},  {"prices", way.prices}, {"rows", s.rows},     {"median_error", s.median},
               {"p90_error", s.p90}, {"in_band", s.in_band}};
    if (way.chooses) group["family_right"] = calibrate::family_right(way.rows);
    return group;
}

std::regex pattern_of(const std::string& filter) {
    try {
        return std::regex{filter};
    } catch (const std::regex_error& error) {
        throw InputError(fmt::format("--filter '{}': not a regular expression: {}", filter, error.what()));
    }
}

std::string footer_of(const std::string& leave) {
    const std::string what = "Whole convolutions of 3x3, stride 1, on the device, without the host's part. ";
    if (leave == "device")
        return what + fmt::format(
                          "data sheet: from {} kernels of the other boards; {} kernels: and one factor from so "
                          "many of its own, taken evenly",
                          pooled_kernels, pilots);
    return what +
           fmt::format(
               "DeepBench: what its kernels say, scaled by the data sheet; bound: the least over the "
               "library's algorithms; board: and what {} of its kernels took beyond, {}",
               models::shipped_count,
               leave == "family" ? "none of them on images with the side of the row's" : "the row not among them");
}

}  // namespace

Report validate_neusight(const NeuSightOptions& options, const Progress& progress, double& median) {
    const std::vector<MeasuredBoard> boards = boards_of(options);
    Report report{
        document(
            "validation",
            {{"set", "neusight"}, {"samples", options.samples}, {"leave", options.leave}, {"filter", options.filter}}),
        {},
        footer_of(options.leave)};
    Json& groups = report.document["groups"] = Json::array();
    std::vector<calibrate::Judged> shipped;
    const std::regex wanted = pattern_of(options.filter);
    for (std::size_t i = 0; i < boards.size(); ++i) {
        if (!goes_on(progress, static_cast<std::int64_t>(i), std::ssize(boards))) break;
        if (!std::regex_search(boards[i].name + " f32 conv2d forward", wanted)) continue;
        std::vector<calibrate::Judged> last;
        for (const Way& way : ways_of(boards, i, options.leave)) {
            if (way.rows.empty()) continue;
            groups.push_back(group_of(way));
            last = calibrate::judged_of(way.rows);
        }
        shipped.insert(shipped.end(), last.begin(), last.end());
    }
    if (shipped.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    const calibrate::ErrorSummary all = calibrate::summarize(shipped);
    median = all.median;
    report.document["summary"]["conv2d"] = {
        {"rows", all.rows}, {"median_error", all.median}, {"p90_error", all.p90}, {"in_band", all.in_band}};
    report.tables = {{"groups",
                      "error = |predicted - measured| / measured; the band should hold 90 %",
                      {{"device", "board"},
                       {"prices", "prices"},
                       {"rows", "rows", Show::count},
                       {"median_error", "median", Show::percent},
                       {"p90_error", "p90", Show::percent},
                       {"in_band", "in band", Show::percent},
                       {"family_right", "family right", Show::percent}}}};
    return report;
}

void learn_neusight(const std::string& path) {
    constexpr std::size_t kernels = 200;
    constexpr int rounds = 100;
    const std::vector<MeasuredBoard> boards = models::measured_boards();
    const calibrate::Family learned = calibrate::learn_boards(boards, kernels, rounds);
    replace_file(path, models::lengths_table(learned.experts, learned.band));
}

}  // namespace rehearse::cli
