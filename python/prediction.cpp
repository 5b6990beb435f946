// SPDX-License-Identifier: Apache-2.0
// predict, and what it returns.
#include "core/text.hpp"
#include "predict/explain.hpp"
#include "predict/predict.hpp"
#include "predict/remarks.hpp"
#include "python/bindings.hpp"
#include "python/jobs.hpp"

namespace rehearse::python {

namespace {

using predict::Point;

/// Large points and what must be known beside them, as one value of Python's.
struct Prediction : predict::Prediction {
    predict::Remarks remarks{};
};

std::string basis_of(const Point& point) {
    if (point.measured) return "measured";
    return point.anchor ? "anchored" : "cold";
}

/// "1320/s", "97ms", or seconds.
predict::Pilot pilot_of(std::int64_t devices, const std::variant<double, std::string>& value) {
    predict::Pilot pilot{.devices = devices};
    if (const auto* seconds = std::get_if<double>(&value)) {
        pilot.step = Seconds{*seconds};
        return pilot;
    }
    std::string_view text = std::get<std::string>(value);
    if (text.ends_with("/s")) {
        text.remove_suffix(2);
        pilot.samples_per_s = parse_number(text, "pilot");
    } else {
        pilot.step = parse_quantity<Seconds>(text);
    }
    return pilot;
}

using Pilots = std::map<std::int64_t, std::variant<double, std::string>>;

Prediction predicted(const Network& network, const Machine& machine, const JobWords& words,
                     const std::vector<std::int64_t>& devices, const Pilots& pilots,
                     std::optional<std::int64_t> baseline, bool bands) {
    predict::Job job = job_of(network, machine, words);
    job.devices = devices;
    job.baseline = baseline;
    job.bands = bands;
    for (const auto& [number, value] : pilots) job.pilots.push_back(pilot_of(number, value));
    const Simulating turn;
    Prediction prediction{predict::predict(job, [](std::size_t, std::int64_t) { check_interrupts(); })};
    const bool foreign = words.framework != models::default_framework;
    prediction.remarks = predict::remarks_of(job.network, job.machine, prediction, foreign);
    return prediction;
}

void bind_points(py::module_& module) {
    py::class_<Point>(module, "Point", "The job on one number of devices. Times in seconds, of one training step.")
        .def_property_readonly("devices", [](const Point& p) { return p.figures.devices; })
        .def_readonly("nodes", &Point::nodes)
        .def_property_readonly("global_batch", [](const Point& p) { return p.figures.global_batch; })
        .def_property_readonly("step_s", [](const Point& p) { return p.figures.time.step.value; })
        .def_property_readonly(
            "step_low_s", [](const Point& p) { return p.band.low.value; },
            "The step should be measured between step_low_s and step_high_s nine times in ten.")
        .def_property_readonly("step_high_s", [](const Point& p) { return p.band.high.value; })
        .def_property_readonly("samples_per_s", [](const Point& p) { return p.figures.samples_per_s(); })
        .def_property_readonly("flops_per_s", [](const Point& p) { return p.figures.flops_per_s().value; })
        .def_property_readonly("compute_s", [](const Point& p) { return p.figures.time.compute.value; })
        .def_property_readonly("exposed_comm_s", [](const Point& p) { return p.figures.time.exposed_comm.value; })
        .def_property_readonly("bubble_s", [](const Point& p) { return p.figures.time.bubble.value; })
        .def_property_readonly("io_wait_s", [](const Point& p) { return p.figures.time.io_wait.value; })
        .def_property_readonly("rest_s", [](const Point& p) { return p.figures.time.rest.value; })
        .def_property_readonly("memory_peak_bytes", [](const Point& p) { return p.figures.memory.value; })
        .def_property_readonly("memory_capacity_bytes", [](const Point& p) { return p.memory.capacity.value; })
        .def_property_readonly("fits", [](const Point& p) { return p.memory.fits; })
        .def_readonly("guessed_share", &Point::guessed, "Of the bytes that it moves, those of unknown operators.")
        .def_property_readonly("mode", [](const Point& p) { return std::string{to_string(p.mode)}; })
        .def_property_readonly("basis", &basis_of, "'measured' by a pilot, 'anchored' on one, or 'cold'.")
        .def_property_readonly(
            "measured_step_s",
            [](const Point& p) { return p.measured ? std::optional{p.measured->value} : std::nullopt; })
        .def("__copy__", [](const Point& p) { return p; })
        .def("__deepcopy__", [](const Point& p, const py::dict&) { return p; })
        .def_readonly("speedup", &Point::speedup)
        .def_readonly("efficiency", &Point::efficiency, "Throughput a device, relative to the baseline's.");
}

}  // namespace

void bind_predictions(py::module_& module) {
    bind_points(module);
    py::class_<Prediction>(module, "Prediction", "What was predicted for a job: a Point for each number of devices.")
        .def_readonly("points", &Prediction::points)
        .def_property_readonly(
            "notes", [](const Prediction& p) { return p.remarks.notes; },
            "What is to be known beside the figures: how the network was imported, layers that the plan leaves whole.")
        .def_property_readonly(
            "warnings", [](const Prediction& p) { return p.remarks.warnings; },
            "Why the figures may be wrong; predict() has warned of each.")
        .def_readonly("timeline", &Prediction::timeline, "Of the largest point.")
        .def_property_readonly(
            "schedule", [](const Prediction& p) -> const Schedule& { return p.setup.schedule; },
            py::return_value_policy::reference_internal, "Of the largest point.")
        .def_property_readonly(
            "explained",
            [](const Prediction& prediction) {
                py::list rows;
                for (const predict::Explained& each : predict::explained(prediction)) {
                    py::dict row;
                    row["what"] = each.what;
                    row["steps"] = each.steps;
                    row["total_s"] = each.total.value;
                    row["share"] = each.share;
                    row["error"] = each.error;
                    row["source"] = each.source;
                    rows.append(row);
                }
                return rows;
            },
            "What takes the largest point's step, at which price, with which relative error, from which source.")
        .def_property_readonly(
            "pilots",
            [](const Prediction& prediction) {
                py::list rows;
                for (const predict::ComparedPilot& each : prediction.pilots) {
                    py::dict row;
                    row["devices"] = each.devices;
                    row["measured_step_s"] = each.measured.value;
                    row["predicted_step_s"] = each.predicted.value;
                    row["compute_scale"] = each.computation;
                    row["contradicts"] = each.contradicts();
                    rows.append(row);
                }
                return rows;
            },
            "Each pilot beside the prediction that knows nothing of it.")
        .def("__len__", [](const Prediction& p) { return p.points.size(); })
        .def(
            "_point",
            [](const Prediction& p, py::ssize_t i) -> const Point& { return p.points[place_of(i, p.points.size())]; },
            py::return_value_policy::reference_internal)
        .def("__copy__", [](const Prediction& p) { return p; })
        .def("__deepcopy__", [](const Prediction& p, const py::dict&) { return p; });

    module.def("predict", &predicted, py::arg("network"), py::arg("machine"), py::arg("words"), py::arg("devices"),
               py::arg("pilots"), py::arg("baseline"), py::arg("bands"));
}

}  // namespace rehearse::python
