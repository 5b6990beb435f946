// SPDX-License-Identifier: Apache-2.0
#include "cli/application.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/pilots.hpp"
#include "cli/predicted_job.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "models/frameworks.hpp"
#include "models/models.hpp"
#include "models/request_file.hpp"
#include "picture/write.hpp"
#include "predict/predict.hpp"
#include "report/prediction_json.hpp"

namespace rehearse::cli {

namespace {

using models::RequestFile;
using models::ScalingRequest;
using report::Application;

struct Options {
    Common common;
    std::vector<std::string> files;
};

Optimizer optimizer_of(const std::string& word) {
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam, Optimizer::lamb})
        if (to_string(optimizer) == word) return optimizer;
    throw InputError(fmt::format("optimizer '{}': it is one of sgd, adam, lamb", word));
}

report::ApplicationMachine machine_of(const Machine& machine, const std::string& name) {
    return {machine.name,
            machine.summary,
            class_of(machine, 0).name,
            node_count(machine),
            devices_per_node(machine.nodes.front()),
            machine.storage,
            models::load_charge(name)};
}

// What the plan does, for a reader who does not know its words.
std::string sentence_of(const schedule::Plan& plan, Precision precision, std::string_view optimizer) {
    const std::int64_t servers = plan.methods.get<Servers>().count;
    const bool sums = servers == 0 || axis_index(plan.mesh, "groups") >= 0;  // or the servers do
    const std::pair<std::string_view, std::string_view> axes[]{
        {"data", sums ? "copies of the network share each batch and sum their gradients"
                      : "copies of the network share each batch"},
        {"tensor", "each layer is split over several devices"},
        {"pipe", "the layers stand on successive stages of a pipeline"},
        {"spatial", "each sample is split over several devices"},
        {"context", "the tokens of each sequence are split over several devices"},
        {"expert", "experts stand on different devices"},
        {"groups", "the copies stand in groups that do not wait for each other"}};
    std::vector<std::string> parts;
    for (const auto& [axis, meaning] : axes) {
        const int index = axis_index(plan.mesh, axis);
        if (index < 0) continue;
        const std::int64_t size = plan.mesh.axes[static_cast<std::size_t>(index)].size;
        parts.push_back(fmt::format("{}{}", meaning, size > 1 ? fmt::format(" ({})", size) : ""));
    }
    if (servers > 0) {
        parts.push_back(fmt::format("servers keep the weights and take gradients as they come ({})", servers));
    }
    if (parts.empty()) parts.push_back("the devices follow the plan");
    std::string text =
        fmt::format("{}; trained in {} precision with {}.", fmt::join(parts, ", "), to_string(precision), optimizer);
    text.front() = static_cast<char>(std::toupper(text.front()));
    return text;
}

// All devices of the first `nodes` nodes, which may be unlike.
std::int64_t devices_of(const Machine& machine, std::int64_t nodes) {
    std::int64_t devices = 0;
    for (const NodeKind& kind : machine.nodes) {
        const std::int64_t taken = std::min(kind.count, nodes);
        devices += taken * devices_per_node(kind);
        nodes -= taken;
    }
    return devices;
}

predict::Job job_of(const RequestFile& file, const ScalingRequest& study, bool strong, const Machine& machine) {
    predict::Job job{.network = load_network(file.model, default_fuse),
                     .machine = machine,
                     .plan = schedule::parse_plan(file.plan),
                     .precision = parse_precision(file.precision),
                     .optimizer = optimizer_of(file.optimizer)};
    job.devices.clear();
    for (const std::int64_t nodes : study.nodes) job.devices.push_back(devices_of(machine, nodes));
    if (strong) {
        job.global_batch = study.batch;
    } else {
        job.batch = study.batch;
    }
    job.training = {.dataset = file.dataset, .epochs = file.epochs};
    job.conditions.input = file.input;
    if (!file.sample.empty() && !file.input.empty()) job.conditions.sample = parse_quantity<Bytes>(file.sample);
    if (file.checkpoint_every) job.conditions.checkpoint = {file.checkpoint, *file.checkpoint_every};
    predict::follow(
        job, models::load_framework(file.framework.empty() ? std::string{models::default_framework} : file.framework));
    job.pilots = pilots_of(study.pilots, job);
    return job;
}

void check_nodes(const ScalingRequest& study, const Machine& machine) {
    const std::int64_t most = node_count(machine);
    if (!study.nodes.empty() && study.nodes.back() > most)
        throw InputError(fmt::format("{} nodes are asked for: {} has {}", study.nodes.back(), machine.name, most));
}

// The sizes of a study, and those of the phases that take its batch.
ScalingRequest with_phases(ScalingRequest study, bool strong, const RequestFile& file) {
    for (const models::PhaseRequest& phase : file.phases)
        if (phase.strong == strong) study.nodes.push_back(phase.nodes);
    std::ranges::sort(study.nodes);
    const auto twins = std::ranges::unique(study.nodes);
    study.nodes.erase(twins.begin(), twins.end());
    return study;
}

