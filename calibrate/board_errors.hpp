// SPDX-License-Identifier: Apache-2.0
// How far prices of kernels on boards are off, by what a price has seen: the protocol of `validate --set neusight`.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/boards.hpp"

namespace rehearse::calibrate {

/// Kernels of other boards that say what one more board takes, and of its own that then scale its prices.
inline constexpr std::size_t pooled_kernels = 600, pilot_kernels = 20;

/// Rows of one board as one source of prices has them.
struct PricedRows {
    std::string prices;  // DeepBench, bound, board, data sheet, 20 kernels
    std::vector<JudgedChoice> rows;
    bool chooses = true;  // it says which family of algorithms is expected
};

/// Every kernel of the board at the prices of `model`, which knows all of them.
PricedRows judge_by(const PriceModel& model, const MeasuredBoard& board);
/// The kernels of board `at` of `boards` at the library's bound, and priced from `known` of its own kernels or from
/// half of them where there are fewer: a shape left out, or with Leave::family all of its side.
std::vector<PricedRows> judge_own(const MeasuredBoard& board, Leave leave, std::size_t known);
/// Board `at` of `boards` from its data sheet and the other boards of its kind, and with a factor from a few of its own
/// kernels. InputError where no other board has kernels of the kind.
std::vector<PricedRows> judge_by_others(std::span<const MeasuredBoard> boards, std::size_t at);
/// At the prices that `device` has.
std::vector<Judged> judge_on(std::span<const KernelSample> samples, const DeviceClass& device);

/// Errors of random sizes or of those of networks.
struct BoardGroup {
    bool network = false;
    ErrorSummary errors;
    std::optional<double> family_right;  // share, of convolutions whose family is expected
};
/// Of those of both that there are; `kind` as MeasuredBoard says it.
std::vector<BoardGroup> groups_of(const PricedRows& priced, std::string_view kind);

/// Errors over all boards, by kind of operator.
class KindErrors {
public:
    void add(const std::string& kind, std::span<const Judged> rows);
    bool empty() const { return rows_.empty(); }
    std::map<std::string, ErrorSummary> summary() const;
    /// Median error of the kind whose prices are furthest off; 0 without any.
    double worst_median() const;

private:
    std::map<std::string, std::vector<Judged>> rows_;
};

/// What boards learned together of one kind, and each board's band.
struct LearnedBoards {
    struct Band {
        std::string board;
        double band = 1;
    };
    std::string kind;
    Family family;
    std::vector<Band> bands;
};
std::vector<LearnedBoards> learn_kinds(std::span<const MeasuredBoard> boards);

}  // namespace rehearse::calibrate
