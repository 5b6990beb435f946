// SPDX-License-Identifier: Apache-2.0
// Loaded before MPI (LD_PRELOAD): makes the n-th call of MPI on one rank fail, as a lost connection does. mpi_faults.py
// says which by the environment:
//   REHEARSE_FAULT_RANK   the rank
//   REHEARSE_FAULT_AT     which of its calls, from 1; 0: none, they are only counted
//   REHEARSE_FAULT_COUNT  the file that takes the number of calls, as text
// Calls that only ask (rank, size, texts of errors) and those that free something cannot fail.
#define OMPI_SKIP_MPICXX 1  // without the C++ bindings that MPI dropped in 2012
#include <mpi.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

namespace {

std::atomic<long> calls{0};

long number(const char* variable) {
    const char* const text = std::getenv(variable);
    return text ? std::atol(text) : -1;
}

bool on_this_rank() {
    static const bool is =
        number("REHEARSE_FAULT_RANK") ==
        (std::getenv("PMI_RANK") ? number("PMI_RANK") : number("OMPI_COMM_WORLD_RANK"));  // of MPICH, of Open MPI
    return is;
}

bool fails() {
    static const long at = number("REHEARSE_FAULT_AT");
    return on_this_rank() && ++calls == at;
}

__attribute__((destructor)) void end() {
    const char* const file = std::getenv("REHEARSE_FAULT_COUNT");
    if (file && calls > 0) std::ofstream{file, std::ios::app} << calls << '\n';
}

}  // namespace

extern "C" {
#define REHEARSE_MPI(name, parameters, arguments) \
    int MPI_##name parameters { return fails() ? MPI_ERR_OTHER : PMPI_##name arguments; }

REHEARSE_MPI(Comm_dup, (MPI_Comm a, MPI_Comm* b), (a, b))
REHEARSE_MPI(Comm_split, (MPI_Comm a, int b, int c, MPI_Comm* d), (a, b, c, d))
REHEARSE_MPI(Comm_split_type, (MPI_Comm a, int b, int c, MPI_Info d, MPI_Comm* e), (a, b, c, d, e))
REHEARSE_MPI(Comm_set_errhandler, (MPI_Comm a, MPI_Errhandler b), (a, b))
REHEARSE_MPI(Barrier, (MPI_Comm a), (a))
REHEARSE_MPI(Ibarrier, (MPI_Comm a, MPI_Request* b), (a, b))
REHEARSE_MPI(Bcast, (void* a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, c, d, e))
REHEARSE_MPI(Ibcast, (void* a, int b, MPI_Datatype c, int d, MPI_Comm e, MPI_Request* f), (a, b, c, d, e, f))
REHEARSE_MPI(Allgather, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g),
             (a, b, c, d, e, f, g))
REHEARSE_MPI(Alltoall, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g),
             (a, b, c, d, e, f, g))
REHEARSE_MPI(Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f))
REHEARSE_MPI(Reduce_scatter_block, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f),
             (a, b, c, d, e, f))
REHEARSE_MPI(Send, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f), (a, b, c, d, e, f))
REHEARSE_MPI(Isend, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g),
             (a, b, c, d, e, f, g))
REHEARSE_MPI(Recv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status* g), (a, b, c, d, e, f, g))
REHEARSE_MPI(Irecv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g))
REHEARSE_MPI(Sendrecv,
             (const void* a, int b, MPI_Datatype c, int d, int e, void* f, int g, MPI_Datatype h, int i, int j,
              MPI_Comm k, MPI_Status* l),
             (a, b, c, d, e, f, g, h, i, j, k, l))
REHEARSE_MPI(Test, (MPI_Request * a, int* b, MPI_Status* c), (a, b, c))
REHEARSE_MPI(Testall, (int a, MPI_Request* b, int* c, MPI_Status* d), (a, b, c, d))
REHEARSE_MPI(Wait, (MPI_Request * a, MPI_Status* b), (a, b))
REHEARSE_MPI(Win_allocate, (MPI_Aint a, int b, MPI_Info c, MPI_Comm d, void* e, MPI_Win* f), (a, b, c, d, e, f))
REHEARSE_MPI(Win_lock_all, (int a, MPI_Win b), (a, b))
REHEARSE_MPI(Win_flush, (int a, MPI_Win b), (a, b))
REHEARSE_MPI(Fetch_and_op, (const void* a, void* b, MPI_Datatype c, int d, MPI_Aint e, MPI_Op f, MPI_Win g),
             (a, b, c, d, e, f, g))
}
