// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "python/bindings.hpp"

namespace rehearse::python {

void check_interrupts() {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void bind_exceptions(py::module_& module) {
    py::register_exception<InputError>(module, "InputError", PyExc_ValueError).doc() =
        "An argument, a name or a file is wrong. The message says where, what, and what would be right.";
    py::register_exception<InfeasibleError>(module, "InfeasibleError", PyExc_RuntimeError).doc() =
        "The job is well formed but cannot be: it does not fit into memory, or no plan can make it.";
    py::register_exception<BackendError>(module, "BackendError", PyExc_RuntimeError).doc() =
        "A library or the operating system refused.";
}

}  // namespace rehearse::python
