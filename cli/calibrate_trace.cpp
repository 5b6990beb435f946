// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "calibrate/collective_times.hpp"
#include "calibrate/recorded_prices.hpp"
#include "cli/calibrate_prices.hpp"
#include "cli/command.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/recorded.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"
#include "trace/recording.hpp"

namespace rehearse::cli {

namespace {

constexpr double much = 0.1;    // of a step, without a layer: worth a warning
constexpr double unlike = 0.5;  // of a step, from one to the next: no band that is made of it says anything

void check(const TraceCalibration& asked, const Common& common) {
    if (asked.machine.empty() || asked.machine_out.empty()) {
        throw InputError(
            "--trace: give --machine NAME|FILE.toml, whose figures the profile replaces, and --machine-out FILE.toml");
    }
    if (asked.models.size() != 1 || asked.batches.size() != 1) {
        throw InputError("--trace: give the one --model and the one --batch (samples a rank) that were profiled");
    }
    if (asked.batches.front() < 1) throw InputError(fmt::format("--batch {}: at least 1", asked.batches.front()));
    check_writable(asked.machine_out, common);
    check_writable(common.output, common);
}

std::vector<Recording> read_all(const TraceCalibration& asked, const Common& common) {
    std::vector<Recording> recordings;
    std::set<std::int64_t> ranks;
    for (const std::string& path : asked.traces) {
        recordings.push_back(trace::read_recording(path));
        const Recording& read = recordings.back();
        if (!ranks.insert(read.rank).second) {
            throw InputError(
                fmt::format("{}: rank {} was read before: right would be one trace of each rank", path, read.rank));
        }
        if (read.ranks != recordings.front().ranks) {
            throw InputError(fmt::format("{}: of {} ranks, but {} is of {}", path, read.ranks, asked.traces.front(),
                                         recordings.front().ranks));
        }
        talk(common, fmt::format("{}: rank {} of {}, {} steps, computing on the {}", path, read.rank, read.ranks,
                                 read.steps.size(), read.on_device ? "device" : "host"));
    }
    return recordings;
}

Json share_rows(const calibrate::MatchedRecording& found) {
    const calibrate::RecordedShares& shares = found.shares;
    Json rows = Json::array();
    const auto add = [&](const char* what, double seconds) {
        rows.push_back(
            {{"what", what}, {"seconds_s", seconds}, {"share", shares.step > 0 ? seconds / shares.step : 0}});
    };
    add("step", shares.step);
    add("layers", shares.layers);
    add("optimizer", shares.update);
    add("without a layer", shares.unmatched);
    add("idle between operators", shares.gaps);
    add("collectives, exposed", shares.exposed);
    add("collectives, beside computation", std::max(0.0, shares.collective - shares.exposed));
    add("waiting for samples", shares.loader);
    return rows;
}

Json layer_rows(const calibrate::MatchedRecording& found) {
    Json rows = Json::array();
    for (const calibrate::LayerTimes& layer : found.layers) {
        rows.push_back({{"layer", layer.layer},
                        {"calls", layer.calls},
                        {"forward_s", layer.forward},
                        {"backward_s", layer.backward},
                        {"share", (layer.forward + layer.backward) / found.shares.step}});
    }
    return rows;
}

Json unmatched_rows(const calibrate::MatchedRecording& found) {
    Json rows = Json::array();
    for (const calibrate::UnmatchedCalls& calls : found.unmatched) {
        rows.push_back({{"name", calls.name},
                        {"pass", calls.pass},
                        {"calls", calls.calls},
                        {"seconds_s", calls.seconds},
                        {"idle_s", calls.idle},
                        {"share", (calls.seconds + calls.idle) / found.shares.step}});
    }
    return rows;
}

Json message_rows(const std::vector<calibrate::RecordedMessage>& messages) {
    Json rows = Json::array();
    for (const calibrate::RecordedMessage& each : messages) {
        rows.push_back({{"collective", each.kind},
                        {"ranks", each.ranks},
                        {"nodes", each.hosts > 0 ? Json(each.hosts) : Json()},
                        {"bytes", each.bytes.value},
                        {"count", each.count},
                        {"time_s", each.time.value},
                        {"algbw_bytes_per_s", each.algorithm.value},
                        {"busbw_bytes_per_s", each.bus.value}});
    }
    return rows;
}

Json copy_rows(const std::vector<Recording>& recordings) {
    Json rows = Json::array();
    for (const Recording& recording : recordings) {
        for (const RecordedCopies& copies : recording.copies) {
            rows.push_back({{"rank", recording.rank},
                            {"direction", copies.direction},
                            {"count", copies.count},
                            {"bytes", copies.bytes.value},
                            {"time_s", copies.time.value}});
        }
    }
    return rows;
}

std::vector<Table> tables_of(const Json& document) {
    std::vector<Table> tables{
        {"steps",
         "a training step",
         {{"what", "part"}, {"seconds_s", "time", Show::seconds}, {"share", "of the step", Show::percent}}},
        {"layers",
         "layers",
         {{"layer", "layer"},
          {"calls", "operators"},
          {"forward_s", "forward", Show::seconds},
          {"backward_s", "backward", Show::seconds},
          {"share", "of the step", Show::percent}}}};
    const auto add = [&](const char* rows, const char* title, std::vector<Column> columns) {
        if (!document[rows].empty()) tables.push_back({rows, title, std::move(columns)});
    };
    add("unmatched", "operators that no layer was found for",
        {{"name", "operator"},
         {"pass", "pass"},
         {"calls", "calls", Show::count},
         {"seconds_s", "time", Show::seconds},
         {"idle_s", "idle", Show::seconds},
         {"share", "of the step", Show::percent}});
    add("messages", "collectives",
        {{"collective", "collective"},
         {"ranks", "ranks", Show::count},
         {"nodes", "nodes", Show::count},
         {"bytes", "size", Show::bytes},
         {"count", "times", Show::count},
         {"time_s", "shortest", Show::seconds},
         {"algbw_bytes_per_s", "algbw B/s", Show::number},
         {"busbw_bytes_per_s", "busbw B/s", Show::number}});
    add("copies", "copies, of all steps",
        {{"rank", "rank", Show::count},
         {"direction", "direction"},
         {"count", "copies", Show::count},
         {"bytes", "bytes", Show::bytes},
         {"time_s", "time", Show::seconds}});
    return tables;
}

Json warnings_of(const calibrate::MatchedRecording& found, const std::vector<Recording>& recordings, double stretch) {
    Json warnings = Json::array();
    const double without = (found.shares.unmatched + found.shares.beside) / found.shares.step;
    if (without > much) {
        warnings.push_back(fmt::format(
            "{:.0f} % of the step is in operators that no layer was found for, {:.0f} % idle at them or at the step's "
            "ends; it is in the prices of all layers, stretched alike, by {:.3f}",
            100 * found.shares.unmatched / found.shares.step, 100 * found.shares.beside / found.shares.step, stretch));
    } else if (stretch > 1 + much) {
        warnings.push_back(
            fmt::format("prices are stretched by {:.3f}: the medians of what layers take add up to so much less than "
                        "the median step, as where another layer is held up in each step",
                        stretch));
    }
    if (!found.by_shape) warnings.push_back(std::string{without_shapes});
    if (found.passes > 1) {
        warnings.push_back(
            fmt::format("a step holds {} forward passes, as where gradients are accumulated: prices and "
                        "--batch are of one of them",
                        found.passes));
    }
    if (!found.missing.empty()) {
        std::vector<std::string_view> names(
            found.missing.begin(), found.missing.begin() + std::min<std::ptrdiff_t>(8, std::ssize(found.missing)));
        warnings.push_back(
            fmt::format("{} layers without an operator, which have the machine's own prices, stretched alike: {}{}",
                        found.missing.size(), join(names), found.missing.size() > 8 ? ", ..." : ""));
    }
    if (found.unlike > 0) {
        warnings.push_back(fmt::format("{} steps called less of the network than the other {}; they are left out",
                                       found.unlike, found.steps));
    }
    if (found.spread > unlike) {
        warnings.push_back(
            fmt::format("neighbouring steps differ by {:.0f} % in what they compute: some do other work (compilation, "
                        "evaluation, another batch), or the host was busy. Prices add up to the median step; record "
                        "steps that are alike",
                        100 * found.spread));
    }
    if (found.shares.loader > much * found.shares.step) {
        warnings.push_back("waiting for samples is in no price: predict --loader models it");
    }
    if (recordings.front().ranks > std::ssize(recordings)) {
        warnings.push_back(
            fmt::format("traces of {} of {} ranks: a collective's time has the wait for the others in it",
                        recordings.size(), recordings.front().ranks));
    }
    return warnings;
}

std::string spread_of(const calibrate::MatchedRecording& found) {
    if (!(found.spread > 0)) return "";
    return fmt::format("\nneighbouring steps differ by {:.1f} % (one standard deviation)", 100 * found.spread);
}

// Messages inside nodes, which are a part of what goes on between them, and those between nodes.
constexpr std::array sides{calibrate::Between::devices, calibrate::Between::nodes};
using Sides = std::array<calibrate::FileSamples, sides.size()>;

// Ranks fill nodes in their order, but --between nodes says of a job that would fit one that each has a node of its
// own.
calibrate::CollectiveRow row_of(const calibrate::RecordedMessage& message, std::int64_t job,
                                std::optional<calibrate::Between> asked, std::int64_t devices_per_node) {
    calibrate::CollectiveRow row{message.kind, message.ranks, message.bytes, message.time};
    const bool alone = asked == calibrate::Between::nodes && job <= devices_per_node;
    row.hosts = alone ? 0 : message.hosts;
    return row;
}

// A group whose ranks the profile does not list has one a node, or full nodes where the machine has too few of them.
calibrate::CollectiveRow on_nodes(calibrate::CollectiveRow row, calibrate::Between between, const Machine& machine) {
    if (row.hosts > 0) return row;
    const std::int64_t each = devices_per_node(machine.nodes.front());
    const bool full = row.ranks > node_count(machine) && each > 1 && row.ranks % each == 0;
    row.hosts = between == calibrate::Between::devices ? 1 : full ? row.ranks / each : row.ranks;
    return row;
}

// --between speaks of groups whose ranks the profile does not list; where it lists all, it must agree.
Sides samples_of(const std::vector<calibrate::RecordedMessage>& messages, const std::string& where, std::int64_t job,
                 std::optional<calibrate::Between> asked, const Machine& machine) {
    Sides found{calibrate::FileSamples{where, {}, {}, {}}, calibrate::FileSamples{where, {}, {}, {}}};
    const bool some_unknown =
        std::ranges::any_of(messages, [](const calibrate::RecordedMessage& each) { return each.hosts == 0; });
    for (const calibrate::RecordedMessage& message : messages) {
        if (message.samples.empty()) continue;
        const calibrate::CollectiveRow row = row_of(message, job, asked, devices_per_node(machine.nodes.front()));
        const bool told = row.hosts > 0 && some_unknown;
        const calibrate::Between between =
            calibrate::between_of(row, told ? std::nullopt : asked, machine, fmt::format("{} of {} ranks", where, job));
        calibrate::FileSamples& side = found.at(std::ranges::find(sides, between) - sides.begin());
        side.messages.push_back(message.samples.front());
        side.collectives.push_back(on_nodes(row, between, machine));
    }
    return found;
}

// Lines are drawn through three sizes or more.
std::string add_messages(Machine& machine, const std::vector<calibrate::RecordedMessage>& messages,
                         const std::string& where, std::int64_t job, std::optional<calibrate::Between> asked) {
    constexpr std::size_t fewest = 3;
    const Sides found = samples_of(messages, where, job, asked, machine);
    std::string lines;
    for (std::size_t i = 0; i < sides.size(); ++i) {
        const std::size_t sizes = found.at(i).messages.size();
        if (sizes == 0) continue;
        if (sizes >= fewest)
            machine = calibrate::with_messages(std::move(machine), found.at(i), sides.at(i), predicted_time);
        lines += fmt::format(
            "{}messages between {} {}", lines.empty() ? "" : "\n", calibrate::word_of(sides.at(i)),
            sizes >= fewest
                ? fmt::format("fitted to {} sizes", sizes)
                : fmt::format("stay as the machine has them: {} sizes of collectives are too few for a fit", sizes));
    }
    return lines.empty() ? "no collectives with a size: messages stay as the machine has them" : lines;
}

}  // namespace

int calibrate_trace(const TraceCalibration& asked, const Common& common) {
    check(asked, common);
    Machine machine = models::load_machine(asked.machine);
    if (machine.classes.size() != 1) {
        throw InputError(fmt::format("machine '{}' has {} device classes: a profile of one can be applied to one only",
                                     machine.name, machine.classes.size()));
    }
    const Network network = load_network(asked.models.front(), asked.fuse);
    const Schedule schedule = recorded_schedule(network, asked.batches.front(), asked.precision, asked.optimizer);
    const std::vector<Recording> recordings = read_all(asked, common);
    const calibrate::MatchedRecording found =
        calibrate::matched(recordings, schedule, calibrate::named_steps(schedule));
    const std::string where = fmt::format("profile {}, {}", recordings.front().path, today());
    const std::vector<calibrate::Sample> prices = calibrate::prices_of(found, schedule, machine.classes.front());
    const double stretch = calibrate::stretch_of(found, schedule, machine.classes.front());
    const std::vector<calibrate::RecordedMessage> messages =
        calibrate::messages_of(recordings, devices_per_node(machine.nodes.front()));
    machine = calibrate::with_prices(std::move(machine), prices, found.spread, where);
    const std::string fitted = add_messages(machine, messages, where, recordings.front().ranks, asked.between);

    Report report{document("calibration", {{"traces", asked.traces},
                                           {"model", asked.models.front()},
                                           {"batch", asked.batches.front()},
                                           {"precision", to_string(asked.precision)},
                                           {"optimizer", to_string(asked.optimizer)},
                                           {"machine", asked.machine}}),
                  {},
                  ""};
    Json& document = report.document;
    document["iterations"] = found.steps;
    document["steps"] = share_rows(found);
    document["layers"] = layer_rows(found);
    document["unmatched"] = unmatched_rows(found);
    document["messages"] = message_rows(messages);
    document["copies"] = copy_rows(recordings);
    document["problems"] = prices.size();
    document["missing"] = found.missing;
    document["file"] = asked.machine_out;
    document["warnings"] = warnings_of(found, recordings, stretch);
    report.tables = tables_of(document);
    report.footer = fmt::format(
        "medians of {} steps; prices of {} problems, stretched by {:.3f} so that they add up to the "
        "{} that a step computes{}\n{}\n{}kept in {}",
        found.steps, prices.size(), stretch, to_string(Seconds{found.computing()}), spread_of(found), fitted,
        messages.empty() ? "" : std::string{calibrate::bandwidth_words} + "\n", asked.machine_out);
    for (const Json& warning : document["warnings"]) talk(common, "warning: " + warning.get<std::string>());
    replace_file(asked.machine_out, models::to_toml(machine, models::other_tables(asked.machine)));
    print(report, common);
    return good;
}

}  // namespace rehearse::cli
