// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_kernels.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "calibrate/beyond_peak.hpp"
#include "calibrate/kernel_factors.hpp"
#include "calibrate/read_samples.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/csv.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

namespace {

std::vector<KernelSample> read_table(std::string_view text, const std::string& path) {
    const models::Csv table{text, path};
    static_cast<void>(table.column("problem"));
    static_cast<void>(table.column("time_us"));
    std::vector<KernelSample> kernels;
    for (std::size_t row = 0; row < table.size(); ++row) {
        const Seconds time{table.positive(row, "time_us") * 1e-6};
        try {
            kernels.push_back({parse_problem(table.text(row, "problem")), time});
        } catch (const InputError& error) {
            table.fail(row, error.what());
        }
    }
    return kernels;
}

// Problems of a Google Benchmark file; what else stands in it is told.
std::vector<KernelSample> read_benchmarks(std::string_view text, const std::string& path, const Common& common) {
    const calibrate::FileSamples samples = calibrate::read_samples(text, path);
    for (const std::string& why : samples.skipped) talk(common, fmt::format("{}: skipped {}", path, why));
    std::vector<KernelSample> kernels;
    for (const calibrate::Sample& sample : samples.compute) kernels.push_back({sample.problem, sample.median});
    return kernels;
}

std::vector<KernelSample> read_kernels(const std::string& path, const Common& common) {
    const std::string text = read_file(path);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string::npos && text[first] == '{';
    return json ? read_benchmarks(text, path, common) : read_table(text, path);
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

std::string names_of(const std::vector<std::string>& files) {
    std::string names;
    for (const std::string& file : files)
        names += (names.empty() ? "" : ", ") + std::filesystem::path{file}.filename().string();
    return names;
}

Report report_of(const KernelCalibration& asked, const calibrate::Factors& factors, const std::string& warning) {
    Report report{document("calibration", {{"machine", asked.machine}, {"files", asked.files}}), {}, ""};
    Json rows = Json::array();
    for (const calibrate::FactorFit& fit : factors.fits) {
        rows.push_back({{"kind", fit.factor.kind},
                        {"type", to_string(fit.factor.type)},
                        {"kernels", fit.factor.kernels},
                        {"factor", rounded(fit.factor.factor)},
                        {"factor_error", fit.factor.error},
                        {"scale", rounded(fit.factor.scale)},
                        {"error_before", fit.error_before},
                        {"error_after", fit.error_after}});
    }
    report.document["factors"] = rows;
    report.document["file"] = asked.machine_out;
    report.document["warnings"] = warning.empty() ? Json::array() : Json::array({warning});
    report.tables = {{"factors",
                      "measured over priced; the median of |priced - measured| / measured before and after",
                      {{"kind", "kind"},
                       {"type", "type"},
                       {"kernels", "kernels", Show::count},
                       {"factor", "factor"},
                       {"factor_error", "known to", Show::percent},
                       {"scale", "bands times"},
                       {"error_before", "before", Show::percent},
                       {"error_after", "after", Show::percent}}}};
    for (const std::string& kind : factors.too_few)
        report.footer += fmt::format("{}: fewer than {} kernels, no factor\n", kind, calibrate::fewest_kernels);
    report.footer += fmt::format("kept in {}", asked.machine_out);
    return report;
}

}  // namespace

int calibrate_kernels(const KernelCalibration& asked, const Common& common) {
    if (asked.machine.empty() || asked.machine_out.empty())
        throw InputError(
            "--kernels: give --machine NAME|FILE.toml, whose prices they correct, and --machine-out FILE.toml");
    check_writable(asked.machine_out, common);
    Machine machine = models::load_machine(asked.machine);
    if (machine.classes.size() != 1)
        throw InputError(
            fmt::format("--kernels: machine '{}' has {} device classes, and kernels do not say of which "
                        "they are; give a machine with one",
                        machine.name, machine.classes.size()));
    std::vector<KernelSample> kernels;
    for (const std::string& path : asked.files) {
        const std::vector<KernelSample> some = read_kernels(path, common);
        kernels.insert(kernels.end(), some.begin(), some.end());
    }
    DeviceClass& device = machine.classes.front();
    const calibrate::Factors factors = calibrate::fit_factors(kernels, device, names_of(asked.files));
    const std::string warning = calibrate::beyond_peak(kernels, device);
    if (!warning.empty()) talk(common, "warning: " + warning);
    device = calibrate::with_factors(device, factors.fits);
    replace_file(asked.machine_out, models::to_toml(machine, models::other_tables(asked.machine)));
    print(report_of(asked, factors, warning), common);
    return good;
}

}  // namespace rehearse::cli
