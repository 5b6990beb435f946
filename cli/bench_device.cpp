// SPDX-License-Identifier: Apache-2.0
// bench --device: every implementation of a device, checked, then timed by its own clock.
#include <fmt/format.h>

#include <algorithm>

#include "bench/check.hpp"
#include "bench/device.hpp"
#include "cli/bench.hpp"
#include "cli/bench_taken.hpp"
#include "cli/clocks.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "kernels/channels_last.hpp"
#include "kernels/device.hpp"

namespace rehearse::cli {

namespace {

using Backends = std::vector<const kernels::Backend*>;

kernels::Device& device_of(const BenchOptions& options) {
    kernels::Device* const device = kernels::usable_device(options.device);
    require(device != nullptr, "the host's cores have a bench of their own");
    return *device;
}

bench::DeviceOptions measuring(const BenchOptions& options) {
    bench::DeviceOptions made;
    made.scratch_limit = options.scratch_limit;
    made.rounds = options.rounds;
    return made;
}

bool is_channels_last(const BenchOptions& options) { return options.layout == "nhwc"; }

// Its own, not those that the host runs for it.
Backends backends_of(const BenchOptions& options, const kernels::Device& device, const Problem& problem) {
    Backends found;
    std::string refusals;
    const auto all = is_channels_last(options) ? kernels::channels_last() : device.backends();
    for (const kernels::Backend* backend : all) {
        if (!device.owns(*backend)) continue;
        if (!options.backend.empty() && backend->name() != options.backend) continue;
        if (!options.algorithm.empty() && !is_algorithm(*backend, options.algorithm)) continue;
        if (options.accumulate && backend->accumulation() != *options.accumulate) continue;
        const kernels::Support support = supports_within(*backend, problem, options.scratch_limit);
        if (support.yes) found.push_back(backend);
        if (!support.yes) refusals += fmt::format("\n  {}: {}", full_name(*backend), support.reason);
    }
    if (!found.empty()) return found;
    if (refusals.empty()) refusals = ": no backend of that name, algorithm and sums runs there";
    throw InputError(
        fmt::format("bench --device {}: no implementation runs {}{}", options.device, to_string(problem), refusals));
}

// The same implementation for buffers of the host, to be held to plain loops.
const kernels::Backend& on_host(const BenchOptions& options, const kernels::Backend& backend) {
    if (is_channels_last(options)) return kernels::checked_channels_last(backend);
    const auto all = kernels::backends();
    const auto found =
        std::ranges::find_if(all, [&](const auto* other) { return full_name(*other) == full_name(backend); });
    require(found != all.end(), "what runs on a device runs staged, too");
    return **found;
}

// Without those that fail, of which it says why: of a library's many algorithms some may.
template <typename Run>
void leave_out_failing(const BenchOptions& options, const Problem& problem, Backends& backends, const Run& run) {
    std::erase_if(backends, [&](const kernels::Backend* backend) {
        try {
            run(*backend);
            return false;
        } catch (const BackendError& error) {
            talk(options.common,
                 fmt::format("failed: {} by {}: {}", to_string(problem), full_name(*backend), error.what()));
            return true;
        }
    });
}

// Held to plain loops, all at once, or one by one where any of them fails.
std::vector<bench::Checked> checked(const BenchOptions& options, const Problem& problem, Backends& backends) {
    const auto check = [&](const Backends& some) {
        Backends staged;
        for (const kernels::Backend* backend : some) staged.push_back(&on_host(options, *backend));
        return bench::check(problem, staged, options.seed);
    };
    try {
        return check(backends);
    } catch (const BackendError&) {
        std::vector<bench::Checked> results;
        leave_out_failing(options, problem, backends,
                          [&](const kernels::Backend& backend) { results.push_back(check({&backend}).front()); });
        return results;
    }
}

// A row each of those that run it, whether they are right, and how long they take.
bool measure_rows(const BenchOptions& options, kernels::Device& device, const Problem& problem,
                  std::vector<BenchRow>& rows) {
    Backends backends = backends_of(options, device, problem);
    // Many problems, which a GPU runs faster than a core checks them: less of each than on the host.
    const Problem small = small_enough(problem, Flops{1e9});
    std::vector<bench::Checked> results;
    if (options.check) results = checked(options, small, backends);
    std::int64_t workspace = 0;
    for (const kernels::Backend* each : backends) {
        workspace = std::max(workspace, each->workspace(problem.op, problem.batch));
    }
    bench::Rotation rotation{device, problem, workspace, measuring(options)};
    const TakenByRun taken{problem, {.scratch_limit = options.scratch_limit, .device = &device}};
    bool right = true;
    std::size_t next = 0;
    leave_out_failing(options, problem, backends, [&](const kernels::Backend& backend) {
        BenchRow row;
        if (options.check) {
            const bench::Checked& result = results[next++];
            row.checked = true, row.error = result.error, row.checked_batch = small.batch;
            if (!(result.error <= result.tolerance)) {  // not a number is wrong too
                right = false;
                talk(options.common, fmt::format("wrong: {} by {} differs from the reference by {:.2g}",
                                                 to_string(small), full_name(backend), result.error));
            }
        }
        row.scratch = backend.scratch(problem, options.scratch_limit);
        row.sums = backend.accumulation(), row.taken = taken.is(backend);
        row.sample = rotation.time(backend, measuring(options));
        const kernels::Clocks clocks = device.clocks();
        row.clocks = clocks_document(clocks);
        if (!clocks.held_down_by.empty()) {
            talk(options.common,
                 fmt::format("{} by {}: {}", to_string(problem), full_name(backend), clocks_text(clocks)));
        }
        rows.push_back(std::move(row));
    });
    return right;
}

bench::Ceilings ceilings_of(kernels::Device& device, const BenchOptions& options) {
    const bench::DeviceOptions asked = measuring(options);
    const calibrate::HostFigures figures = bench::measure_figures(device, asked);
    bench::Ceilings ceilings;
    const auto add = [&](std::string type, const calibrate::Figure<FlopRate>& peak) {
        bench::Peak made;
        made.type = std::move(type), made.how = "products", made.rate = peak.median, made.spread = peak.error;
        ceilings.peaks.push_back(std::move(made));
    };
    add("f32", figures.peak);
    for (const DataType type : {DataType::f16, DataType::bf16}) {
        add(std::string{to_string(type)}, bench::measure_peak(device, type, asked));
    }
    bench::DeviceOptions tensor = asked;
    tensor.algorithm = "tensor-tf32";
    add("tf32", bench::measure_peak(device, DataType::f32, tensor));
    if (const auto peak = bench::measure_fp8_peak(device, asked)) add("fp8", *peak);
    ceilings.bandwidths = {{"memory", figures.memory_bandwidth.median}};
    talk(options.common, fmt::format("a kernel started every {}", to_string(figures.launch.median)));
    return ceilings;
}

// As Google Benchmark writes it, for `calibrate --samples`.
Json document_of(const BenchOptions& options, const std::vector<BenchRow>& rows, const bench::Ceilings& ceilings,
                 const std::string& where) {
    Json all = Json::array();
    for (const BenchRow& row : rows) {
        const bench::Sample& s = row.sample;
        const bench::RooflinePoint point = bench::roofline_point(ceilings, s);
        Json each{{"name", fmt::format("{}/{}/{}", to_string(s.problem), s.backend, s.algorithm)},
                  {"run_type", "iteration"},
                  {"iterations", s.count},
                  {"real_time", 1e6 * s.median.value},
                  {"time_unit", "us"},
                  {"flop/s", (point.flops / s.median).value},
                  {"B/s", (point.bytes / s.median).value},
                  {"peak_fraction", point.of_peak},
                  {"scratch_bytes", row.scratch.value}};
        each["clocks"] = row.clocks;
        add_kernel(row, each);
        all.push_back(std::move(each));
    }
    return {{"context", {{"host_name", where}, {"date", today()}, {"layout", options.layout}}}, {"benchmarks", all}};
}

}  // namespace

int bench_device(const BenchOptions& options, const std::vector<calibrate::Needed>& problems) {
    if (options.tune) throw InputError("bench --tune: not with --device: there every implementation is timed");
    kernels::Device& device = device_of(options);
    const BenchPlace place{0, device.description()};
    std::vector<BenchRow> rows;
    bool right = true;
    const bench::Ceilings ceilings = ceilings_of(device, options);
    for (const auto& [problem, footprint] : problems) {
        try {
            right = measure_rows(options, device, problem, rows) && right;
        } catch (const InputError& error) {  // nothing runs it there; of several, the others are measured
            if (problems.size() == 1) throw;
            talk(options.common, fmt::format("left out: {}", error.what()));
        }
        // What there is by now, should the time end.
        if (!options.out.empty())
            replace_file(options.out, document_of(options, rows, ceilings, place.name).dump(2) + '\n');
    }
    if (rows.empty())
        throw InputError(fmt::format("bench --device {}: it runs none of these problems", options.device));
    mark_best(rows);
    draw_roofline(options, rows, ceilings, place);
    draw_winners(options, rows, place);
    print(bench_report(options, rows, ceilings, place), options.common);
    return right ? good : check_failed;
}

int bench_device_roofs(const BenchOptions& options) {
    kernels::Device& device = device_of(options);
    const bench::Ceilings ceilings = ceilings_of(device, options);
    const kernels::Clocks clocks = device.clocks();
    Report report{document("bench-" + options.kind, {{"device", device.description()}, {"rounds", options.rounds}}),
                  {},
                  "after the products: " + clocks_text(clocks)};
    report.document["clocks"] = clocks_document(clocks);
    Json rows = Json::array();
    for (const bench::Peak& peak : ceilings.peaks) {
        rows.push_back({{"what", peak.type + " products"}, {"flops_per_s", peak.rate.value}, {"spread", peak.spread}});
    }
    rows.push_back({{"what", "a copy in its memory"},
                    {"bandwidth", to_string(ceilings.memory())},
                    {"bytes_per_s", ceilings.memory().value}});
    const auto link = bench::measure_host_link(device, measuring(options));
    rows.push_back({{"what", "a copy to the host"},
                    {"bandwidth", to_string(link.median)},
                    {"bytes_per_s", link.median.value},
                    {"spread", link.error}});
    report.document["rows"] = rows;
    report.tables = {{"rows",
                      "measured on " + device.description(),
                      {{"what", "what"},
                       {"flops_per_s", "rate", Show::flop_rate},
                       {"bandwidth", "bandwidth"},
                       {"spread", "spread", Show::percent}}}};
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
