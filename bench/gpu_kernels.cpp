// SPDX-License-Identifier: Apache-2.0
// Times every implementation on this machine's GPU: problem strings on stdin, one a line, CSV on stdout, with shares of
// the measured matrix peak of the problem's type and of the measured copy's bandwidth. Each result is checked first.
// For scripts/gpu.sh.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "bench/check.hpp"
#include "bench/device.hpp"
#include "core/error.hpp"
#include "kernels/device.hpp"

namespace rehearse::bench {
namespace {

constexpr double most_checked = 5e9;  // operations of the plain loops that results are held to

// Of plain loops it is checked at a batch that they can do.
Problem checked(Problem problem) {
    const double work = flops(problem.op, problem.pass, 1).value;
    problem.batch = std::clamp<std::int64_t>(static_cast<std::int64_t>(most_checked / work), 1, problem.batch);
    return problem;
}

// The same implementation for buffers of the host.
const kernels::Backend* on_host(const kernels::Backend& backend) {
    const auto all = kernels::backends();
    const auto same = [&](const auto* other) { return full_name(*other) == full_name(backend); };
    const auto found = std::ranges::find_if(all, same);
    require(found != all.end(), "what runs on a device runs staged, too");
    return *found;
}

class Table {
public:
    explicit Table(kernels::Device& device) : device_(device) {
        fmt::print(
            "device,problem,backend,algorithm,error,tolerance,seconds,spread,tflops,of_peak,of_copy,scratch_bytes\n");
        const calibrate::HostFigures figures = measure_figures(device, options_);
        copy_ = figures.memory_bandwidth.median;
        peaks_[DataType::f32] = figures.peak.median;
        for (const DataType type : {DataType::f16, DataType::bf16}) {
            peaks_[type] = measure_peak(device, type, options_).median;
        }
        for (const auto& [type, peak] : peaks_) {
            fmt::print(stderr, "peak of {} products: {}\n", to_string(type), to_string(peak));
        }
        fmt::print(stderr, "a copy: {}; a kernel started every {}\n", to_string(copy_),
                   to_string(figures.launch.median));
    }
    // Whether all results are right.
    bool add(const Problem& problem) {
        bool right = true;
        for (const kernels::Backend* const backend : device_.backends()) {
            if (!device_.owns(*backend)) continue;
            if (const auto support = supports_within(*backend, problem, options_.scratch_limit); !support.yes) {
                fmt::print(stderr, "{}: {}: {}\n", to_string(problem), full_name(*backend), support.reason);
                continue;
            }
            right = time(problem, *backend) && right;
        }
        return right;
    }

private:
    bool time(const Problem& problem, const kernels::Backend& backend) {
        const kernels::Backend* const one[] = {on_host(backend)};
        const Checked result = check(checked(problem), one, 1).front();
        const calibrate::Sample sample = time_on(device_, problem, backend, options_);
        const auto& [op, pass, batch, type] = problem;
        const FlopRate rate = flops(op, pass, batch) / sample.median;
        const Bandwidth bytes = bytes_moved(op, pass, type, batch) / sample.median;
        fmt::print("\"{}\",{},{},{},{:.3g},{:.3g},{:.6g},{:.3f},{:.4g},{:.3f},{:.3f},{:.0f}\n", device_.description(),
                   to_string(problem), backend.name(), backend.algorithm(), result.error, result.tolerance,
                   sample.median.value, sample.error, rate.value / 1e12, rate / peaks_.at(type), bytes / copy_,
                   backend.scratch(problem, options_.scratch_limit).value);
        return result.error <= result.tolerance;
    }

    kernels::Device& device_;
    DeviceOptions options_{};
    Bandwidth copy_;
    std::map<DataType, FlopRate> peaks_;
};

int run() {
    kernels::Device& device = *kernels::device("cuda");
    if (!device.refusal().empty()) throw BackendError(device.refusal());
    Table table{device};
    bool right = true;
    for (std::string line; std::getline(std::cin, line);) {
        if (!line.empty()) right = table.add(parse_problem(line)) && right;
    }
    if (!right) fmt::print(stderr, "some results are wrong\n");
    return right ? 0 : 1;
}

}  // namespace
}  // namespace rehearse::bench

int main() {
    try {
        return rehearse::bench::run();
    } catch (const rehearse::InputError& error) {
        fmt::print(stderr, "gpu_kernels: {}\n", error.what());
        return 2;
    } catch (const rehearse::BackendError& error) {
        fmt::print(stderr, "gpu_kernels: {}\n", error.what());
        return 3;
    }
}
