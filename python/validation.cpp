// SPDX-License-Identifier: Apache-2.0
// Published runs beside the predictions of the same runs.
#include "core/file.hpp"
#include "python/bindings.hpp"
#include "validate/replay_rows.hpp"
#include "validate/row_errors.hpp"

namespace rehearse::python {

namespace {

using validate::Answer;
using validate::ReplayedRow;
using validate::RowErrors;

struct Validation {
    std::vector<ReplayedRow> rows;
};

Validation validated(const std::string& filter, const std::string& file) {
    const auto wanted = validate::rows_matching(filter, "filter");
    const Simulating turn;
    return {validate::replay_rows(
        file.empty() ? validate::shipped_published() : validate::read_published(read_file(file), file),
        validate::shipped_replay_rules(), wanted, [](std::int64_t, std::int64_t) { return check_interrupts(), true; })};
}

void add(py::dict& row, const std::string& name, const std::optional<Answer>& answer, double published) {
    const auto set = [&](const char* what, double value) {
        row[py::str(name + what)] = answer ? py::object{py::float_(value)} : py::object{py::none()};
    };
    set("", answer ? answer->predicted : 0);
    set("_low", answer ? answer->low : 0);
    set("_high", answer ? answer->high : 0);
    set("_error", answer ? error_of(*answer, published) : 0);
}

py::dict row_of(const ReplayedRow& replayed) {
    py::dict row;
    for (const char* column : {"id", "system", "machine", "model", "precision", "metric", "unit"}) {
        row[column] = replayed.row.text(column);
    }
    row["devices"] = replayed.row.devices;
    row["published"] = replayed.row.value;
    add(row, "cold", replayed.cold, replayed.row.value);
    add(row, "anchored", replayed.anchored, replayed.row.value);
    row["anchor"] = replayed.anchor;
    row["skipped"] = replayed.skipped;
    row["from_memory"] = replayed.from_memory;
    row["source"] = replayed.row.text("provenance");
    return row;
}

py::dict summary_of(const Validation& validation, std::optional<Answer> ReplayedRow::*kind) {
    RowErrors errors;
    for (const ReplayedRow& row : validation.rows) {
        const std::optional<Answer>& answer = row.*kind;
        if (answer && !row.from_memory) errors.add(answer->predicted, row.row.value, {answer->low, answer->high});
    }
    py::dict summary;
    summary["rows"] = 0;
    if (errors.empty()) return summary;
    const validate::ErrorSummary of = errors.summary();
    summary["rows"] = of.rows;
    summary["mean_error"] = of.mean;
    summary["median_error"] = of.median;
    summary["p90_error"] = of.p90;
    summary["in_band"] = of.in_band;
    return summary;
}

}  // namespace

void bind_validation(py::module_& module) {
    py::class_<Validation>(module, "Validation",
                           "Published figures beside the predictions of the same runs, a row each.")
        .def(
            "to_dicts",
            [](const Validation& validation) {
                py::list list;
                for (const ReplayedRow& row : validation.rows) list.append(row_of(row));
                return list;
            },
            "A dict a row: the published figure; cold and anchored, the predictions in the same `unit`, each with the "
            "ends of its band and its relative error, None where there is none; why it was skipped.")
        .def_property_readonly(
            "summary",
            [](const Validation& validation) {
                py::dict summary;
                summary["cold"] = summary_of(validation, &ReplayedRow::cold);
                summary["anchored"] = summary_of(validation, &ReplayedRow::anchored);
                return summary;
            },
            "Of the cold and the anchored predictions: rows, mean, median and 90th percentile of the relative errors, "
            "and the share of rows in their band. Figures from memory are left out.")
        .def("__len__", [](const Validation& validation) { return validation.rows.size(); });
    module.def("validate", &validated, py::arg("filter"), py::arg("file"));
}

}  // namespace rehearse::python
