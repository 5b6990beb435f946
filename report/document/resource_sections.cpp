// SPDX-License-Identifier: Apache-2.0
// Jobs and their charge, data and storage, software, and how far to trust it all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/document/numbers.hpp"
#include "report/document/sections.hpp"

namespace rehearse::report {

namespace {

double hours_of(const JobPhase& phase) { return phase.wall.value / 3600; }
double node_hours_of(const JobPhase& phase) { return static_cast<double>(phase.runs * phase.nodes) * hours_of(phase); }

std::string queue_text(const Application& application, const JobPhase& phase) {
    const auto& charge = application.machine.charge;
    if (!charge || charge->queues.empty()) return "not known";
    const auto queue = models::longest_queue(*charge, phase.nodes);
    if (!queue) return fmt::format("none takes {} nodes", grouped(phase.nodes));
    const auto jobs = static_cast<std::int64_t>(std::ceil(phase.wall / queue->wall));
    return fmt::format("{}, {} h{}", queue->name, rounded(queue->wall.value / 3600),
                       jobs > 1 ? fmt::format(": {} jobs a run", grouped(jobs)) : "");
}

std::string charge_title(const Application& application) {
    return application.machine.charge ? application.machine.charge->unit + "s" : "node-hours";
}
double charged(const Application& application, double node_hours) {
    return node_hours * (application.machine.charge ? application.machine.charge->factor.value : 1);
}

Table jobs_table(const Application& application) {
    Table table{"jobs",
                "Jobs asked for: runs × nodes × hours of wall time.",
                {{"phase", "phase", "", false},
                 {"period", "period", "", false},
                 {"runs", "runs", "runs"},
                 {"length", "length of a run", "", false},
                 {"nodes", "nodes", "nodes"},
                 {"share_percent", "share", "% of nodes"},
                 {"wall_hours", "wall", "h a run"},
                 {"node_hours", "time", "node-hours"},
                 {"charge", "charge", charge_title(application)},
                 {"queue", "queue", "", false}},
                {}};
    double node_hours = 0;
    std::int64_t runs = 0, most = 0;
    double longest = 0;
    for (const JobPhase& phase : application.phases) {
        const double cost = node_hours_of(phase);
        node_hours += cost;
        runs += phase.runs;
        most = std::max(most, phase.nodes);
        longest = std::max(longest, hours_of(phase));
        table.rows.push_back(
            {words(phase.name), words(phase.period), count(phase.runs), words(phase.length), count(phase.nodes),
             percent(static_cast<double>(phase.nodes) / static_cast<double>(application.machine.nodes)),
             figure(hours_of(phase)), figure(cost), figure(charged(application, cost)),
             words(queue_text(application, phase))});
    }
    table.rows.push_back(
        {words("Total"),
         words("all"),
         count(runs),
         words("–"),
         {"≤ " + grouped(most), most},
         {"≤ " + percent(static_cast<double>(most) / static_cast<double>(application.machine.nodes)).text,
          100.0 * static_cast<double>(most) / static_cast<double>(application.machine.nodes)},
         {"≤ " + rounded(longest), longest},
         figure(node_hours),
         figure(charged(application, node_hours)),
         words("–")});
    const double year = static_cast<double>(application.machine.nodes) * 365 * 24;
    table.note = fmt::format("All of it is {} % of what the machine's {} nodes give in a year. ",
                             rounded(100 * node_hours / year, 2), grouped(application.machine.nodes));
    if (application.machine.charge) {
        const models::Charge& charge = *application.machine.charge;
        table.note += fmt::format("Charge: {} {}{} for a node an hour ({}).", rounded(charge.factor.value), charge.unit,
                                  charge.factor.value == 1 ? "" : "s", charge.factor.source);
        std::vector<std::string> sources;
        for (const models::Queue& queue : charge.queues)
            if (std::ranges::find(sources, queue.source) == sources.end()) sources.push_back(queue.source);
        if (!sources.empty()) table.note += fmt::format(" Queues: {}.", fmt::join(sources, "; "));
    } else {
        table.note += "What the center charges is not in the machine file ([charge]): node-hours are charged as such.";
    }
    return table;
}

const StorageTier* tier(const Application& application, const std::string& name) {
    const auto& all = application.machine.storage;
    const auto found = std::ranges::find(all, name, &StorageTier::name);
    return found == all.end() ? nullptr : &*found;
}

std::string bytes_text(double bytes) {
    for (const auto& [unit, name] : {std::pair{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}})
        if (bytes >= unit) return fmt::format("{} {}", rounded(bytes / unit), name);
    return fmt::format("{} kB", rounded(bytes / 1e3));
}

// What reading does to the chosen size: the rate that it needs and what the file system has.
std::string reading_text(const Application& application, const Choice& choice) {
    const predict::Point& point = choice.point();
    const double needed = throughput_of(point) * application.data.sample.value;
    std::string text = fmt::format("on {} nodes", grouped(point.nodes));
    const StorageTier* from = tier(application, application.data.input);
    if (from == nullptr) return text + "; which file system is read, the request does not say (input)";
    const double has = from->read.value.value * (from->per_node ? static_cast<double>(point.nodes) : 1);
    text += fmt::format(", {} % of what {} gives ({}/s)", rounded(100 * needed / has, 2), from->name, bytes_text(has));
    const double waits = point.figures.time.io_wait / point.figures.time.step;
    if (waits >= 0.005) text += fmt::format("; a step waits for it during {:.1f} % of its time", 100 * waits);
    if (point.input && point.input->bound_devices)
        text += fmt::format("; it is the bound from {} devices on", grouped(*point.input->bound_devices));
    return text;
}

}  // namespace

Section jobs_section(const Application& application) {
    Section section{"Jobs and charge", {}};
    if (application.phases.empty()) {
        section.blocks.push_back(
            Paragraph{"No phases were given: a request file ([[phase]]) says how many runs on how many nodes."});
        return section;
    }
    section.blocks.push_back(Paragraph{
        "The time of a run follows from the step of its size, above; where the request gives the time itself, "
        "its length says so."});
    section.blocks.push_back(jobs_table(application));
    return section;
}

Section data_section(const Application& application, const Choice& choice) {
    const ApplicationData& data = application.data;
    Section section{"Data and storage", {}};
    Table table{
        "data",
        "What is read, written and kept.",
        {{"what", "what", "", false}, {"amount", "amount", "", false}, {"how", "how it comes about", "", false}},
        {}};
    double total = 0;
    if (data.dataset) {
        const double bytes = static_cast<double>(*data.dataset) * data.sample.value;
        total += bytes;
        table.rows.push_back(
            {words("Data set"),
             {bytes_text(bytes), bytes},
             words(fmt::format("{} samples of {}, read {} time{}", grouped(*data.dataset),
                               bytes_text(data.sample.value), data.epochs, data.epochs == 1 ? "" : "s"))});
    }
    if (data.sample.value > 0)
        table.rows.push_back({words("Reading"),
                              {fmt::format("{}/s", bytes_text(throughput_of(choice.point()) * data.sample.value)),
                               throughput_of(choice.point()) * data.sample.value},
                              words(reading_text(application, choice))});
    if (const auto& written = choice.point().checkpoints) {
        const double each = written->written.size.value;
        const double every = static_cast<double>(data.checkpoint_every) * step_of(choice.point()).value;
        total += each * static_cast<double>(data.checkpoints_kept);
        table.rows.push_back(
            {words("Checkpoint"),
             {bytes_text(each), each},
             words(fmt::format("every {} steps ({} min) to {}, {} s each: {} % of the time",
                               grouped(data.checkpoint_every), rounded(every / 60), data.checkpoint,
                               rounded(written->written.time.value), rounded(100 * written->share, 2)))});
    }
    if (total > 0)
        table.rows.push_back(
            {words("Storage"),
             {bytes_text(total), total},
             words(choice.point().checkpoints
                       ? fmt::format("{}{} checkpoint{} kept", data.dataset ? "the data set and " : "",
                                     grouped(data.checkpoints_kept), data.checkpoints_kept == 1 ? "" : "s")
                       : "the data set; checkpoints are not counted")});
    if (table.rows.empty()) {
        section.blocks.push_back(Paragraph{
            "The request says nothing of its data ([training] dataset and sample, checkpoint): file systems are taken "
            "not to be the bound."});
        return section;
    }
    section.blocks.push_back(std::move(table));
    return section;
}

Section software_section(const Application& application, const Choice& choice) {
    const ApplicationJob& job = application.job;
    const predict::Point& point = choice.point();
    Table table{"software", "What runs.", {{"what", "what", "", false}, {"setting", "setting", "", false}}, {}};
    table.rows = {{words("Network"), words(job.model)},
                  {words("Software"), words(fmt::format("{}: {}", job.framework, job.framework_meaning))},
                  {words("Precision"), words(fmt::format("{}: {}", job.precision, job.precision_meaning))},
                  {words("Optimizer"), words(job.optimizer)},
                  {words("Plan"), words(job.plan)}};
    if (point.utilization)
        table.rows.push_back(
            {words("Utilization"), words(fmt::format("{} % of the devices' peak on {} nodes",
                                                     rounded(100 * *point.utilization, 2), grouped(point.nodes)))});
    return {"Software, precision and plan", {Paragraph{job.sentence}, std::move(table)}};
}

std::optional<Table> published_rows(const Application& application) {
    if (!application.track || application.track->used.empty()) return std::nullopt;
    Table table{"published-rows",
                "Published figures that predictions were held to.",
                {{"id", "id", "", false},
                 {"model", "model", "", false},
                 {"devices", "devices", "devices"},
                 {"published", "published", "as its unit says"},
                 {"predicted", "predicted", "as its unit says"},
                 {"unit", "unit", "", false},
                 {"error_percent", "error", "%"},
                 {"source", "source", "", false}},
                {}};
    for (const PublishedUse& use : application.track->used)
        table.rows.push_back({words(use.id), words(use.model), count(use.devices), figure(use.published, 4),
                              figure(use.predicted, 4), words(use.unit), percent(use.error), words(use.source)});
    return table;
}

Section trust_section(const Application& application) {
    Section section{"How far to trust it", {}};
    if (application.track) {
        const TrackRecord& track = *application.track;
        section.blocks.push_back(Paragraph{fmt::format(
            "Predictions of this kind ({}) were held to {} published figures of training runs on {}: they are off by "
            "{} % in the median and by no more than {} % nine times in ten; {} % of the figures lie in their 90 % "
            "interval.",
            track.anchored ? "scaled to one measured run" : "from prices of devices and links alone",
            grouped(track.all.rows), track.of, rounded(100 * track.all.median, 2), rounded(100 * track.all.p90, 2),
            rounded(100 * track.all.in_band, 2))});
        Table table{"track-record",
                    "Errors of predictions of published runs, by where they were published.",
                    {{"system", "system", "", false},
                     {"machine", "machine", "", false},
                     {"rows", "rows", "rows"},
                     {"median_error_percent", "median error", "%"},
                     {"p90_error_percent", "90th percentile", "%"},
                     {"in_band_percent", "in interval", "%"}},
                    {}};
        for (const TrackRow& row : track.systems)
            table.rows.push_back({words(row.system), words(row.machine), count(row.rows), percent(row.median),
                                  percent(row.p90), percent(row.in_band)});
        table.note = "The rows themselves, each with its source, are in tables/published-rows.csv and report.json.";
        section.blocks.push_back(std::move(table));
    } else {
        section.blocks.push_back(Paragraph{
            "No published run on a machine of this class was found to hold these predictions to: the interval "
            "of each row is all there is."});
    }
    section.blocks.push_back(Paragraph{"All of this is made again by"});
    section.blocks.push_back(Command{application.command});
    return section;
}

}  // namespace rehearse::report