report::JobPhase phase_of(const models::PhaseRequest& asked, const report::ScalingStudy& study) {
    report::JobPhase phase{asked.name, asked.period, asked.runs, asked.nodes, {}, "as asked for", asked.strong};
    const auto point = std::ranges::find(study.points, asked.nodes, &predict::Point::nodes);
    require(point != study.points.end(), "each phase's size is predicted");
    if (!point->memory.fits)
        throw InfeasibleError(
            fmt::format("phase '{}': {} nodes have not enough memory for this batch: a device would "
                        "take {} of {}",
                        asked.name, asked.nodes, to_string(point->memory.peak), to_string(point->memory.capacity)));
    if (asked.wall) {
        phase.wall = *asked.wall;
    } else if (asked.steps) {
        const double training = 1 - (point->checkpoints ? point->checkpoints->share : 0);  // the rest writes
        phase.wall = static_cast<double>(*asked.steps) / training * point->figures.time.step;
        phase.length = fmt::format("{} steps", *asked.steps);
    } else {
        phase.wall = Seconds{point->training->all.value / point->training->epochs * *asked.epochs};
        phase.length = fmt::format("{:.6g} epoch{}", *asked.epochs, *asked.epochs == 1 ? "" : "s");
    }
    return phase;
}

Application of_request(const std::string& path, const Options& options, const LongWork& work) {
    const RequestFile file = models::load_request(path);
    const Machine machine = models::load_machine(file.machine);
    Application application{.title = file.title,
                            .applicant = file.applicant,
                            .project = file.project,
                            .machine = machine_of(machine, file.machine),
                            .job = {},
                            .data = {},
                            .floor = file.floor,
                            .studies = {},
                            .phases = {},
                            .track = {},
                            .command = {},
                            .version = REHEARSE_VERSION};
    bool anchored = false;
    for (const bool strong : {false, true}) {
        const auto& asked = strong ? file.strong : file.weak;
        if (!asked) continue;
        const ScalingRequest study = with_phases(*asked, strong, file);
        check_nodes(study, machine);
        const predict::Job job = job_of(file, study, strong, machine);
        const Progress progress = work.part(strong ? "strong scaling" : "weak scaling");
        predict::Prediction prediction = predict::predict(job, [&](std::size_t done, std::int64_t) {
            goes_on(progress, static_cast<std::int64_t>(done), std::ssize(job.devices));
        });
        anchored = anchored || !job.pilots.empty();
        application.studies.push_back({strong, study.batch, std::move(prediction.points)});
        report::check(application.studies.back());
        const models::FrameworkProfile framework =
            models::load_framework(file.framework.empty() ? std::string{models::default_framework} : file.framework);
        application.job = {job.network.name,
                           job.plan.text,
                           std::string{to_string(job.precision)},
                           std::string{types_of(job.precision).summary},
                           file.optimizer,
                           framework.name,
                           framework.summary,
                           parameters(job.network),
                           sentence_of(job.plan, job.precision, file.optimizer)};
        application.data.sample =
            file.sample.empty() ? predict::sample_of(job.conditions, job.network) : parse_quantity<Bytes>(file.sample);
    }
    application.data = {file.dataset,
                        file.epochs,
                        application.data.sample,
                        file.input,
                        file.checkpoint,
                        file.checkpoint_every.value_or(0),
                        file.checkpoints_kept.value_or(1)};
    for (const models::PhaseRequest& phase : file.phases) {
        const auto study = std::ranges::find(application.studies, phase.strong, &report::ScalingStudy::strong);
        application.phases.push_back(phase_of(phase, *study));
    }
    application.track = track_record(machine, anchored, work.part("published runs"));
    application.command = fmt::format("rehearse report {} --output {}", path, options.common.output);
    return application;
}

void add_study(std::vector<report::ScalingStudy>& studies, report::ScalingStudy study, const std::string& path) {
    if (std::ranges::find(studies, study.strong, &report::ScalingStudy::strong) != studies.end()) {
        throw InputError(
            fmt::format("{}: another prediction of {} scaling: a report has one of weak and one of strong scaling",
                        path, study.strong ? "strong" : "weak"));
    }
    report::check(study);
    studies.push_back(std::move(study));
}

Application of_predictions(const Options& options, const LongWork& work) {
    Application application{.title = {},
                            .applicant = {},
                            .project = {},
                            .machine = {},
                            .job = {},
                            .data = {},
                            .studies = {},
                            .phases = {},
                            .track = {},
                            .command = "rehearse report",
                            .version = REHEARSE_VERSION};
    bool anchored = false;
    std::optional<PredictedJob> job;
    for (const std::string& path : options.files) {
        const auto document = nlohmann::json::parse(read_file(path), nullptr, false);
        const report::PredictionFile file = report::prediction_of(document, path);
        const PredictedJob its = predicted_job(file, document);
        if (job) check_same(its, *job, path);
        job = its;
        application.title = fmt::format("{} on {}", file.model, file.machine);
        add_study(application.studies, study_of(file, path), path);
        for (const predict::Point& point : file.points) anchored = anchored || point.anchor || point.measured;
        application.command += " " + path;
    }
    const models::FrameworkProfile framework = models::load_framework(job->framework);
    const Precision precision = parse_precision(job->precision);
    application.job = {job->model,
                       job->plan,
                       job->precision,
                       std::string{types_of(precision).summary},
                       job->optimizer,
                       framework.name,
                       framework.summary,
                       0,
                       sentence_of(schedule::parse_plan(job->plan), precision, job->optimizer)};
    const Machine machine = models::load_machine(job->machine);
    application.machine = machine_of(machine, job->machine);
    application.track = track_record(machine, anchored, work.part("published runs"));
    application.command += " --output " + options.common.output;
    return application;
}

