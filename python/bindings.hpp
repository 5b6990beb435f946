// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share. Each `bind_` adds one area to the module.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <mutex>
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

/// Of `size` items the one that Python calls `i`: -1 is the last. IndexError for none of them.
inline std::size_t place_of(py::ssize_t i, std::size_t size) {
    const auto all = static_cast<py::ssize_t>(size);
    if (i < -all || i >= all) throw py::index_error();
    return static_cast<std::size_t>(i < 0 ? i + all : i);
}

/// Throws into Python what Ctrl-C asked for. Called with or without the interpreter's lock.
void check_interrupts();

/// One simulation of this process, while other threads of Python run. The simulator's engine and its zones are of the
/// process, so that a second simulation waits here for the first, and Ctrl-C ends its waiting. BackendError for a
/// simulation that a signal handler begins inside another.
class Simulating {
public:
    Simulating();
    ~Simulating();
    Simulating(const Simulating&) = delete;
    Simulating& operator=(const Simulating&) = delete;

private:
    py::gil_scoped_release unlocked_;  // before the wait: whoever simulates needs the interpreter to look for Ctrl-C
    std::unique_lock<std::timed_mutex> turn_;
};

}  // namespace rehearse::python
