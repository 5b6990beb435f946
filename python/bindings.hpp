// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share. Each `bind_` adds one area to the module.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "core/units.hpp"

namespace rehearse::python {

namespace py = pybind11;

void bind_exceptions(py::module_& module);
void bind_networks(py::module_& module);
void bind_jobs(py::module_& module);
void bind_predictions(py::module_& module);
void bind_searches(py::module_& module);
void bind_timelines(py::module_& module);
void bind_validation(py::module_& module);

/// Throws into Python what Ctrl-C asked for. Called with or without the interpreter's lock.
void check_interrupts();

}  // namespace rehearse::python
