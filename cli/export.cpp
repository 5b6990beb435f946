// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

struct Options {
    Common common;
    std::vector<std::string> files;  // timelines, then the file to write
    trace::Format to = trace::Format::perfetto;
};

int export_timelines(const Options& options) {
    if (options.files.size() < 2) {
        throw InputError("export: one or more timelines and then the file to write, like a.json b.json both.pftrace");
    }
    const std::string& target = options.files.back();
    check_writable(target, options.common);
    std::vector<Timeline> timelines;
    for (std::size_t i = 0; i + 1 < options.files.size(); ++i) timelines.push_back(trace::read(options.files[i]));
    trace::write(timelines, target, options.to);
    talk(options.common, fmt::format("{} timelines in {}", timelines.size(), target));
    return good;
}

}  // namespace

Run add_export(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("FILES", options->files, "timelines, and last the file to write")->required();
    add_choice<trace::Format>(app, "--to", options->to,
                              {{"perfetto", trace::Format::perfetto},
                               {"chrome", trace::Format::chrome},
                               {"csv", trace::Format::csv},
                               {"links", trace::Format::links}},
                              "what to write; csv: a row an event, links: a row a link of a prediction")
        ->required();
    add_common(app, options->common);
    return [options] { return export_timelines(*options); };
}

}  // namespace rehearse::cli
