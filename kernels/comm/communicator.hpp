// SPDX-License-Identifier: Apache-2.0
// Ranks that talk to each other, without a type of MPI's. MPI must have been started (run::Session).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/comm/operation.hpp"

namespace rehearse::kernels {

/// Each object has its own message space, so that nothing here meets a message of another one. All ranks of it make the
/// same collective calls in the same order, from one thread at a time. Everything throws BackendError when MPI refuses.
class Communicator {
public:
    static Communicator world();
    static Communicator self();  // this rank alone
    Communicator(Communicator&&) noexcept;
    Communicator& operator=(Communicator&&) noexcept;
    ~Communicator();

    std::int64_t rank() const;
    std::int64_t size() const;

    /// Collective: the ranks that gave the same color, ordered by key.
    Communicator split(std::int64_t color, std::int64_t key) const;
    /// Collective: the ranks that share this one's memory.
    Communicator node() const;

    /// Collective. Without `idle` the wait is MPI's own, which keeps its core busy; likewise below.
    void barrier(const Idle& idle = {}) const;

    /// The n-th send to a rank meets its n-th receive, which must be of the same size.
    void send(std::span<const std::byte> bytes, std::int64_t to) const;
    void receive(std::span<std::byte> bytes, std::int64_t from) const;
    /// Whether a message of that rank waits to be received.
    bool has_sent(std::int64_t from) const;
    /// Collective over these ranks alone, which are ascending: others may have died.
    Communicator among(std::span<const std::int64_t> ranks) const;

    void broadcast(std::span<std::byte> bytes, std::int64_t root, const Idle& idle = {}) const;
    /// The values of all ranks, which give equally many, one rank after the other.
    std::vector<double> all_gather(std::span<const double> values) const;
    /// The texts of all ranks, each as long as it is.
    std::vector<std::string> all_gather(const std::string& text) const;
    /// At rank 0: what each rank gave, each as long as it was. Empty elsewhere.
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) const;

    /// Collective: from now on ranks of one host exchange what collectives send through memory that they share, not by
    /// messages of MPI, which copies twice as often. Takes 24 MiB a host at most; without effect where /dev/shm has
    /// less to spare. `part`, in tests, divides a host: only ranks with the same number share.
    void connect(const std::function<std::int64_t(std::int64_t rank)>& part = {});

    /// A collective, from its start to its end. After an all-reduce every rank has the same bits where the algorithm
    /// computes each sum once or symmetrically (all of core's do). Touches nothing but what the program names.
    void run(const RankProgram& program, const Operand& operand, const Idle& idle = {});
    void all_reduce(const RankProgram& program, std::span<float> data, const Idle& idle = {}) {
        run(program, floats(data), idle);
    }

    struct Impl;
    Impl& impl() { return *impl_; }  // for kernels/comm alone

private:
    explicit Communicator(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::kernels
