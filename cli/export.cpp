// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

enum class To { perfetto, chrome, csv, links, svg, png, pdf, programs };  // the first as trace::Format
enum class Drawn { timeline, pipeline, topology };

struct Options {
    Common common;
    std::vector<std::string> files;  // timelines, then the file to write
    To to = To::perfetto;
    Drawn drawn = Drawn::timeline;
    picture::Coloring coloring = picture::Coloring::activity;
    bool dark = false;
};

bool is_picture(To to) { return to >= To::svg; }

// The machine with the mean load of its links.
picture::Picture loads_of(const Timeline& timeline, picture::Theme theme) {
    const picture::Lanes lanes = picture::lanes_of(timeline);
    const std::vector<picture::LinkLoad> loads = picture::link_loads(lanes);
    const std::string machine = picture::machine_of(timeline.title);
    if (loads.empty() || machine.empty())
        throw InputError(fmt::format(
            "export: '{}' says nothing of links: right would be a prediction (predict --trace)", timeline.title));
    return topology_picture(models::load_machine(machine), shares_of(loads, lanes, picture::LoadOf::mean), 1200, theme);
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
    if (options.drawn == Drawn::topology) return loads_of(timelines.front(), theme);
    picture::TimelineView view;
    view.coloring = options.coloring;
    return picture::timeline_picture(picture::lanes_of(timelines.front()), view, 1200, theme);
}

int export_timelines(const Options& options) {
    if (options.to == To::programs) {
        throw InputError(
            "export: chakra, goal and smpi tell what ranks do, which a timeline does not hold: rehearse schedule "
            "--model NAME --machine NAME --plan PLAN --devices N --to chakra --prefix PATH writes them");
    }
    if (options.files.size() < 2) {
        throw InputError("export: one or more timelines and then the file to write, like a.json b.json both.pftrace");
    }
    const std::string& target = options.files.back();
    check_writable(target, options.common);
    if (is_picture(options.to)) picture::check_suffix(options.to == To::svg ? ".svg" : ".png");
    std::vector<Timeline> timelines;
    for (std::size_t i = 0; i + 1 < options.files.size(); ++i) timelines.push_back(read_any(options.files[i]));
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
    app.add_option("FILES", options->files, "timelines, and last the file to write")->required();
    add_choice<To>(
        app, "--to", options->to,
        {{"perfetto", To::perfetto},
         {"chrome", To::chrome},
         {"csv", To::csv},
         {"links", To::links},
         {"svg", To::svg},
         {"png", To::png},
         {"pdf", To::pdf},
         {"chakra", To::programs},
         {"goal", To::programs},
         {"smpi", To::programs}},
        "what to write: a trace, a table of events (csv) or of a prediction's links, or a picture; chakra, goal "
        "and smpi are written by rehearse schedule")
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
    app.add_flag("--dark", options->dark, "a picture on dark ground");
    add_common(app, options->common);
    return [options] { return export_timelines(*options); };
}

}  // namespace rehearse::cli
