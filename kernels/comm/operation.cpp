// SPDX-License-Identifier: Apache-2.0
// Ranks of one host talk through Rings where the communicator is connected, others by messages of MPI.
#include "kernels/comm/operation.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "kernels/comm/communicator_impl.hpp"
#include "kernels/comm/memory.hpp"
#include "kernels/comm/segments.hpp"

namespace rehearse::kernels {

namespace {

using Message = RankProgram::Message;

// Looks before the core is left to others where ranks share cores: about 10 us. Where they do not, it is kept: on a
// busy machine it takes some milliseconds to get it back, and meanwhile the others wait too (docs/performance.md).
constexpr int patience = 200;

}  // namespace

struct Operation::Impl {
    struct RingSend {
        Cursor cursor;
        Ring* ring = nullptr;
        const std::byte* packed = nullptr;  // what is left of it, where it was put aside
    };
    struct RingReceive {
        Cursor cursor;
        Ring* ring = nullptr;
    };
    Impl(Communicator::Impl& on, const RankProgram& what, const Operand& where)
        : comm(on), program(what), memory(what, where) {
        require(program.ranks == comm.size, "a program for as many ranks as there are");
        require(!comm.busy && !comm.broken, "one collective at a time on a communicator");
        comm.busy = comm.broken = true;
    }

    Ring* ring_to(std::int64_t peer) const { return comm.rings ? comm.rings->to(peer) : nullptr; }
    Ring* ring_from(std::int64_t peer) const { return comm.rings ? comm.rings->from(peer) : nullptr; }
    bool put_aside(const RankProgram::Round& round, const Message& message) const {
        return round.overlaps || (message.pieces.size() > 1 && ring_to(message.peer) == nullptr);
    }
    bool lands(const Message& message) const {
        return ring_from(message.peer) == nullptr && (message.add || message.pieces.size() > 1);
    }
    void reserve(const RankProgram::Round& round) const {
        std::size_t bytes = 0;
        for (const Message& m : round.sends) {
            if (put_aside(round, m)) bytes += memory.bytes(m.count);
        }
        for (const Message& m : round.receives) {
            if (lands(m)) bytes += Landing::scratch_bytes(memory.bytes(m.count));
        }
        if (comm.scratch.size() < bytes) comm.scratch.resize(bytes);
    }

    // Receives first, so that what arrives finds its place.
    void begin(const RankProgram::Round& round) {
        for (const RankProgram::Move& move : round.moves) memory.move(move);
        reserve(round);
        begin_sends(round, begin_receives(round));
    }

    // The scratch memory that is left.
    std::byte* begin_receives(const RankProgram::Round& round) {
        std::byte* free = comm.scratch.data();
        for (const Message& m : round.receives) {
            if (!lands(m)) continue;
            landings.emplace_back(comm.comm, memory.begin_of(m), free, comm.requests);
            free += Landing::scratch_bytes(memory.bytes(m.count));
        }
        first_plain = comm.requests.size();
        for (const Message& m : round.receives) {
            if (lands(m)) continue;
            if (Ring* ring = ring_from(m.peer)) {
                ring_receives.push_back({memory.begin_of(m), ring});
            } else {
                receive_segments(comm.comm, m.peer, memory.at(m.pieces.front().begin), memory.bytes(m.count),
                                 comm.requests);
            }
        }
        return free;
    }

    void begin_sends(const RankProgram::Round& round, std::byte* free) {
        for (const Message& m : round.sends) {
            const std::byte* packed = nullptr;
            if (put_aside(round, m)) {
                Cursor cursor = memory.begin_of(m);
                memory.get(cursor, free, cursor.left);
                packed = free;
                free += memory.bytes(m.count);
            }
            if (Ring* ring = ring_to(m.peer)) {
                ring_sends.push_back({memory.begin_of(m), ring, packed});
            } else {
                send_segments(comm.comm, m.peer, packed != nullptr ? packed : memory.at(m.pieces.front().begin),
                              memory.bytes(m.count), comm.requests);
            }
        }
    }

    bool advance(RingSend& send) {
        while (send.cursor.left > 0) {
            std::byte* slot = send.ring->free_slot();
            if (slot == nullptr) return false;
            const std::size_t bytes = std::min(send.cursor.left, Ring::slot_bytes);
            if (send.packed != nullptr) {
                std::memcpy(slot, send.packed, bytes);
                send.packed += bytes;
                send.cursor.left -= bytes;
            } else {
                memory.get(send.cursor, slot, bytes);
            }
            send.ring->fill();
            ++slots;
        }
        return true;
    }

    bool advance(RingReceive& receive) {
        while (receive.cursor.left > 0) {
            const std::byte* slot = receive.ring->full_slot();
            if (slot == nullptr) return false;
            memory.put(receive.cursor, slot, std::min(receive.cursor.left, Ring::slot_bytes));
            receive.ring->empty();
            ++slots;
        }
        return true;
    }

    bool advance() {
        bool done = true;
        for (RingSend& send : ring_sends) done = advance(send) && done;
        for (RingReceive& receive : ring_receives) done = advance(receive) && done;
        for (Landing& landing : landings) done = landing.advance(comm.comm, memory, comm.requests) && done;
        if (first_plain == comm.requests.size()) return done;
        int arrived = 0;
        check(MPI_Testall(static_cast<int>(comm.requests.size() - first_plain), comm.requests.data() + first_plain,
                          &arrived, MPI_STATUSES_IGNORE),
              "MPI_Testall");
        return done && arrived != 0;
    }

    void end_round() {
        ++index;
        begun = false;
        ring_sends.clear();
        ring_receives.clear();
        landings.clear();
        comm.requests.clear();
    }

    Communicator::Impl& comm;
    const RankProgram& program;
    Memory memory;
    std::size_t index = 0;  // of the round
    std::size_t slots = 0;  // of rings, filled and emptied
    bool begun = false;
    std::vector<RingSend> ring_sends;
    std::vector<RingReceive> ring_receives;
    std::vector<Landing> landings;
    std::size_t first_plain = 0;  // of the requests that only have to end
};

Operation::Operation(Communicator& communicator, const RankProgram& program, const Operand& operand)
    : impl_(std::make_unique<Impl>(communicator.impl(), program, operand)) {
    test();
}

Operation::~Operation() {
    impl_->comm.busy = false;
    for (MPI_Request& request : impl_->comm.requests) {
        if (request == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&request);
        MPI_Request_free(&request);
    }
    impl_->comm.requests.clear();
}

bool Operation::test() {
    const auto& rounds = impl_->program.rounds;
    while (impl_->index < rounds.size()) {
        if (!impl_->begun) impl_->begin(rounds[impl_->index]);
        impl_->begun = true;
        if (!impl_->advance()) return false;
        impl_->end_round();
    }
    impl_->comm.broken = false;
    return true;
}

std::size_t Operation::moved() const { return impl_->index + impl_->slots; }

void Operation::wait(const Idle& idle) {
    const auto& rings = impl_->comm.rings;
    const bool crowded = rings && rings->crowded();
    Idle pause = idle;
    for (std::int64_t looks = 0, last = 0; !test(); ++looks) {
        if (idle) {
            // A long message goes through its ring in many parts: what is waited for is the next of them.
            const auto now = static_cast<std::int64_t>(moved());
            if (std::exchange(last, now) != now) pause = idle;
            pause();
        } else if (crowded && looks > patience) {
            sched_yield();
        }
    }
}

}  // namespace rehearse::kernels
