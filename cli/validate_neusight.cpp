// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_neusight.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "calibrate/board_errors.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"
#include "models/elementwise_rows.hpp"
#include "models/measured_boards.hpp"
#include "models/models.hpp"
#include "models/price_models.hpp"

namespace rehearse::cli {

namespace {

using calibrate::BoardGroup;
using calibrate::PricedRows;

bool known_to_deepbench(const MeasuredBoard& board) { return board.kind == "conv2d" || board.kind == "matmul"; }

calibrate::Leave leave_of(const std::string& word) {
    if (word == "device") return calibrate::Leave::device;
    return word == "family" ? calibrate::Leave::family : calibrate::Leave::shape;
}

std::vector<PricedRows> priced_rows_of(const std::vector<MeasuredBoard>& all, std::size_t at,
                                       const std::string& leave) {
    const MeasuredBoard& board = all[at];
    if (leave == "device") return calibrate::judge_by_others(all, at);
    std::vector<PricedRows> found = calibrate::judge_own(board, leave_of(leave), models::shipped_count(board.kind));
    if (known_to_deepbench(board))
        found.insert(found.begin(), calibrate::judge_by(*models::deepbench_of(board), board));
    return found;
}

Json group_of(const std::string& device, const std::string& kind, const std::string& prices, const BoardGroup& group) {
    const calibrate::ErrorSummary& s = group.errors;
    Json shown{{"set", "neusight"},  {"device", device},    {"precision", "f32"},
               {"kind", kind},       {"pass", "forward"},   {"sizes", group.network ? "transformers" : "random"},
               {"prices", prices},   {"rows", s.rows},      {"median_error", s.median},
               {"p90_error", s.p90}, {"in_band", s.in_band}};
    if (group.family_right) shown["family_right"] = *group.family_right;
    return shown;
}

DeviceClass device_named(const std::string& name) {
    const std::string text = fmt::format(
        "name = \"m\"\n[[device]]\nname = \"gpu\"\nlike = \"{}\"\n[[node]]\nname = \"n\"\n"
        "devices = [{{ class = \"gpu\", name = \"gpu\" }}]\n",
        name);
    return models::parse_machine(text, "models/devices.toml").classes.at(0);
}

// Element-wise operators, which nothing is fitted on, at the price that `predict` has for the device.
void add_elementwise(const match::Pattern& wanted, Json& groups, calibrate::KindErrors& errors) {
    for (const models::ElementwiseRows& rows : models::elementwise_rows()) {
        if (!wanted.is_in(fmt::format("{} f32 elementwise forward", rows.device))) continue;
        const std::vector<calibrate::Judged> judged = calibrate::judge_on(rows.samples, device_named(rows.device));
        groups.push_back(group_of(rows.device, "elementwise", "share", {false, calibrate::summarize(judged), {}}));
        errors.add("elementwise", judged);
    }
}

std::string footer_of(const std::string& leave) {
    const std::string what =
        "Whole kernels on the device, without the host's part: convolutions of 3x3, stride 1; dense layers (matmul) "
        "and batches of products (groupedmatmul); softmax and layer normalization from a megabyte. ";
    if (leave == "device")
        return what + fmt::format(
                          "data sheet: from {} kernels of the other boards; {} kernels: and one factor from so "
                          "many of its own, taken evenly",
                          calibrate::pooled_kernels, calibrate::pilot_kernels);
    return what +
           fmt::format(
               "DeepBench: what its kernels say, scaled by the data sheet; bound: the least over the library's "
               "algorithms and tiles; board: and what those most like the row took beyond, of half of the board's "
               "kernels of a kind (of {} convolutions at most), {}; share: element-wise operators from a megabyte at "
               "the device's share of the bandwidth",
               models::shipped_convolutions,
               leave == "family" ? "none on images with the side of the row's, at its depth or length"
                                 : "the row not among them");
}

}  // namespace

Report validate_neusight(const NeuSightOptions& options, const Progress& progress, double& median) {
    const std::vector<MeasuredBoard> boards =
        options.samples.empty() ? models::measured_boards()
                                : models::measured_boards(read_file(options.samples), options.samples);
    Report report{
        document(
            "validation",
            {{"set", "neusight"}, {"samples", options.samples}, {"leave", options.leave}, {"filter", options.filter}}),
        {},
        footer_of(options.leave)};
    Json& groups = report.document["groups"] = Json::array();
    calibrate::KindErrors shipped;
    const match::Pattern wanted{options.filter, "--filter"};
    for (std::size_t i = 0; i < boards.size(); ++i) {
        if (!goes_on(progress, static_cast<std::int64_t>(i), std::ssize(boards))) break;
        const MeasuredBoard& board = boards[i];
        if (!wanted.is_in(fmt::format("{} f32 {} forward", board.name, board.kind))) continue;
        std::vector<calibrate::Judged> last;
        for (const PricedRows& priced : priced_rows_of(boards, i, options.leave)) {
            if (priced.rows.empty()) continue;
            for (const BoardGroup& group : calibrate::groups_of(priced, board.kind))
                groups.push_back(group_of(board.name, board.kind, priced.prices, group));
            last = calibrate::judged_of(priced.rows);
        }
        shipped.add(board.kind, last);
    }
    if (options.samples.empty() && options.leave != "device") add_elementwise(wanted, groups, shipped);
    if (shipped.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    median = shipped.worst_median();
    for (const auto& [kind, all] : shipped.summary()) {
        report.document["summary"][kind] = {
            {"rows", all.rows}, {"median_error", all.median}, {"p90_error", all.p90}, {"in_band", all.in_band}};
    }
    report.tables = {{"groups",
                      "error = |predicted - measured| / measured; the band should hold 90 %",
                      {{"device", "board"},
                       {"kind", "kind"},
                       {"sizes", "sizes"},
                       {"prices", "prices"},
                       {"rows", "rows", Show::count},
                       {"median_error", "median", Show::percent},
                       {"p90_error", "p90", Show::percent},
                       {"in_band", "in band", Show::percent},
                       {"family_right", "family right", Show::percent}}}};
    return report;
}

void learn_neusight(const std::string& path) {
    std::vector<models::LearnedKind> learned;
    std::vector<models::LearnedBand> bands;
    for (const calibrate::LearnedBoards& all : calibrate::learn_kinds(models::measured_boards())) {
        learned.push_back({all.kind, all.family.experts, all.family.band});
        for (const auto& [board, band] : all.bands) bands.push_back({board, all.kind, band});
    }
    replace_file(path, models::lengths_table(learned));
    replace_file(std::filesystem::path{path}.replace_filename("bands.csv").string(), models::bands_table(bands));
}

}  // namespace rehearse::cli
