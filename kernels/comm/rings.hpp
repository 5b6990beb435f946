// SPDX-License-Identifier: Apache-2.0
// A queue of bytes from each rank of a host to each other one, in memory that they share: one copy in, and out of the
// queue straight to where the bytes belong, or added there. Ours is half the copies of an MPI message, and none of its
// matching: both ends know from their programs what comes next.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/comm/mpi.hpp"

namespace rehearse::kernels {

/// Slots that one rank fills and another one empties, in order.
class Ring {
public:
    /// Of a slot: large enough that taking turns costs little, small enough that all slots stay in an L2 cache.
    static constexpr std::size_t slot_bytes = 64 << 10;

    struct Shared {  // lies in shared memory, slots behind it
        alignas(64) std::atomic<std::uint64_t> filled;
        alignas(64) std::atomic<std::uint64_t> emptied;
    };

    Ring() = default;
    Ring(std::byte* memory, std::uint64_t slots)
        : shared_(reinterpret_cast<Shared*>(memory)), slots_(memory + sizeof(Shared)), count_(slots) {}
    static constexpr std::size_t bytes(std::uint64_t slots) { return sizeof(Shared) + slots * slot_bytes; }

    /// For the sender: the next slot, or nullptr while all are full. Then fill() it.
    std::byte* free_slot() const {
        return next_ - shared_->emptied.load(std::memory_order_acquire) < count_ ? slot(next_) : nullptr;
    }
    void fill() { shared_->filled.store(++next_, std::memory_order_release); }

    /// For the receiver: the next slot, or nullptr while none is full. Then empty() it.
    const std::byte* full_slot() const {
        return next_ < shared_->filled.load(std::memory_order_acquire) ? slot(next_) : nullptr;
    }
    void empty() { shared_->emptied.store(++next_, std::memory_order_release); }

private:
    std::byte* slot(std::uint64_t index) const { return slots_ + index % count_ * slot_bytes; }

    Shared* shared_ = nullptr;
    std::byte* slots_ = nullptr;
    std::uint64_t count_ = 0;
    std::uint64_t next_ = 0;  // of this end
};

/// The rings of one rank of a communicator.
class Rings {
public:
    /// Collective. Between ranks of a host that give the same `part`. Without rings where the host has no shared memory
    /// to spare, or so many ranks that they would take too much of it.
    Rings(MPI_Comm comm, std::int64_t part);
    Rings(const Rings&) = delete;
    Rings& operator=(const Rings&) = delete;
    ~Rings();  // by itself: the other ranks may still use theirs

    /// More ranks on this host than cores.
    bool crowded() const { return crowded_; }

    /// nullptr: that rank is on another host.
    Ring* to(std::int64_t rank) { return ring(to_, rank); }
    Ring* from(std::int64_t rank) { return ring(from_, rank); }

private:
    static Ring* ring(std::vector<std::unique_ptr<Ring>>& rings, std::int64_t rank) {
        return rings.empty() ? nullptr : rings[static_cast<std::size_t>(rank)].get();
    }
    void share(MPI_Comm host, std::size_t bytes);
    void make_rings(const std::vector<int>& ranks, int local_rank, std::uint64_t slots);

    std::byte* memory_ = nullptr;
    std::size_t bytes_ = 0;
    bool crowded_ = false;
    std::vector<std::unique_ptr<Ring>> to_, from_;  // by rank of the communicator
};

}  // namespace rehearse::kernels
