// SPDX-License-Identifier: Apache-2.0
#include "cli/pilots.hpp"

#include <fmt/format.h>

#include <string_view>

#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/precision.hpp"
#include "core/text.hpp"
#include "predict/remarks.hpp"
#include "report/prediction_json.hpp"

namespace rehearse::cli {

namespace {

predict::Pilot parse_pilot(std::string_view text) {
    const InputError wrong(fmt::format(
        "--pilot {}: write DEVICES=VALUE with samples/s or a time, like 4=1320/s or 4=97ms; or FILE.json", text));
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) throw wrong;
    predict::Pilot pilot;
    std::string_view value = text.substr(equals + 1);
    try {
        pilot.devices = parse_int(text.substr(0, equals), "--pilot");
        if (value.ends_with("/s")) {
            value.remove_suffix(2);
            pilot.samples_per_s = parse_number(value, "--pilot");
        } else {
            pilot.step = parse_quantity<Seconds>(value);
        }
    } catch (const InputError&) {
        throw wrong;
    }
    return pilot;
}

void check_same(const std::string& file, std::string_view what, const Json& document, std::string_view wanted) {
    const std::string found = document.value(what, std::string{wanted});
    if (found != wanted) {
        throw InputError(fmt::format("--pilot {}: {} {}, but {} is predicted", file, what, found, wanted));
    }
}

// Of points that fit: others were not run.
std::vector<predict::Pilot> read_pilots(const std::string& file, const predict::Job& job) {
    const InputError wrong(
        fmt::format("--pilot {}: no points of `rehearse run` or `predict` with --format json", file));
    const Json document = Json::parse(read_file(file), nullptr, false);
    if (!document.is_object() || !document.contains("points") || !document["points"].is_array()) throw wrong;
    std::vector<predict::Pilot> pilots;
    try {
        check_same(file, "model", document, job.network.name);
        check_same(file, "precision", document, to_string(job.precision));
        for (const Json& point : document["points"]) {
            const predict::Point read = report::point_of(point);
            if (!(read.figures.time.step > Seconds{})) throw wrong;
            if (!read.memory.fits) continue;
            pilots.push_back({.devices = read.figures.devices,
                              .step = read.figures.time.step,
                              .global_batch = read.figures.global_batch});
        }
    } catch (const Json::exception&) {
        throw wrong;
    }
    if (pilots.empty()) throw wrong;
    return pilots;
}

Json json_of(const predict::ComparedPilot& pilot) {
    Json json{{"devices", pilot.devices},
              {"measured_step_s", pilot.measured.value},
              {"predicted_step_s", pilot.predicted.value},
              {"low_99_s", pilot.likely.low.value},
              {"high_99_s", pilot.likely.high.value},
              {"compute_scale", pilot.computation},
              {"contradicts", pilot.contradicts()}};
    if (pilot.anchored_on) json["anchored_on"] = *pilot.anchored_on;
    return json;
}

}  // namespace

void add_pilots(CommandLine& app, std::vector<std::string>& pilots) {
    app.add_option("--pilot", pilots,
                   "a step that was measured, as devices and samples/s or time (4=1320/s, 4=97ms), or JSON of run or "
                   "predict: computation is scaled to meet it; with several on"
                   " more and more nodes messages are fitted, too; repeatable")
        ->option_text("N=RATE/s|N=TIME|FILE.json");
}

std::vector<predict::Pilot> pilots_of(const std::vector<std::string>& texts, const predict::Job& job) {
    std::vector<predict::Pilot> pilots;
    for (const std::string& text : texts) {
        if (!text.ends_with(".json")) {
            pilots.push_back(parse_pilot(text));
            continue;
        }
        const std::vector<predict::Pilot> read = read_pilots(text, job);
        pilots.insert(pilots.end(), read.begin(), read.end());
    }
    return pilots;
}

void add_pilots(Report& report, const predict::Prediction& prediction, const Common& common) {
    if (prediction.pilots.empty()) return;
    Json& pilots = report.document["pilots"] = Json::array();
    for (const predict::ComparedPilot& pilot : prediction.pilots) pilots.push_back(json_of(pilot));
    for (const std::string& text : predict::pilot_warnings(prediction)) {
        report.document["warnings"].push_back(text);
        talk(common, "warning: " + text);
    }
}

}  // namespace rehearse::cli
