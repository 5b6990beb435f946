// SPDX-License-Identifier: Apache-2.0
#include "validate/replay_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.hpp"
#include "core/text.hpp"
#include "predict/spread.hpp"
#include "prices/interval.hpp"
#include "validate/cluster_rows.hpp"

namespace rehearse::validate {

namespace {

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

class Validator {
public:
    Validator(std::vector<PublishedRow> all, const ReplayRules& rules, Pilots pilots, Predictions predictions)
        : pilots_(pilots), predictions_(predictions) {
        for (PublishedRow& row : all) {
            rows_.emplace_back().row = std::move(row);
            rows_.back().settings = rules.settings(rows_.back().row);
            rows_.back().from_memory = is_from_memory(rows_.back().row);
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) learn(i);
    }

    std::vector<ReplayedRow> answer(const std::function<bool(const PublishedRow&)>& wanted, const Progress& progress) {
        std::vector<ReplayedRow> answered;
        const auto all = std::ranges::count_if(rows_, [&](const ReplayedRow& row) { return wanted(row.row); });
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
            if (!goes_on(progress, std::ssize(answered), all)) break;
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
            const Metric metric = metric_of(row, rows_[i].settings, *measure);
            const TrainingRun run = training_run(row, rows_[i].settings);
            const double samples = samples_of(i, run);
            const Seconds step = step_of(row.value, samples, static_cast<double>(run.devices), metric);
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
        const std::int64_t node = devices_per_node(replayer_.machine(run.machine, run.per_node).nodes.front());
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
        const bool is_cluster = !setting(i, "workload").empty();
        const std::optional<Measure> measure = measure_of(row, rows_[i].settings);
        if (is_cluster || (measure && (is_collective(*measure) || *measure == Measure::staging))) {
            if (predictions_ != Predictions::anchored) rows_[i].cold = of_no_step(i, measure);
            return;
        }
        if (!measure) throw InputError(fmt::format("a '{}' is not what a simulated step tells of", row.text("metric")));
        const Metric metric = metric_of(row, rows_[i].settings, *measure);
        const TrainingRun run = training_run(row, rows_[i].settings);
        const std::string no_cold = setting(i, "cold");
        if (no_cold.empty() && predictions_ != Predictions::anchored) rows_[i].cold = answered(i, run, metric, {});
        if (predictions_ == Predictions::cold) return;
        const Known* anchor = anchor_of(i, run);
        if (anchor == nullptr && !no_cold.empty()) throw InputError(no_cold);
        if (anchor == nullptr) return;
        rows_[i].anchor = rows_[anchor->index].row.text("id");
        rows_[i].anchored = answered(i, run, metric, anchors({anchor}).of(run.devices));
        const Known* second = pilots_ == Pilots::two ? second_of(i, run, *anchor) : nullptr;
        if (second == nullptr) return;
        rows_[i].second = rows_[second->index].row.text("id");
        rows_[i].twice = answered(i, run, metric, anchors({anchor, second}).of(run.devices));
    }

    /// What a row of jobs on a cluster, of a collective or of staging says; nothing anchors it.
    Answer of_no_step(std::size_t i, const std::optional<Measure>& measure) {
        const PublishedRow& row = rows_[i].row;
        if (!setting(i, "workload").empty()) return clusters_.answer(row, rows_[i].settings, error(i, 0));
        const Metric metric = metric_of(row, rows_[i].settings, *measure);
        if (*measure == Measure::staging) {
            const StagingRun run = staging_run(row, rows_[i].settings);
            return band(metric, error(i, 0), [&](ZScore) { return replayer_.time(run); });
        }
        const CollectiveRun run = collective_run(row, rows_[i].settings);
        return band(metric, error(i, 0), [&](ZScore q) { return replayer_.time(run, q); });
    }

    const predict::Anchors& anchors(const std::vector<const Known*>& pilots) {
        std::vector<std::size_t> key;
        std::vector<PilotRun> runs;
        for (const Known* pilot : pilots) {
            key.push_back(pilot->index);
            runs.push_back({pilot->run, pilot->step});
        }
        const auto [entry, fresh] = anchors_.try_emplace(key);
        if (fresh) entry->second = replayer_.fitted(runs);
        return entry->second;
    }

    /// The smallest on more nodes than the anchor, and fewer devices than the run, of the same strategy.
    const Known* second_of(std::size_t i, const TrainingRun& run, const Known& anchor) {
        const Known* best = nullptr;
        for (const Known& known : known_.at(series_of(i, run))) {
            if (known.index == i || known.run.devices >= run.devices) continue;
            if (known.strategy != rows_[i].row.text("strategy")) continue;
            if (replayer_.nodes(known.run) <= replayer_.nodes(anchor.run)) continue;
            if (best == nullptr || known.run.devices < best->run.devices) best = &known;
        }
        return best;
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

    Answer answered(std::size_t i, const TrainingRun& run, Metric metric,
                    const std::optional<predict::Anchor>& anchor) {
        const ReplayedStep step = replayer_.step(run, anchor);
        predict::Uncertainty uncertainty = step.uncertainty;
        if (is_relative(metric.measure)) {
            const ReplayedStep base = replayer_.step(baseline_of(i, run), anchor);
            metric.baseline = base.result;
            uncertainty = relative(uncertainty, base.uncertainty);
        }
        const double figure = figure_of(step.result, metric);
        const prices::Interval<double> band = prices::around(figure, uncertainty.factor());
        return {figure, band.low, band.high};
    }

    /// Of a ratio of steps: causes that both share are off in both, and what runs and frameworks differ by is in each.
    static predict::Uncertainty relative(predict::Uncertainty of, const predict::Uncertainty& base) {
        of.computation /= base.computation;
        of.messages /= base.messages;
        of.distance /= base.distance;
        return of;
    }

    /// Of what is no step: the figure at nominal prices, and at those of both ends of their 90 % band; an independent
    /// error of the mapping comes on top.
    template <typename Time>
    Answer band(const Metric& metric, double added, const Time& time) {
        const auto figure = [&](double z) { return figure_of(time(ZScore{z}), metric); };
        Answer answer{.predicted = figure(0)};
        const double low = figure(-prices::ninety_percent), high = figure(prices::ninety_percent);
        const auto reach = [&](double end) {
            return prices::independent_factors({end / answer.predicted, prices::log_reach(added)});
        };
        answer.low = answer.predicted / reach(std::min(low, high));
        answer.high = answer.predicted * reach(std::max(low, high));
        return answer;
    }

    std::vector<ReplayedRow> rows_;
    std::map<Series, std::vector<Known>> known_;
    std::map<std::vector<std::size_t>, predict::Anchors> anchors_;  // by pilots
    Pilots pilots_;
    Predictions predictions_;
    Replayer replayer_;
    ClusterRows clusters_;
};

}  // namespace

double error_of(const Answer& answer, double published) { return (answer.predicted - published) / published; }

std::vector<ReplayedRow> replay_rows(std::vector<PublishedRow> all, const ReplayRules& rules,
                                     const std::function<bool(const PublishedRow&)>& wanted, const Progress& progress,
                                     Pilots pilots, Predictions predictions) {
    return Validator{std::move(all), rules, pilots, predictions}.answer(wanted, progress);
}

}  // namespace rehearse::validate
