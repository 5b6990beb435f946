// SPDX-License-Identifier: Apache-2.0
#include "python/bindings.hpp"

PYBIND11_MODULE(_rehearse, module) {
    module.doc() = "Bindings of Rehearse; use the package `rehearse`.";
    module.attr("__version__") = REHEARSE_VERSION;
    rehearse::python::bind_exceptions(module);
    rehearse::python::bind_networks(module);
    rehearse::python::bind_timelines(module);
    rehearse::python::bind_jobs(module);
    rehearse::python::bind_predictions(module);
    rehearse::python::bind_searches(module);
    rehearse::python::bind_validation(module);
}
