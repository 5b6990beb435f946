// SPDX-License-Identifier: Apache-2.0
// The best plans of a job.
#include "search/search.hpp"

#include "core/error.hpp"
#include "python/bindings.hpp"
#include "python/jobs.hpp"

namespace rehearse::python {

namespace {

search::Result searched(const Network& network, const Machine& machine, const JobWords& words,
                        const std::vector<std::int64_t>& devices, int top) {
    search::Request request{.devices = devices, .job = job_of(words, 1), .simulated = top};
    request.framework = models::load_framework(words.framework);
    const search::Listener listener{.say = {},
                                    .screening = [](std::int64_t, std::int64_t) { return check_interrupts(), true; },
                                    .simulating = [](std::int64_t, std::int64_t) { return check_interrupts(), true; }};
    const Simulating turn;
    search::Result result = search::search(network, machine, request, {}, listener);
    if (result.ranked.empty()) throw InfeasibleError(search::why_none(result));
    return result;
}

}  // namespace

void bind_searches(py::module_& module) {
    using search::Ranked;
    py::class_<Ranked>(module, "RankedPlan", "A plan that a search has simulated.")
        .def_readonly("plan", &Ranked::plan)
        .def_readonly("devices", &Ranked::devices)
        .def_readonly("nodes", &Ranked::nodes)
        .def_property_readonly("step_s", [](const Ranked& each) { return each.result.step.value; })
        .def_property_readonly("step_low_s", [](const Ranked& each) { return each.result.low.value; })
        .def_property_readonly("step_high_s", [](const Ranked& each) { return each.result.high.value; })
        .def_property_readonly("memory_peak_bytes", [](const Ranked& each) { return each.result.memory.value; })
        .def_property_readonly("estimated_step_s", [](const Ranked& each) { return each.estimate.step_s; });
    py::class_<search::Result>(module, "Search", "The plans of a search, the best first, and how it went.")
        .def_property_readonly("plans", [](const search::Result& result) { return result.ranked; })
        .def_property_readonly("screened", [](const search::Result& result) { return result.counts.screened; })
        .def_property_readonly("simulated", [](const search::Result& result) { return result.counts.simulated; })
        .def_property_readonly("too_large", [](const search::Result& result) { return result.counts.too_large; })
        .def_readonly("refusals", &search::Result::refusals)
        .def("__len__", [](const search::Result& result) { return result.ranked.size(); });
    module.def("search", &searched, py::arg("network"), py::arg("machine"), py::arg("words"), py::arg("devices"),
               py::arg("top"));
}

}  // namespace rehearse::python
