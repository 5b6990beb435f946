// SPDX-License-Identifier: Apache-2.0
// Jobs and schedules: what is trained, how, on what.
#include "predict/job.hpp"
#include "core/error.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "core/text.hpp"
#include "models/frameworks.hpp"
#include "models/models.hpp"
#include "python/bindings.hpp"
#include "python/jobs.hpp"
#include "schedule/draw.hpp"

namespace rehearse::python {

Optimizer parse_optimizer(const std::string& word) {
    for (const Optimizer each : {Optimizer::sgd, Optimizer::adam, Optimizer::lamb}) {
        if (to_string(each) == word) return each;
    }
    throw InputError("optimizer '" + word + "': choose one of sgd, adam, lamb");
}

schedule::Job job_of(const JobWords& words, std::int64_t devices) {
    return {devices, words.batch, words.global_batch, parse_precision(words.precision),
            parse_optimizer(words.optimizer)};
}

predict::Job job_of(const Network& network, const Machine& machine, const JobWords& words) {
    predict::Job job{.network = network,
                     .machine = machine,
                     .plan = schedule::parse_plan(words.plan),
                     .batch = words.batch,
                     .global_batch = words.global_batch,
                     .precision = parse_precision(words.precision),
                     .optimizer = parse_optimizer(words.optimizer)};
    predict::follow(job, models::load_framework(words.framework));
    return job;
}

void bind_jobs(py::module_& module) {
    py::class_<JobWords>(module, "JobWords", "How a job is run, in the words of the command line.")
        .def(py::init<>())
        .def_readwrite("plan", &JobWords::plan)
        .def_readwrite("batch", &JobWords::batch)
        .def_readwrite("global_batch", &JobWords::global_batch)
        .def_readwrite("precision", &JobWords::precision)
        .def_readwrite("optimizer", &JobWords::optimizer)
        .def_readwrite("framework", &JobWords::framework);

    py::class_<Schedule>(module, "Schedule", "What happens on which rank, in which order; no time, no cost.")
        .def_readonly("plan", &Schedule::plan)
        .def_property_readonly("ranks", [](const Schedule& schedule) { return all_ranks(schedule); })
        .def_property_readonly("memory_peak_bytes", [](const Schedule& schedule) { return schedule.memory_peak.value; })
        .def_property_readonly(
            "classes",
            [](const Schedule& schedule) {
                py::dict classes;
                for (const RankClass& each : schedule.classes) {
                    py::list steps;
                    for (const Step& step : each.steps) steps.append(step.name);
                    classes[py::str(each.name)] = steps;
                }
                return classes;
            },
            "The names of the steps of each class of ranks, which all run one program.")
        .def(
            "draw", [](const Schedule& schedule) { return schedule::draw(schedule); },
            "A line a stream; '<' names the steps of other streams that a step waits for.")
        .def("__copy__", [](const Schedule& schedule) { return schedule; })
        .def("__deepcopy__", [](const Schedule& schedule, const py::dict&) { return schedule; })
        .def("__repr__", [](const Schedule& schedule) {
            return "<rehearse.Schedule " + schedule.plan + " of " + schedule.network.name + ">";
        });

    module.def(
        "schedule",
        [](const Network& network, const Machine& machine, const JobWords& words, std::int64_t devices) {
            const py::gil_scoped_release unlocked;
            return schedule::make_schedule(network, machine, schedule::parse_plan(words.plan), job_of(words, devices));
        },
        py::arg("network"), py::arg("machine"), py::arg("words"), py::arg("devices"));
}

}  // namespace rehearse::python
