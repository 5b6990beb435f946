// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/rings.hpp"

#include <algorithm>
#include <new>
#include <numeric>

namespace rehearse::kernels {

namespace {

// /dev/shm has 64 MiB in many containers.
constexpr std::size_t most_bytes = std::size_t{24} << 20;
constexpr std::uint64_t most_slots = 8, fewest_slots = 2;

// Of each ring, when a host has so many ranks; 0: too many.
std::uint64_t slots_for(int local_ranks) {
    const auto rings = static_cast<std::size_t>(local_ranks) * static_cast<std::size_t>(local_ranks - 1);
    if (rings == 0) return 0;
    const std::uint64_t slots = std::min<std::uint64_t>(most_slots, most_bytes / rings / Ring::slot_bytes);
    return slots < fewest_slots ? 0 : slots;
}

// The least of what all ranks give.
std::uint64_t agreed(std::uint64_t mine, MPI_Comm comm) {
    check(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_MIN, comm), "MPI_Allreduce");
    return mine;
}

}  // namespace

Rings::Rings(MPI_Comm comm, std::int64_t part) {
    int rank = 0, size = 0, local_rank = 0, local_ranks = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    MPI_Comm whole_host = MPI_COMM_NULL;
    check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &whole_host), "MPI_Comm_split_type");
    check(MPI_Comm_split(whole_host, static_cast<int>(part), rank, &host_), "MPI_Comm_split");
    MPI_Comm_free(&whole_host);
    check(MPI_Comm_set_errhandler(host_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(host_, &local_rank), "MPI_Comm_rank");
    check(MPI_Comm_size(host_, &local_ranks), "MPI_Comm_size");
    std::vector<int> ranks(static_cast<std::size_t>(local_ranks));
    check(MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, host_), "MPI_Allgather");
    const std::uint64_t slots = slots_for(local_ranks);
    if (slots == 0 || !allocate(local_ranks, slots)) return;
    to_.resize(static_cast<std::size_t>(size));
    from_.resize(static_cast<std::size_t>(size));
    for (int other = 0; other < local_ranks; ++other) {
        if (other == local_rank) continue;
        const auto peer = static_cast<std::size_t>(ranks[static_cast<std::size_t>(other)]);
        std::byte* const in = mine_ + static_cast<std::size_t>(other) * Ring::bytes(slots);
        std::byte* const out = inbox(other) + static_cast<std::size_t>(local_rank) * Ring::bytes(slots);
        new (in) Ring::Shared{};
        from_[peer] = std::make_unique<Ring>(in, slots);
        to_[peer] = std::make_unique<Ring>(out, slots);
    }
    check(MPI_Barrier(host_), "MPI_Barrier");
}

Rings::~Rings() {
    if (window_ == MPI_WIN_NULL) return;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
    MPI_Comm_free(&host_);
}

bool Rings::allocate(int local_ranks, std::uint64_t slots) {
    const auto bytes = static_cast<MPI_Aint>(static_cast<std::size_t>(local_ranks) * Ring::bytes(slots));
    void* memory = nullptr;
    const int status = MPI_Win_allocate_shared(bytes, 64, MPI_INFO_NULL, host_, &memory, &window_);
    if (agreed(status == MPI_SUCCESS ? 1 : 0, host_) == 0) return false;
    mine_ = static_cast<std::byte*>(memory);
    check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
    return true;
}

std::byte* Rings::inbox(int local_rank) const {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* memory = nullptr;
    check(MPI_Win_shared_query(window_, local_rank, &bytes, &unit, &memory), "MPI_Win_shared_query");
    return static_cast<std::byte*>(memory);
}

}  // namespace rehearse::kernels
