// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_device.hpp"

#include <fmt/format.h>

#include <map>

#include "bench/device.hpp"
#include "calibrate/quick.hpp"
#include "cli/clocks.hpp"
#include "cli/command.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"

namespace rehearse::cli {

namespace {

std::vector<calibrate::Needed> problems_of(const DeviceCalibration& asked, const Machine& machine) {
    std::vector<Schedule> schedules;
    for (const std::string& name : asked.models) {
        const Network network = load_network(name, asked.fuse);
        for (const std::int64_t batch : asked.batches) {
            if (batch < 1) throw InputError(fmt::format("--batch {}: at least 1", batch));
            for (const Precision precision : {Precision::fp32, Precision::mixed}) {
                schedules.push_back(
                    schedule::make_schedule(network, machine, schedule::parse_plan("data"),
                                            {.devices = 1, .batch_per_device = batch, .precision = precision}));
            }
        }
    }
    return calibrate::problems(schedules);
}

Report report_of(const calibrate::Samples& samples, const std::map<DataType, calibrate::Figure<FlopRate>>& peaks,
                 const DeviceCalibration& asked) {
    Report report{
        document("calibration", {{"models", asked.models}, {"batches", asked.batches}, {"device", samples.host}}),
        {},
        ""};
    report.document["file"] = asked.machine_out;
    Json rows = Json::array();
    for (const calibrate::Sample& s : samples.compute) {
        const auto& [op, pass, batch, type] = s.problem;
        const double flop_rate = flops(op, pass, batch).value / s.median.value;
        const double byte_rate = bytes_moved(op, pass, type, batch).value / s.median.value;
        rows.push_back({{"problem", to_string(s.problem)},
                        {"backend", s.backend + (s.algorithm.empty() ? "" : " " + s.algorithm)},
                        {"median_s", s.median.value},
                        {"error", s.error},
                        {"samples", s.count},
                        {"flops_per_s", flop_rate},
                        {"bytes_per_s", byte_rate},
                        {"peak_fraction", flop_rate / peaks.at(type).median.value},
                        {"bandwidth_fraction", byte_rate / samples.figures.memory_bandwidth.median.value}});
    }
    report.document["samples"] = rows;
    report.tables = {{"samples",
                      "measured on " + samples.host,
                      {{"problem", "problem"},
                       {"backend", "backend"},
                       {"median_s", "median", Show::seconds},
                       {"error", "spread", Show::percent},
                       {"flops_per_s", "rate", Show::flop_rate},
                       {"peak_fraction", "of peak", Show::percent},
                       {"bandwidth_fraction", "of copy", Show::percent}}}};
    for (const auto& [type, peak] : peaks) {
        report.footer += fmt::format("{} products: {}\n", to_string(type), to_string(peak.median));
    }
    report.footer += fmt::format("a copy: {}, a kernel started every {}\nkept in {}",
                                 to_string(samples.figures.memory_bandwidth.median),
                                 to_string(samples.figures.launch.median), asked.machine_out);
    return report;
}

}  // namespace

int calibrate_device(const DeviceCalibration& asked, const Common& common) {
    if (asked.machine_out.empty()) {
        throw InputError(
            fmt::format("calibrate --device {}: say where its machine goes: --machine-out FILE.toml", asked.device));
    }
    kernels::Device* const device = kernels::usable_device(asked.device);
    require(device != nullptr, "the host's cores are calibrated by calibrate itself");
    Machine machine = calibrate::machine_of_one(std::string{device->name()}, device->description(),
                                                Bytes{static_cast<double>(device->available())});
    const std::vector<calibrate::Needed> problems = problems_of(asked, machine);
    talk(common, fmt::format("measuring {} problems on {}", problems.size(), device->description()));
    const bench::DeviceOptions options{.scratch_limit = asked.scratch_limit};
    calibrate::Samples samples;
    samples.host = device->description();
    samples.date = today();
    samples.figures = bench::measure_figures(*device, options);
    std::map<DataType, calibrate::Figure<FlopRate>> peaks{{DataType::f32, samples.figures.peak}};
    for (const DataType type : {DataType::f16, DataType::bf16})
        peaks[type] = bench::measure_peak(*device, type, options);
    for (const auto& [type, peak] : peaks) {
        const std::string source = fmt::format("measured, {}, {}, {} samples", samples.host, samples.date, peak.count);
        machine.classes.front().peak[type] = {peak.median, source};
    }
    const auto save = [&] { replace_file(asked.machine_out, models::to_toml(calibrate::apply(machine, samples))); };
    save();
    for (const calibrate::Needed& needed : problems) {
        samples.compute.push_back(bench::measure(*device, {needed}, options).front());
        save();  // what there is by now, should the time end
    }
    Report report = report_of(samples, peaks, asked);
    const kernels::Clocks clocks = device->clocks();
    report.document["clocks"] = clocks_document(clocks);
    report.footer += "\nafter the last: " + clocks_text(clocks);
    print(report, common);
    return good;
}

}  // namespace rehearse::cli
