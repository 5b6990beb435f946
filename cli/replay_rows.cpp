// SPDX-License-Identifier: Apache-2.0
#include "cli/replay_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "cli/cluster_rows.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

namespace {

using models::PublishedRow;

constexpr double ninety_percent = 1.645;  // standard deviations that hold the middle 90 % of a normal
// Two frameworks on one device differ by 5 % (the tables' own spread: Piz Daint's ReFrame and Sarus rows); so do two
// versions of one.
constexpr double framework_error = 0.05;
// What a step measured elsewhere on the same system says of this one: the spread of repeated runs and of cards, and
// what each doubling of the devices brings that no step shows (jitter, input, other jobs). With these two, nine in ten
// of all anchored rows lie in their bands; with the prices' and messages' errors alone it was six.
constexpr double anchor_error = 0.05;
constexpr double error_of_doubling = 0.03;

// Cards of a kind differ: by 0.6 % (median) and 2.7 % (p90) between the two of a kind that DeepBench has, which is a
// standard deviation of 0.6 to 1.2 % of one.
constexpr double card_spread = 0.01;
constexpr double cards_of_fits = 8;  // of the nodes that prices by tiles were fitted on (vTrain's A100)

// A synchronous step waits for the slowest of its devices: the mean of the largest of n normal ones (Blom 1958).
double slowest_of(double n) {
    const double below = (n - std::numbers::pi / 8) / (n - std::numbers::pi / 4 + 1);
    double low = 0, high = 10;
    while (high - low > 1e-6) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(-middle / std::numbers::sqrt2) < below ? low : high) = middle;
    }
    return 1 + card_spread * low;
}

bool is_from_memory(const PublishedRow& row) { return row.text("provenance").starts_with("memory"); }

/// What must agree for one row to be another's anchor.
struct Series {
    std::string system, machine, network, precision, fuse, data, batch;
    auto operator<=>(const Series&) const = default;
};

/// A row that tells how long one step took.
struct Known {
    std::size_t index = 0;
    TrainingRun run;
    Seconds step;
    std::string strategy;
};

class Judge {
public:
    Judge(std::vector<PublishedRow> all, const models::ReplayRules& rules) {
        for (PublishedRow& row : all) {
            rows_.push_back({std::move(row), {}, {}, {}, {}, {}});
            rows_.back().settings = rules.settings(rows_.back().row);
            rows_.back().from_memory = is_from_memory(rows_.back().row);
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) learn(i);
    }

    std::vector<ReplayedRow> answer(const std::function<bool(const PublishedRow&)>& wanted) {
        std::vector<ReplayedRow> answered;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (!wanted(rows_[i].row)) continue;
            try {
                answer(i);
            } catch (const InputError& error) {
                rows_[i].skipped = error.what();
            } catch (const InfeasibleError& error) {
                rows_[i].skipped = error.what();
            }
            answered.push_back(rows_[i]);
        }
        return answered;
    }

