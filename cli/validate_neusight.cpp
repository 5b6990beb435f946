// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_neusight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "calibrate/boards.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"
#include "models/elementwise_rows.hpp"
#include "models/measured_boards.hpp"
#include "models/models.hpp"
#include "models/price_models.hpp"
#include "prices/prices.hpp"

namespace rehearse::cli {

namespace {

using calibrate::JudgedChoice;

constexpr std::size_t pooled_kernels = 600, pilots = 20;

/// Rows of one board, as one source of prices has them.
struct PricedRows {
    const MeasuredBoard* board;
    std::string prices;
    std::vector<JudgedChoice> rows;
    bool chooses = true;  // knows families
};

std::vector<MeasuredBoard> boards_of(const NeuSightOptions& options) {
    std::vector<MeasuredBoard> boards = options.samples.empty()
                                            ? models::measured_boards()
                                            : models::measured_boards(read_file(options.samples), options.samples);
    return boards;
}

bool known_to_deepbench(const MeasuredBoard& board) { return board.kind == "conv2d" || board.kind == "matmul"; }

// By DeepBench's kernels, on the board's data sheet.
std::vector<JudgedChoice> by_deepbench(const MeasuredBoard& board) {
    const std::shared_ptr<const PriceModel> model = models::deepbench_of(board);
    std::vector<JudgedChoice> rows;
    for (const BoardKernel& kernel : board.kernels) {
        const auto answer = model->answer(kernel.sample.problem);
        require(answer.has_value(), "DeepBench has convolutions and products of every GPU");
        rows.push_back({calibrate::judge(kernel.sample, answer->time, answer->error), false, kernel.network});
    }
    return rows;
}

// The boards of one kind, and the one that is judged.
struct Peers {
    std::vector<MeasuredBoard> boards;
    std::size_t at = 0;
};

Peers peers_of(const std::vector<MeasuredBoard>& all, std::size_t at) {
    Peers peers;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].kind != all[at].kind) continue;
        if (i == at) peers.at = peers.boards.size();
        peers.boards.push_back(all[i]);
    }
    return peers;
}

std::vector<PricedRows> priced_rows_of(const std::vector<MeasuredBoard>& all, std::size_t at,
                                       const std::string& leave) {
    const MeasuredBoard& board = all[at];
    if (leave == "device") {
        const Peers peers = peers_of(all, at);
        if (peers.boards.size() < 2)
            throw InputError("--leave device: the table has one board, and nothing to learn from");
        return {{&board, "data sheet", calibrate::judge_left_out(peers.boards, peers.at, pooled_kernels, 0)},
                {&board, fmt::format("{} kernels", pilots),
                 calibrate::judge_left_out(peers.boards, peers.at, pooled_kernels, pilots)}};
    }
    std::vector<PricedRows> found;
    if (known_to_deepbench(board)) found.push_back({&board, "DeepBench", by_deepbench(board), false});
    found.push_back({&board, "bound", calibrate::judge_bound(board)});
    // Where prices rest on all kernels that there are, half of them judge the other half.
    const std::size_t count = std::min(models::shipped_count(board.kind), (board.kernels.size() + 1) / 2);
    found.push_back(
        {&board, "board",
         leave == "family" ? calibrate::judge_unseen_sides(board, count) : calibrate::judge_unseen(board, count)});
    return found;
}

Json group_of(const PricedRows& priced, const std::string& sizes, const std::vector<JudgedChoice>& rows) {
    const calibrate::ErrorSummary s = calibrate::summarize(calibrate::judged_of(rows));
    Json group{{"set", "neusight"},        {"device", priced.board->name},
               {"precision", "f32"},       {"kind", priced.board->kind},
               {"pass", "forward"},        {"sizes", sizes},
               {"prices", priced.prices},  {"rows", s.rows},
               {"median_error", s.median}, {"p90_error", s.p90},
               {"in_band", s.in_band}};
    if (priced.chooses && priced.board->kind == "conv2d") group["family_right"] = calibrate::family_right(rows);
    return group;
}

// Random sizes apart from those of networks.
void add_groups(const PricedRows& priced, Json& groups) {
    for (const bool network : {false, true}) {
        std::vector<JudgedChoice> rows;
        for (const JudgedChoice& row : priced.rows) {
            if (row.network == network) rows.push_back(row);
        }
        if (!rows.empty()) groups.push_back(group_of(priced, network ? "transformers" : "random", rows));
    }
}

