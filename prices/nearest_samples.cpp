// SPDX-License-Identifier: Apache-2.0
#include "prices/nearest_samples.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "prices/price_model.hpp"

namespace rehearse {

namespace {

struct Place {
    double work = 0, moved = 0;
};

Place place_of(const Problem& p) {
    const double work = flops(p.op, p.pass, p.batch).value, moved = bytes_moved(p.op, p.pass, p.type, p.batch).value;
    return {std::log2(std::max(work, 1.0)), std::log2(std::max(moved, 1.0))};
}

}  // namespace

std::vector<NearSample> nearest_samples(const Problem& wanted, const DeviceClass& device, std::size_t most) {
    std::vector<NearSample> all;
    const Place here = place_of(wanted);
    const auto add = [&](const Problem& problem, Seconds time, Basis basis, std::string source) {
        if (kind_of(problem.op) != kind_of(wanted.op) || problem.pass != wanted.pass || problem.type != wanted.type)
            return;
        const Place there = place_of(problem);
        all.push_back(
            {std::hypot(there.work - here.work, there.moved - here.moved), problem, time, basis, std::move(source)});
    };
    for (const auto& [name, sample] : device.measured)
        add(parse_problem(name), sample.median, sample.basis, sample.source);
    if (device.model != nullptr) {
        for (const MeasuredKernels& kernels : device.model->kernels()) {
            if (kernels.sheet.host) continue;  // those are the device's own, above
            const Basis basis = kernels.transferred ? Basis::modelled : Basis::measured_on_class;
            for (const KernelSample& sample : kernels.samples) add(sample.problem, sample.time, basis, kernels.source);
        }
    }
    std::ranges::stable_sort(all, {}, &NearSample::distance);
    if (all.size() > most) all.resize(most);
    return all;
}

}  // namespace rehearse
