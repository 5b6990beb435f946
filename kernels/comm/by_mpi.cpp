// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/by_mpi.hpp"

#include <fmt/format.h>

#include <limits>

#include "core/error.hpp"
#include "kernels/comm/communicator_impl.hpp"

namespace rehearse::kernels {

namespace {

int counted(std::int64_t count) {
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    if (count > most) {
        throw InputError(
            fmt::format("MPI's own collectives count elements to {}, not to {}: ask for smaller ones", most, count));
    }
    return static_cast<int>(count);
}

}  // namespace

std::string_view refusal_of_mpi(CollectiveKind kind, DataType type) {
    const bool sums = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
    return sums && type != DataType::f32 ? "MPI has no sum of 16-bit floats" : "";
}

void run_by_mpi(Communicator& communicator, const Collective& collective, const Operand& operand) {
    require(refusal_of_mpi(collective.kind(), operand.type).empty(), "a sum that MPI has");
    MPI_Comm comm = communicator.impl().comm;
    MPI_Datatype type = operand.type == DataType::f32 ? MPI_FLOAT : MPI_UINT16_T;
    void* const data = operand.data.data();
    const int all = counted(collective.elements());
    const int part = counted(collective.elements() / communicator.size());
    switch (collective.kind()) {
        case CollectiveKind::all_reduce:
            return check(MPI_Allreduce(MPI_IN_PLACE, data, all, type, MPI_SUM, comm), "MPI_Allreduce");
        case CollectiveKind::reduce_scatter:
            return check(MPI_Reduce_scatter_block(MPI_IN_PLACE, data, part, type, MPI_SUM, comm),
                         "MPI_Reduce_scatter_block");
        case CollectiveKind::all_gather:
            return check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, part, type, comm), "MPI_Allgather");
        case CollectiveKind::broadcast:
            return check(MPI_Bcast(data, all, type, static_cast<int>(collective.root()), comm), "MPI_Bcast");
        case CollectiveKind::all_to_all:
            return check(MPI_Alltoall(data, part, type, operand.received.data(), part, type, comm), "MPI_Alltoall");
        case CollectiveKind::halo:
            require(false, "MPI has no halo exchange of its own");
    }
}

void shift_by_mpi(Communicator& communicator, std::span<const std::byte> send, std::span<std::byte> receive) {
    const std::int64_t n = communicator.size(), rank = communicator.rank();
    check(MPI_Sendrecv(send.data(), counted(static_cast<std::int64_t>(send.size())), MPI_BYTE,
                       static_cast<int>((rank + 1) % n), 1, receive.data(),
                       counted(static_cast<std::int64_t>(receive.size())), MPI_BYTE,
                       static_cast<int>((rank + n - 1) % n), 1, communicator.impl().comm, MPI_STATUS_IGNORE),
          "MPI_Sendrecv");
}

}  // namespace rehearse::kernels