private:
    std::string setting(std::size_t i, std::string_view name) const {
        const auto found = rows_[i].settings.find(name);
        return found == rows_[i].settings.end() ? std::string{} : found->second;
    }

    Series series_of(std::size_t i, const TrainingRun& run) const {
        const PublishedRow& row = rows_[i].row;
        return {row.text("system"),
                row.text("machine") + row.text("device"),
                run.network,
                std::string{to_string(run.precision)},
                run.fuse,
                setting(i, "data"),
                fmt::format("{}", run.batch)};
    }

    // Keeps a row that others can be anchored on.
    void learn(std::size_t i) {
        const PublishedRow& row = rows_[i].row;
        if (rows_[i].from_memory || !setting(i, "skip").empty() || !setting(i, "collective").empty()) return;
        try {
            const std::optional<Measure> measure = measure_of(row, rows_[i].settings);
            if (!measure || is_relative(*measure) || is_collective(*measure) || *measure == Measure::staging) return;
            const Yardstick yardstick = yardstick_of(row, rows_[i].settings, *measure);
            const TrainingRun run = training_run(row, rows_[i].settings);
            const double samples = samples_of(i, run);
            const Seconds step = step_of(row.value, samples, static_cast<double>(run.devices), yardstick);
            known_[series_of(i, run)].push_back({i, run, step, row.text("strategy")});
        } catch (const InputError&) {  // told when the row itself is asked for
        }
    }

    double samples_of(std::size_t i, const TrainingRun& run) const {
        return copies(run, rows_[i].settings) * static_cast<double>(run.batch);
    }

    /// What a user would have measured: for a run on several nodes, one on as much of one node as the series has, of
    /// the same strategy when on several devices; inside a node the smallest one. Else the smallest that is smaller.
    const Known* anchor_of(std::size_t i, const TrainingRun& run) {
        const auto series = known_.find(series_of(i, run));
        if (series == known_.end()) return nullptr;
        const Known* best = nullptr;
        const std::int64_t node = devices_per_node(replayer_.machine(run.machine).nodes.front());
        const auto rank = [&](const Known& known) {
            const std::int64_t n = known.run.devices;
            const bool other = known.strategy != rows_[i].row.text("strategy");
            const bool whole_node = run.devices > node && n <= node;
            return std::tuple{n > node, other && n > 1, whole_node ? -n : n, other};
        };
        for (const Known& known : series->second) {
            if (known.index == i || known.run.devices >= run.devices) continue;
            if (best == nullptr || rank(known) < rank(*best)) best = &known;
        }
        return best;
    }

    void answer(std::size_t i) {
        const PublishedRow& row = rows_[i].row;
        if (const std::string why = setting(i, "skip"); !why.empty()) throw InputError(why);
        if (!setting(i, "workload").empty()) {
            rows_[i].cold = clusters_.answer(row, rows_[i].settings, error(i, 0));
            return;
        }
        const std::optional<Measure> measure = measure_of(row, rows_[i].settings);
        if (!measure) throw InputError(fmt::format("a '{}' is not what a simulated step tells of", row.text("metric")));
        const Yardstick yardstick = yardstick_of(row, rows_[i].settings, *measure);
        if (is_collective(*measure)) {
            const CollectiveRun run = collective_run(row, rows_[i].settings);
            rows_[i].cold = band(yardstick, error(i, 0), [&](Quantile q) { return replayer_.time(run, q); });
            return;
        }
        if (*measure == Measure::staging) {
            const StagingRun run = staging_run(row, rows_[i].settings);
            rows_[i].cold = band(yardstick, error(i, 0), [&](Quantile) { return replayer_.time(run); });
            return;
        }
        const TrainingRun run = training_run(row, rows_[i].settings);
        const std::string no_cold = setting(i, "cold"), slower = setting(i, "slower");
        if (no_cold.empty()) {
            const ComputeScale scale{.factor = slower.empty() ? 1 : parse_number(slower, "slower")};
            rows_[i].cold = answered(i, run, yardstick, scale, error(i, framework_error));
        }
        const Known* anchor = anchor_of(i, run);
        if (anchor == nullptr && !no_cold.empty()) throw InputError(no_cold);
        if (anchor == nullptr) return;
        const auto [factor, fresh] = factors_.try_emplace(anchor->index, 0);
        if (fresh) {
            factor->second = fitted_scale(replayer_, anchor->run, anchor->step / waiting(anchor->run));
        }
        const double doublings = std::log2(static_cast<double>(run.devices) / static_cast<double>(anchor->run.devices));
        rows_[i].anchored =
            answered(i, run, yardstick, {factor->second, 0}, std::hypot(anchor_error, error_of_doubling * doublings));
        rows_[i].anchor = rows_[anchor->index].row.text("id");
    }

    double error(std::size_t i, double otherwise) const {
        const std::string given = setting(i, "error");
        return given.empty() ? otherwise : std::stod(given);
    }

    /// The run that a relative figure compares with.
    TrainingRun baseline_of(std::size_t i, TrainingRun run) const {
        const std::string devices = setting(i, "baseline"), plan = setting(i, "against");
        const std::string network = setting(i, "against_network"), batch = setting(i, "against_batch");
        if (!devices.empty() || plan.empty()) run.devices = devices.empty() ? 1 : parse_int(devices, "baseline");
        if (!plan.empty()) run.plan = plan;
        if (!network.empty()) run.network = network;
        if (!batch.empty()) run.batch = parse_int(batch, "against_batch");
        return run;
    }

    Answer answered(std::size_t i, const TrainingRun& run, Yardstick yardstick, ComputeScale scale, double added) {
        const bool relative = is_relative(yardstick.measure);
        const TrainingRun base = relative ? baseline_of(i, run) : run;
        return band(yardstick, added, [&](Quantile quantile) {
            if (relative) yardstick.baseline = waited(base, scale, quantile);
            return waited(run, scale, quantile);
        });
    }

    /// Prices by tiles were fitted on runs of whole nodes, which waited for the slowest of their cards already.
    double waiting(const TrainingRun& run) {
        const auto n = static_cast<double>(run.devices);
        const DeviceClass& device = replayer_.machine(run.machine).classes.front();
        const bool of_nodes = device.tiles != nullptr && device.model == nullptr;
        return slowest_of(n) / (of_nodes ? slowest_of(std::min(n, cards_of_fits)) : 1);
    }

    StepResult waited(const TrainingRun& run, ComputeScale scale, Quantile quantile) {
        StepResult result = replayer_.step(run, scale, quantile);
        result.step = result.step * waiting(run);
        return result;
    }

    /// The figure at nominal prices, and at those of both ends of their 90 % band; `added` comes on top.
    template <typename Step>
    Answer band(const Yardstick& yardstick, double added, const Step& step) {
        const auto figure = [&](double z) {
            const StepResult result = step(Quantile{z});
            return figure_of(result, yardstick);
        };
        Answer answer{.predicted = figure(0)};
        const double low = figure(-ninety_percent), high = figure(ninety_percent);
        const auto reach = [&](double end) {
            return std::exp(std::hypot(std::log(end / answer.predicted), ninety_percent * added));
        };
        answer.low = answer.predicted / reach(std::min(low, high));
        answer.high = answer.predicted * reach(std::max(low, high));
        return answer;
    }

    std::vector<ReplayedRow> rows_;
    std::map<Series, std::vector<Known>> known_;
    std::map<std::size_t, double> factors_;  // by anchor
    Replayer replayer_;
    ClusterRows clusters_;
};

}  // namespace

double error_of(const Answer& answer, double published) { return std::abs(answer.predicted - published) / published; }

std::vector<ReplayedRow> replay_rows(std::vector<PublishedRow> all, const models::ReplayRules& rules,
                                     const std::function<bool(const PublishedRow&)>& wanted) {
    return Judge{std::move(all), rules}.answer(wanted);
}

}  // namespace rehearse::cli