// Writes into the folder and says what: the file and what stands in it.
class Folder {
public:
    explicit Folder(const Common& common) : root_(common.output) {
        std::error_code error;
        for (const char* each : {"", "tables", "figures"}) {
            std::filesystem::create_directories(root_ / each, error);
            if (error) throw InputError(fmt::format("--output {}: {}", common.output, error.message()));
        }
    }
    void write(const std::string& name, const std::string& what, const std::string& text) {
        replace_file((root_ / name).string(), text);
        if (!what.empty()) written_.push_back({{"file", (root_ / name).string()}, {"what", what}});
    }
    const Json& written() const { return written_; }

private:
    std::filesystem::path root_;
    Json written_ = Json::array();
};

void write_all(Folder& folder, const Application& application, const report::Document& made, const Json& config) {
    folder.write("report.pdf", "the pages", picture::to_pdf(report::pages(made)));
    folder.write("report.md", "the same as Markdown", report::to_markdown(made, "figures"));
    folder.write("report.tex", "the same as LaTeX, for pdflatex", report::to_latex(made, "figures"));
    Json json = document("report", config);
    const Json made_json = report::json_of(made);
    for (const auto& [key, value] : made_json.items()) json[key] = value;
    std::vector<report::Table> tables;
    report::for_each<report::Table>(made, [&](const report::Table& table, int) { tables.push_back(table); });
    if (auto published = report::published_rows(application)) {
        Json rows = Json::array();
        for (const auto& row : published->rows) {
            Json each;
            for (std::size_t i = 0; i < row.size(); ++i)
                each[published->columns[i].key] = row[i].value.is_null() ? Json(row[i].text) : row[i].value;
            rows.push_back(each);
        }
        json["published_rows"] = rows;
        tables.push_back(std::move(*published));
    }
    folder.write("report.json", "its tables and texts for programs", json.dump(2) + "\n");
    for (const report::Table& table : tables) {
        folder.write(fmt::format("tables/{}.csv", table.key), table.caption, report::to_csv(table));
        folder.write(fmt::format("tables/{}.tex", table.key), "", report::to_latex(table));
    }
    report::for_each<report::Figure>(made, [&](const report::Figure& figure, int) {
        picture::Chart chart = figure.chart;
        chart.title = figure.key == "throughput" ? "Throughput" : "Efficiency";
        const picture::Picture drawn = picture::xy_chart(chart, figure.size);
        folder.write(fmt::format("figures/{}.svg", figure.key), figure.caption, picture::to_svg(drawn));
        folder.write(fmt::format("figures/{}.pdf", figure.key), "", picture::to_pdf(drawn));
    });
}

void check(const Options& options) {
    if (options.common.output.empty())
        throw InputError("report: --output FOLDER is missing: where the pages, tables and figures go");
    const auto requests = std::ranges::count_if(options.files, [](const auto& f) { return f.ends_with(".toml"); });
    if (requests > 0 && options.files.size() > 1)
        throw InputError("report: one REQUEST.toml, or one or more predictions (.json), not both");
    std::error_code error;
    const std::filesystem::path folder(options.common.output);
    if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error))
        throw InputError(fmt::format("--output {}: it is a file; right would be a folder", options.common.output));
    if (!options.common.force && std::filesystem::exists(folder / "report.pdf", error))
        throw InputError(
            fmt::format("--output {}: report.pdf is there already; --force overwrites it", options.common.output));
    picture::check_suffix("report.pdf");
}

int start(const Options& options) {
    check(options);
    const LongWork work(options.common);
    const bool request = options.files.front().ends_with(".toml");
    const Application application =
        request ? of_request(options.files.front(), options, work) : of_predictions(options, work);
    if (work.interrupted()) return work.exit_code(good);
    const report::Document made = report::document_of(application);
    Folder folder(options.common);
    write_all(folder, application, made, {{"files", options.files}});
    Report report{document("files", {{"files", options.files}}), {}, ""};
    report.document["files"] = folder.written();
    report.tables = {{"files", "", {{"file", "file"}, {"what", "what"}}}};
    Common common = options.common;
    common.output.clear();
    print(report, common);
    return good;
}

}  // namespace

Run add_report(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("FILES", options->files,
                   "a request (.toml, docs/report.md), or predictions (.json of predict): weak scaling, strong scaling")
        ->required()
        ->option_text("REQUEST.toml|PREDICTION.json...");
    add_common(app, options->common);
    app.get_option("--output")
        ->description("the folder that report.pdf, .md, .tex, .json, tables/ and figures/ go to; needed")
        ->option_text("FOLDER");
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
