// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/rings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

namespace rehearse::kernels {

namespace {

// /dev/shm has 64 MiB in many containers.
constexpr std::size_t most_bytes = std::size_t{24} << 20;
// Half an L2 cache. Where ranks share cores, a rank fills a ring while the other does not run: larger ones save
// switches between them (4 ranks on 2 busy cores, 16 MiB: 10 to 14 ms instead of 13 to 27).
constexpr std::uint64_t most_slots = 8, most_slots_when_crowded = 32, fewest_slots = 2;

// Of each ring, when a host has so many ranks; 0: too many.
std::uint64_t slots_for(std::size_t local_ranks, bool crowded) {
    const std::uint64_t fit = most_bytes / (local_ranks * local_ranks) / Ring::slot_bytes;
    return fit < fewest_slots ? 0 : std::min(fit, crowded ? most_slots_when_crowded : most_slots);
}

// Whether all ranks say so.
bool agreed(bool mine, MPI_Comm comm) {
    int all = mine ? 1 : 0;
    check(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    return all != 0;
}

int rank_in(MPI_Comm comm) {
    int rank = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    return rank;
}

int size_of(MPI_Comm comm) {
    int size = 0;
    check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    return size;
}

MPI_Comm host_of(MPI_Comm comm, std::int64_t part) {
    MPI_Comm whole = MPI_COMM_NULL, host = MPI_COMM_NULL;
    const int rank = rank_in(comm);
    check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &whole), "MPI_Comm_split_type");
    check(MPI_Comm_split(whole, static_cast<int>(part), rank, &host), "MPI_Comm_split");
    check(MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Comm_free(&whole);
    return host;
}

using Name = std::array<char, 64>;

// Reserved, not only promised: a write beyond what /dev/shm has would be a bus error. -1 where there is too little.
int create(Name& name, std::size_t bytes) {
    static int made = 0;
    fmt::format_to_n(name.data(), name.size() - 1, "/rehearse-{}-{}", getpid(), made++);
    const int file = shm_open(name.data(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
    if (file < 0) return -1;
    if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0) return file;
    close(file);
    shm_unlink(name.data());
    return -1;
}

std::byte* mapped(int file, std::size_t bytes) {
    if (file < 0) return nullptr;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

Rings::Rings(MPI_Comm comm, std::int64_t part) {
    MPI_Comm host = host_of(comm, part);
    const int rank = rank_in(comm), local_rank = rank_in(host), local_ranks = size_of(host);
    crowded_ = local_ranks > sysconf(_SC_NPROCESSORS_ONLN);
    std::vector<int> ranks(static_cast<std::size_t>(local_ranks));
    check(MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, host), "MPI_Allgather");
    const std::uint64_t slots = slots_for(ranks.size(), crowded_);
    if (slots > 0 && local_ranks > 1) share(host, ranks.size() * ranks.size() * Ring::bytes(slots));
    if (memory_ != nullptr) {
        to_.resize(static_cast<std::size_t>(size_of(comm)));
        from_.resize(to_.size());
        make_rings(ranks, local_rank, slots);
    }
    check(MPI_Barrier(host), "MPI_Barrier");
    MPI_Comm_free(&host);
}

Rings::~Rings() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
}

// The first rank makes the memory, the others find it by its name, which is then taken away.
void Rings::share(MPI_Comm host, std::size_t bytes) {
    Name name{};
    const bool first = rank_in(host) == 0;
    const int file = first ? create(name, bytes) : -1;
    check(MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, host), "MPI_Bcast");
    memory_ = mapped(first ? file : shm_open(name.data(), O_RDWR, 0), bytes);
    bytes_ = bytes;
    const bool all = agreed(memory_ != nullptr, host);
    if (first && file >= 0) shm_unlink(name.data());
    if (all || memory_ == nullptr) return;
    munmap(memory_, bytes_);
    memory_ = nullptr;
}

// Row by row: what a rank receives from each.
void Rings::make_rings(const std::vector<int>& ranks, int local_rank, std::uint64_t slots) {
    const auto own = static_cast<std::size_t>(local_rank);
    const auto ring = [&](std::size_t receiver, std::size_t sender) {
        return memory_ + (receiver * ranks.size() + sender) * Ring::bytes(slots);
    };
    for (std::size_t other = 0; other < ranks.size(); ++other) {
        if (other == own) continue;
        const auto peer = static_cast<std::size_t>(ranks[other]);
        new (ring(own, other)) Ring::Shared{};
        from_[peer] = std::make_unique<Ring>(ring(own, other), slots);
        to_[peer] = std::make_unique<Ring>(ring(other, own), slots);
    }
}

}  // namespace rehearse::kernels
