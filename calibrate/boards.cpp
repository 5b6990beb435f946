// SPDX-License-Identifier: Apache-2.0
#include "calibrate/boards.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "calibrate/fit.hpp"
#include "calibrate/kernel_factors.hpp"
#include "core/error.hpp"
#include "prices/library_point.hpp"

namespace rehearse::calibrate {

namespace {

using prices::between_boards;

double log_bound_of(const KernelSample& sample, const DeviceSheet& sheet) {
    const auto point = library_point(sample.problem, *sheet.board);
    require(point.has_value(), "a board's kernel has a bound");
    return std::log(point->bound.value);
}

double beyond(const KernelSample& sample, const DeviceSheet& sheet) {
    return std::log(sample.time.value) - log_bound_of(sample, sheet);
}

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> distances(std::vector<double> values) {
    for (double& value : values) value = std::abs(value);
    return values;
}

// Whether the family with the least bound ran.
bool foretold(const BoardKernel& kernel, const DeviceSheet& sheet) {
    const auto shape = prices::convolution_shape(kernel.sample.problem);
    if (!shape) return false;
    return prices::library_choice(*shape, *sheet.board).chosen == kernel.family;
}

// What is known of such of a board's kernels.
MeasuredKernels known_of(const MeasuredBoard& board, std::span<const BoardKernel* const> kernels) {
    MeasuredKernels known{board.kind, DataType::f32, board.sheet, {}, board.experts, board.band, board.source};
    for (const BoardKernel* kernel : kernels) {
        known.samples.push_back(kernel->sample);
        if (board.kind == "conv2d") known.ran.push_back(ran(*kernel, board.sheet));
    }
    return known;
}

JudgedChoice priced(const BoardKernel& kernel, const KernelPrices& prices) {
    const Problem& problem = kernel.sample.problem;
    return {
        {problem, kernel.sample.time, *prices.at(problem)}, prices.family_at(problem) == kernel.family, kernel.network};
}

// What is left out together: convolutions of images of one side, products of one depth, rows of one length.
std::int64_t side_of(const BoardKernel& kernel) {
    const Op& op = kernel.sample.problem.op;
    if (const auto* conv = std::get_if<Conv>(&op)) return conv->height;
    if (const auto* dense = std::get_if<MatMul>(&op)) return dense->k;
    if (const auto* experts = std::get_if<GroupedMatMul>(&op)) return experts->k;
    if (const auto* softmax = std::get_if<Softmax>(&op)) return softmax->classes;
    return std::get<LayerNorm>(op).features;
}

// Of the given kernels of a board, evenly.
std::vector<const BoardKernel*> taken(const std::vector<const BoardKernel*>& kernels, std::size_t count) {
    std::vector<const BoardKernel*> some;
    for (const std::size_t i : every(kernels.size(), count)) some.push_back(kernels[i]);
    return some;
}

// Whether their kernels are of one maker's libraries.
bool of_one_maker(const MeasuredBoard& one, const MeasuredBoard& other) {
    return one.sheet.board->library == other.sheet.board->library;
}

// What boards of the same maker take beyond their bounds, each board's median taken off; `medians` are of all others.
struct Others {
    std::vector<FeaturePoint> points;
    std::vector<double> values, offsets, medians;
    std::vector<RanFamily> ran;  // of convolutions
};

Others others_of(std::span<const MeasuredBoard> boards, std::size_t out, std::size_t count) {
    Others others;
    const std::size_t each = count / (boards.size() - 1);
    const auto kin = [&](std::size_t b) { return b != out && of_one_maker(boards[b], boards[out]); };
    bool any_kin = false;
    for (std::size_t b = 0; b < boards.size(); ++b) any_kin = any_kin || kin(b);
    for (std::size_t b = 0; b < boards.size(); ++b) {
        if (b == out) continue;
        const MeasuredBoard& board = boards[b];
        std::vector<double> values;
        if (any_kin && !kin(b)) {
            for (const std::size_t i : every(board.kernels.size(), each))
                values.push_back(beyond(board.kernels[i].sample, board.sheet));
            others.medians.push_back(median(std::move(values)));
            continue;
        }
        for (const std::size_t i : every(board.kernels.size(), each)) {
            values.push_back(beyond(board.kernels[i].sample, board.sheet));
            if (board.kind == "conv2d") others.ran.push_back(ran(board.kernels[i], board.sheet));
            others.points.push_back(library_point(board.kernels[i].sample.problem, *board.sheet.board)->point);
        }
        others.offsets.push_back(median(values));
        others.medians.push_back(others.offsets.back());
        for (const double value : values) others.values.push_back(value - others.offsets.back());
    }
    return others;
}

// How far one more board may lie from the mean of boards whose medians these are: their standard deviation, as few as
// they are (Student's t at 90 % over the normal's).
double between(const std::vector<double>& offsets) {
    if (offsets.size() < 2) return band_limit;
    constexpr std::array<double, 4> few{3.84, 1.78, 1.43, 1.30};  // 1 to 4 degrees of freedom
    const auto n = static_cast<double>(offsets.size());
    double squares = 0;
    for (const double offset : offsets) squares += std::pow(offset - mean(offsets), 2);
    const std::size_t freedom = offsets.size() - 1;
    const double wider = freedom <= few.size() ? few.at(freedom - 1) : 1.2;
    return wider * std::sqrt(squares / (n - 1) * (1 + 1 / n));
}

}  // namespace

std::vector<JudgedChoice> judge_bound(const MeasuredBoard& board) {
    std::vector<JudgedChoice> rows;
    double squares = 0;
    for (const BoardKernel& kernel : board.kernels) {
        const double bound = log_bound_of(kernel.sample, board.sheet);
        squares += std::pow(std::log(kernel.sample.time.value) - bound, 2);
        rows.push_back(
            {{kernel.sample.problem, kernel.sample.time, {bound, 0}}, foretold(kernel, board.sheet), kernel.network});
    }
    for (JudgedChoice& row : rows)
        row.judged.predicted.deviation = std::sqrt(squares / static_cast<double>(rows.size()));
    return rows;
}

std::vector<JudgedChoice> judge_unseen(const MeasuredBoard& board, std::size_t count) {
    std::vector<const BoardKernel*> known;
    std::set<std::size_t> seen;
    for (const std::size_t i : every(board.kernels.size(), count)) {
        known.push_back(&board.kernels[i]);
        seen.insert(i);
    }
    const KernelPrices prices{known_of(board, known)};
    std::vector<JudgedChoice> rows;
    for (std::size_t i = 0; i < board.kernels.size(); ++i) {
        if (!seen.contains(i)) rows.push_back(priced(board.kernels[i], prices));
    }
    return rows;
}

std::vector<JudgedChoice> judge_unseen_sides(const MeasuredBoard& board, std::size_t count) {
    constexpr std::int64_t folds = 5;
    std::vector<JudgedChoice> rows;
    for (std::int64_t fold = 0; fold < folds; ++fold) {
        std::vector<const BoardKernel*> known, unknown;
        for (const BoardKernel& kernel : board.kernels)
            (side_of(kernel) % folds == fold ? unknown : known).push_back(&kernel);
        if (known.empty()) continue;
        const KernelPrices prices{known_of(board, taken(known, count))};
        for (const BoardKernel* kernel : unknown) rows.push_back(priced(*kernel, prices));
    }
    return rows;
}

std::vector<JudgedChoice> judge_left_out(std::span<const MeasuredBoard> boards, std::size_t out, std::size_t count,
                                         std::size_t pilots) {
    require(boards.size() > 1, "another board to learn from");
    const MeasuredBoard& board = boards[out];
    const Others others = others_of(boards, out, count);
    // What products take beyond their bounds is what a library made of one chip (a P4's odd
    // sizes take thrice the time): it says how far to trust the bound, not more.
    const bool alike = board.kind != "matmul" && board.kind != "groupedmatmul";
    std::vector<GaussianProcess> processes;
    for (const Expert& expert : board.experts) {
        if (alike) processes.emplace_back(expert.covariance, others.points, others.values);
    }
    std::optional<FamilyVote> vote;
    if (!others.ran.empty()) vote.emplace(board.experts.back().covariance, others.ran);
    const double deviation = conformal_deviation(distances(others.values));
    const auto price = [&](const KernelSample& sample) {
        const auto point = library_point(sample.problem, *board.sheet.board);
        if (!alike) return KernelPrice{std::log(point->bound.value), deviation};
        std::vector<Estimate> estimates;
        for (const GaussianProcess& process : processes) estimates.push_back(process.at(point->point));
        KernelPrice result = combine(estimates, board.kind_band, 1);
        result.log_time += std::log(point->bound.value);
        return result;
    };
    // The constants of the bound of products are the mean of all boards already, which lie further apart.
    constexpr double between_products = 0.3;
    const bool rows_alike = alike && board.kind != "conv2d";
    const double sheet_spread = !alike ? between_products
                                : rows_alike
                                    ? std::max({between_boards, between(others.offsets), between(others.medians)})
                                    : between_boards;
    const double offset = alike ? mean(others.offsets) : 0;
    const auto cold = [&](const KernelSample& sample) {
        KernelPrice result = price(sample);
        result.log_time += offset;
        result.deviation = std::min(band_limit, std::hypot(result.deviation, sheet_spread));
        return result;
    };
    // As calibrate --kernels does it.
    KernelFactor factor;
    std::set<std::size_t> measured;
    if (pilots > 0) {
        std::vector<KernelRatio> ratios;
        for (const std::size_t i : every(board.kernels.size(), pilots)) {
            measured.insert(i);
            const KernelSample& sample = board.kernels[i].sample;
            const KernelPrice before = cold(sample);
            ratios.push_back({std::log(sample.time.value) - before.log_time, before.deviation});
        }
        factor = kernel_factor(ratios);
    }
    std::vector<JudgedChoice> rows;
    for (std::size_t i = 0; i < board.kernels.size(); ++i) {
        if (measured.contains(i)) continue;
        KernelPrice result = cold(board.kernels[i].sample);
        result.log_time += std::log(factor.factor);
        if (pilots > 0) result.deviation = std::min(band_limit, error_after(factor, result.deviation));
        const BoardKernel& kernel = board.kernels[i];
        rows.push_back({{kernel.sample.problem, kernel.sample.time, result},
                        vote && vote->at(ran(kernel, board.sheet).point) == kernel.family,
                        kernel.network});
    }
    return rows;
}

double family_right(std::span<const JudgedChoice> rows) {
    const auto right = static_cast<double>(std::ranges::count_if(rows, &JudgedChoice::family_right));
    return right / static_cast<double>(rows.size());
}

std::vector<Judged> judged_of(std::span<const JudgedChoice> rows) {
    std::vector<Judged> some;
    for (const JudgedChoice& row : rows) some.push_back(row.judged);
    return some;
}

Family learn_boards(std::span<const MeasuredBoard> boards, std::size_t count, int rounds) {
    std::vector<MeasuredKernels> sets;
    for (const MeasuredBoard& board : boards) {
        MeasuredKernels kernels = known_of(board, {});
        for (const std::size_t i : every(board.kernels.size(), count))
            kernels.samples.push_back(board.kernels[i].sample);
        sets.push_back(std::move(kernels));
    }
    return learn_family(sets, std::nullopt, rounds);
}

double learn_band(const MeasuredBoard& board, const Family& family, std::size_t count) {
    // Fewer say less of their board than all boards' kernels do.
    constexpr std::size_t fewest_of_board = 60, fewest_of_part = 30;
    if (board.kernels.size() < fewest_of_board) return family.band;
    MeasuredKernels kernels = known_of(board, {});
    kernels.experts = family.experts;
    kernels.band = 1;
    const std::vector<std::size_t> places = every(board.kernels.size(), count);
    for (const std::size_t i : places) kernels.samples.push_back(board.kernels[i].sample);
    const std::vector<Judged> judged = cross_validate(kernels, Leave::shape);
    double band = 0;
    for (const bool network : {false, true}) {
        std::vector<Judged> part;
        for (std::size_t row = 0; row < judged.size(); ++row) {
            if (board.kernels[places[row]].network == network) part.push_back(judged[row]);
        }
        if (part.size() >= fewest_of_part) band = std::max(band, band_of(part));
    }
    // Of convolutions as of DeepBench's; products and rows that were kept from the lengths need a tenth more, too.
    constexpr double of_products = 1.1;
    band *= board.kind == "conv2d" ? unseen_factor(board.kind) : of_products;
    constexpr std::size_t few = 120;
    return board.kernels.size() < few ? std::max(band, family.band) : band;
}

}  // namespace rehearse::calibrate
