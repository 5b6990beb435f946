// SPDX-License-Identifier: Apache-2.0
// A collective under way.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/op.hpp"
#include "kernels/comm/program.hpp"

namespace rehearse::kernels {

class Communicator;

/// Called again and again while a message is awaited: it may sleep, to leave the core to others, or throw, to give up.
using Idle = std::function<void()>;

/// A rank's memory: the data, and what an all-to-all receives; of as many elements as the program says, or more.
struct Operand {
    DataType type = DataType::f32;
    std::span<std::byte> data, received{};
};
inline Operand floats(std::span<float> data, std::span<float> received = {}) {
    return {DataType::f32, std::as_writable_bytes(data), std::as_writable_bytes(received)};
}

/// Started when made. It advances only inside test() and wait(): whoever computes meanwhile calls test() from time to
/// time. One at a time on a communicator; several at a time need a communicator each.
class Operation {
public:
    /// All ranks of the communicator make it, each with its own part of one collective. Program and operand must stay
    /// until it is done. BackendError when MPI refuses, here and below.
    Operation(Communicator& communicator, const RankProgram& program, const Operand& operand);
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    /// Of one that is not done: its messages are withdrawn, and the communicator can do no other collective.
    ~Operation();

    /// Does what can be done now; whether it is done.
    bool test();
    /// Rounds of its program that are done, and slots of rings that were filled or emptied: it changes when anything
    /// has moved between ranks of this host.
    std::size_t moved() const;
    /// Until it is done. `idle` begins anew, as it was given, whenever something has moved. Without `idle` it looks
    /// without a pause, as MPI does; only where a host has more ranks than cores does it leave the core to others after
    /// some microseconds. When `idle` throws, the operation is not done.
    void wait(const Idle& idle = {});

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::kernels
