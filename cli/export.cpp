// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/recorded.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"
#include "picture/pipeline.hpp"
#include "picture/timeline_picture.hpp"
#include "picture/topology.hpp"
#include "picture/write.hpp"
#include "trace/programs.hpp"
#include "trace/recorded_programs.hpp"
#include "trace/recording.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

enum class To { perfetto, chrome, csv, links, svg, png, pdf, chakra, programs };  // the first as trace::Format
enum class Drawn { timeline, pipeline, topology };

struct Options {
    Common common;
    std::vector<std::string> files;  // timelines, then the file to write
    To to = To::perfetto;
    Drawn drawn = Drawn::timeline;
    picture::Coloring coloring = picture::Coloring::activity;
    std::string machine;  // of links; empty: the one that the timeline names
    bool dark = false;
};

struct Ending {
    std::string_view text;
    To to;
};
constexpr std::array endings{Ending{".pftrace", To::perfetto}, Ending{".perfetto-trace", To::perfetto},
                             Ending{".json", To::chrome},      Ending{".csv", To::csv},
                             Ending{".csv", To::links},        Ending{".svg", To::svg},
                             Ending{".png", To::png},          Ending{".pdf", To::pdf}};

// A file's ending is free, but not that of another format.
void check_ending(std::string_view file, To to) {
    std::string_view own, found;
    for (const auto& [text, of] : endings) {
        if (of == to && own.empty()) own = text;
        if (!file.ends_with(text)) continue;
        if (of == to) return;
        found = text;
    }
    if (!found.empty())
        throw InputError(
            fmt::format("export: '{}' ends in {}, which is another format than --to asks for: right would "
                        "be {}, or another --to",
                        file, found, own));
}

bool is_picture(To to) { return to >= To::svg && to <= To::pdf; }

// Options that would change nothing: of a picture where none is made, or of another picture.
void check_options(const CommandLine& app, const Options& options) {
    const auto refuse = [&](const char* option, bool fits, const char* right) {
        if (!app.has(option) || fits) return;
        throw InputError(fmt::format("export: {} changes nothing here: it goes with {}", option, right));
    };
    const bool drawn = is_picture(options.to);
    for (const char* option : {"--picture", "--dark"}) refuse(option, drawn, "--to svg, png or pdf");
    refuse("--coloring", drawn && options.drawn == Drawn::timeline, "--to svg, png or pdf and --picture timeline");
    refuse("--machine", drawn && options.drawn == Drawn::topology, "--to svg, png or pdf and --picture topology");
}

[[noreturn]] void refuse_without_links(const Timeline& timeline) {
    throw InputError(fmt::format(
        "export: '{}' says nothing of links: right would be a prediction (predict --trace) on several devices",
        timeline.title));
}

// The machine with the mean load of its links.
picture::Picture loads_of(const Timeline& timeline, const std::string& asked, picture::Theme theme) {
    const picture::Lanes lanes = picture::lanes_of(timeline);
    const std::vector<picture::LinkLoad> loads = picture::link_loads(lanes);
    const std::string named = picture::machine_of(timeline.title);
    if (loads.empty() || named.empty()) refuse_without_links(timeline);
    const Machine machine = models::load_machine(asked.empty() ? named : asked);
    if (!asked.empty() && machine.name != named)
        throw InputError(fmt::format("--machine {}: it is '{}', the timeline is of '{}'", asked, machine.name, named));
    return topology_picture(machine, shares_of(loads, lanes, picture::LoadOf::mean), 1200, theme);
}

picture::Picture picture_of(const std::vector<Timeline>& timelines, const Options& options) {
    const picture::Theme theme = options.dark ? picture::Theme::dark : picture::Theme::light;
    if (options.drawn == Drawn::pipeline) {
        std::vector<picture::PipelineDrawing> drawings;
        for (const Timeline& timeline : timelines) drawings.push_back(picture::pipeline_of(timeline));
        return picture::pipelines_picture(drawings, 1200, theme);
    }
    if (timelines.size() > 1) {
        throw InputError(fmt::format("export: {} timelines in one picture need --picture pipeline", timelines.size()));
    }
    if (options.drawn == Drawn::topology) return loads_of(timelines.front(), options.machine, theme);
    picture::TimelineView view;
    view.coloring = options.coloring;
    return picture::timeline_picture(picture::lanes_of(timelines.front()), view, 1200, theme);
}

