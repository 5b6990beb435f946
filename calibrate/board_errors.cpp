// SPDX-License-Identifier: Apache-2.0
#include "calibrate/board_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {

PricedRows judge_by(const PriceModel& model, const MeasuredBoard& board) {
    PricedRows priced{"DeepBench", {}, false};
    for (const BoardKernel& kernel : board.kernels) {
        const auto answer = model.answer(kernel.sample.problem);
        require(answer.has_value(), "the model knows every kernel of the board");
        priced.rows.push_back({judge(kernel.sample, answer->time, answer->error), false, kernel.network});
    }
    return priced;
}

std::vector<PricedRows> judge_own(const MeasuredBoard& board, Leave leave, std::size_t known) {
    // Where prices rest on all kernels that there are, half of them judge the other half.
    const std::size_t count = std::min(known, (board.kernels.size() + 1) / 2);
    return {{"bound", judge_bound(board)},
            {"board", leave == Leave::family ? judge_unseen_sides(board, count) : judge_unseen(board, count)}};
}

std::vector<PricedRows> judge_by_others(std::span<const MeasuredBoard> boards, std::size_t at) {
    std::vector<MeasuredBoard> peers;
    std::size_t place = 0;
    for (std::size_t i = 0; i < boards.size(); ++i) {
        if (boards[i].kind != boards[at].kind) continue;
        if (i == at) place = peers.size();
        peers.push_back(boards[i]);
    }
    if (peers.size() < 2) throw InputError("--leave device: the table has one board, and nothing to learn from");
    return {{"data sheet", judge_left_out(peers, place, pooled_kernels, 0)},
            {fmt::format("{} kernels", pilot_kernels), judge_left_out(peers, place, pooled_kernels, pilot_kernels)}};
}

std::vector<Judged> judge_on(std::span<const KernelSample> samples, const DeviceClass& device) {
    std::vector<Judged> judged;
    for (const KernelSample& sample : samples) {
        const Price answer = price(sample.problem, device);
        judged.push_back(judge(sample, answer.time, answer.error));
    }
    return judged;
}

std::vector<BoardGroup> groups_of(const PricedRows& priced, std::string_view kind) {
    std::vector<BoardGroup> groups;
    for (const bool network : {false, true}) {
        std::vector<JudgedChoice> rows;
        std::ranges::copy_if(priced.rows, std::back_inserter(rows),
                             [&](const JudgedChoice& row) { return row.network == network; });
        if (rows.empty()) continue;
        BoardGroup group{network, summarize(judged_of(rows)), std::nullopt};
        if (priced.chooses && kind == "conv2d") group.family_right = family_right(rows);
        groups.push_back(std::move(group));
    }
    return groups;
}

void KindErrors::add(const std::string& kind, std::span<const Judged> rows) {
    if (rows.empty()) return;
    std::vector<Judged>& all = rows_[kind];
    all.insert(all.end(), rows.begin(), rows.end());
}

std::map<std::string, ErrorSummary> KindErrors::summary() const {
    std::map<std::string, ErrorSummary> by_kind;
    for (const auto& [kind, rows] : rows_) by_kind[kind] = summarize(rows);
    return by_kind;
}

double KindErrors::worst_median() const {
    double worst = 0;
    for (const auto& [kind, errors] : summary()) worst = std::max(worst, errors.median);
    return worst;
}

std::vector<LearnedBoards> learn_kinds(std::span<const MeasuredBoard> boards) {
    constexpr std::size_t kernels = 200;
    constexpr int rounds = 100;
    std::map<std::string, std::vector<MeasuredBoard>> by_kind;
    for (const MeasuredBoard& board : boards) by_kind[board.kind].push_back(board);
    std::vector<LearnedBoards> learned;
    for (const auto& [kind, peers] : by_kind) {
        LearnedBoards all{kind, learn_boards(peers, kernels, rounds), {}};
        for (const MeasuredBoard& board : peers)
            all.bands.push_back({board.name, learn_band(board, all.family, kernels)});
        learned.push_back(std::move(all));
    }
    return learned;
}

}  // namespace rehearse::calibrate
