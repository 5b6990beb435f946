// SPDX-License-Identifier: Apache-2.0
// MPI and its errors, for kernels/comm and run only.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // Open MPI: without the C++ bindings that MPI dropped in 2012
#endif
#include <mpi.h>

namespace rehearse::kernels {

/// BackendError with MPI's own words unless `status` is MPI_SUCCESS. Needs communicators that return their errors.
void check(int status, const char* call);

}  // namespace rehearse::kernels