[[noreturn]] void refuse_programs() {
    throw InputError(
        "export: chakra, goal and smpi tell what ranks do, which a timeline does not hold: rehearse schedule "
        "--model NAME --machine NAME --plan PLAN --devices N --to chakra --prefix PATH writes them; of traces of a "
        "framework's profiler, one a rank, --to chakra does");
}

// Of a profiler's traces, one a rank; ours hold what went over the wire, not what was asked for.
int export_recordings(const Options& options) {
    const std::string& prefix = options.files.back();
    std::vector<Recording> recordings;
    for (std::size_t i = 0; i + 1 < options.files.size(); ++i) {
        try {
            trace::read(options.files[i]);
            refuse_programs();
        } catch (const trace::OtherProgram&) {
            recordings.push_back(trace::read_recording(options.files[i]));
        }
    }
    const RankPrograms programs = trace::programs_of(recordings);
    const std::vector<std::string> files = trace::program_files(programs, prefix, trace::ProgramFormat::chakra);
    for (const std::string& file : files) check_writable(file, options.common);
    trace::write_programs(programs, prefix, trace::ProgramFormat::chakra);
    talk(options.common,
         fmt::format("{} ranks: {} and {} more", programs.ranks.size(), files.front(), files.size() - 1));
    return good;
}

int export_timelines(const Options& options) {
    if (options.to == To::programs) refuse_programs();
    if (options.files.size() < 2) {
        throw InputError("export: one or more timelines and then the file to write, like a.json b.json both.pftrace");
    }
    if (options.to == To::chakra) return export_recordings(options);
    const std::string& target = options.files.back();
    check_ending(target, options.to);
    check_writable(target, options.common);
    if (is_picture(options.to)) picture::check_suffix(options.to == To::svg ? ".svg" : ".png");
    std::vector<Timeline> timelines;
    for (std::size_t i = 0; i + 1 < options.files.size(); ++i) timelines.push_back(read_any(options.files[i]));
    const bool no_links = std::ranges::all_of(timelines, [](const Timeline& each) { return each.links.empty(); });
    if (options.to == To::links && no_links) refuse_without_links(timelines.front());
    if (is_picture(options.to)) {
        const picture::Picture drawn = picture_of(timelines, options);
        constexpr std::array suffixes{".svg", ".png", ".pdf"};
        const char* suffix = suffixes.at(static_cast<std::size_t>(options.to) - static_cast<std::size_t>(To::svg));
        replace_file(target, picture::encoded(drawn, suffix));
    } else {
        trace::write(timelines, target, static_cast<trace::Format>(options.to));
    }
    talk(options.common, fmt::format("{} timelines in {}", timelines.size(), target));
    return good;
}

}  // namespace

Run add_export(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("FILES", options->files, "timelines, and last the file to write (chakra: the PREFIX of its files)")
        ->required();
    add_choice<To>(
        app, "--to", options->to,
        {{"perfetto", To::perfetto},
         {"chrome", To::chrome},
         {"csv", To::csv},
         {"links", To::links},
         {"svg", To::svg},
         {"png", To::png},
         {"pdf", To::pdf},
         {"chakra", To::chakra},
         {"goal", To::programs},
         {"smpi", To::programs}},
        "what to write: a trace, a table of events (csv) or of a prediction's links, a picture, or (chakra) what a "
        "framework's ranks did, of its profiler's traces, into PREFIX.RANK.et; goal and smpi are written by rehearse "
        "schedule")
        ->required();
    add_choice<Drawn>(
        app, "--picture", options->drawn,
        {{"timeline", Drawn::timeline}, {"pipeline", Drawn::pipeline}, {"topology", Drawn::topology}},
        "lanes over time, boxes of micro-batches (pipeline: several timelines on one axis), or the load of links");
    add_choice<picture::Coloring>(app, "--coloring", options->coloring,
                                  {{"activity", picture::Coloring::activity},
                                   {"waiting", picture::Coloring::waiting},
                                   {"network", picture::Coloring::network}},
                                  "of a timeline: what takes most of the time, or a heat map");
    app.add_option(
           "--machine", options->machine,
           "of --picture topology: the machine that the timeline names (default: the built-in one of that name)")
        ->option_text("NAME|FILE.toml");
    app.add_flag("--dark", options->dark, "a picture on dark ground");
    add_common(app, options->common);
    return [&app, options] {
        check_options(app, *options);
        return export_timelines(*options);
    };
}

}  // namespace rehearse::cli
