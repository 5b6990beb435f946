// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "core/error.hpp"
#include "python/bindings.hpp"

namespace rehearse::python {

namespace {

std::timed_mutex& simulator() {
    static std::timed_mutex the_simulator;
    return the_simulator;
}

thread_local bool simulates = false;  // this thread has its turn

}  // namespace

Simulating::Simulating() {
    if (simulates) throw BackendError("a simulation cannot begin inside another of the same thread");
    turn_ = std::unique_lock(simulator(), std::defer_lock);
    while (!turn_.try_lock_for(std::chrono::milliseconds(50))) check_interrupts();
    simulates = true;
}

Simulating::~Simulating() { simulates = false; }

void check_interrupts() {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void bind_exceptions(py::module_& module) {
    py::register_exception<InputError>(module, "InputError", PyExc_ValueError).doc() =
        "An argument, a name or a file is wrong. The message says where, what, and what would be right.";
    py::register_exception<InfeasibleError>(module, "InfeasibleError", PyExc_RuntimeError).doc() =
        "The request is well formed but cannot be met: a search finds no plan, or the baseline does not fit into "
        "memory.";
    py::register_exception<BackendError>(module, "BackendError", PyExc_RuntimeError).doc() =
        "A library or the operating system refused.";
}

}  // namespace rehearse::python