// At the price that `predict` has for the device, of its own share of the bandwidth.
std::vector<calibrate::Judged> at_their_share(const models::ElementwiseRows& rows) {
    const std::string text = fmt::format(
        "name = \"m\"\n[[device]]\nname = \"gpu\"\nlike = \"{}\"\n[[node]]\nname = \"n\"\n"
        "devices = [{{ class = \"gpu\", name = \"gpu\" }}]\n",
        rows.device);
    const DeviceClass device = models::parse_machine(text, "models/devices.toml").classes.at(0);
    std::vector<calibrate::Judged> judged;
    for (const KernelSample& sample : rows.samples) {
        const Price answer = price(sample.problem, device);
        judged.push_back(calibrate::judge(sample, answer.time, answer.error));
    }
    return judged;
}

// Element-wise operators, which nothing is fitted on: adds their groups, and returns all of them.
std::vector<calibrate::Judged> add_elementwise(const match::Pattern& wanted, Json& groups) {
    std::vector<calibrate::Judged> all;
    for (const models::ElementwiseRows& rows : models::elementwise_rows()) {
        if (!wanted.is_in(fmt::format("{} f32 elementwise forward", rows.device))) continue;
        const std::vector<calibrate::Judged> judged = at_their_share(rows);
        const calibrate::ErrorSummary s = calibrate::summarize(judged);
        groups.push_back({{"set", "neusight"},
                          {"device", rows.device},
                          {"precision", "f32"},
                          {"kind", "elementwise"},
                          {"pass", "forward"},
                          {"sizes", "random"},
                          {"prices", "share"},
                          {"rows", s.rows},
                          {"median_error", s.median},
                          {"p90_error", s.p90},
                          {"in_band", s.in_band}});
        all.insert(all.end(), judged.begin(), judged.end());
    }
    return all;
}

std::string footer_of(const std::string& leave) {
    const std::string what =
        "Whole kernels on the device, without the host's part: convolutions of 3x3, stride 1; dense layers (matmul) "
        "and "
        "batches of products (groupedmatmul); softmax and layer normalization from a megabyte. ";
    if (leave == "device")
        return what + fmt::format(
                          "data sheet: from {} kernels of the other boards; {} kernels: and one factor from so "
                          "many of its own, taken evenly",
                          pooled_kernels, pilots);
    return what + fmt::format(
                      "DeepBench: what its kernels say, scaled by the data sheet; bound: the least over the "
                      "library's algorithms and tiles; board: and what {} of its kernels of a kind took beyond, {}; "
                      "share: element-wise operators from a megabyte at the device's share of the bandwidth",
                      models::shipped_count("matmul"),
                      leave == "family" ? "none of them on images with the side of the row's, at its depth or length"
                                        : "the row not among them");
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
    std::map<std::string, std::vector<calibrate::Judged>> shipped;  // by kind
    const match::Pattern wanted{options.filter, "--filter"};
    for (std::size_t i = 0; i < boards.size(); ++i) {
        if (!goes_on(progress, static_cast<std::int64_t>(i), std::ssize(boards))) break;
        if (!wanted.is_in(fmt::format("{} f32 {} forward", boards[i].name, boards[i].kind))) continue;
        std::vector<calibrate::Judged> last;
        for (const PricedRows& priced : priced_rows_of(boards, i, options.leave)) {
            if (priced.rows.empty()) continue;
            add_groups(priced, groups);
            last = calibrate::judged_of(priced.rows);
        }
        std::vector<calibrate::Judged>& of_kind = shipped[boards[i].kind];
        of_kind.insert(of_kind.end(), last.begin(), last.end());
    }
    if (options.samples.empty() && options.leave != "device") {
        std::vector<calibrate::Judged> elementwise = add_elementwise(wanted, groups);
        if (!elementwise.empty()) shipped["elementwise"] = std::move(elementwise);
    }
    if (shipped.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    for (const auto& [kind, rows] : shipped) {
        const calibrate::ErrorSummary all = calibrate::summarize(rows);
        median = std::max(median, all.median);
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
    constexpr std::size_t kernels = 200;
    constexpr int rounds = 100;
    std::map<std::string, std::vector<MeasuredBoard>> by_kind;
    for (MeasuredBoard& board : models::measured_boards()) by_kind[board.kind].push_back(std::move(board));
    std::vector<models::LearnedKind> learned;
    std::vector<models::LearnedBand> bands;
    for (const auto& [kind, boards] : by_kind) {
        const calibrate::Family family = calibrate::learn_boards(boards, kernels, rounds);
        learned.push_back({kind, family.experts, family.band});
        for (const MeasuredBoard& board : boards)
            bands.push_back({board.name, kind, calibrate::learn_band(board, family, kernels)});
    }
    replace_file(path, models::lengths_table(learned));
    replace_file(std::filesystem::path{path}.replace_filename("bands.csv").string(), models::bands_table(bands));
}

}  // namespace rehearse::cli
