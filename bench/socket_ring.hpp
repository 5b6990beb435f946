// SPDX-License-Identifier: Apache-2.0
// A ring all-reduce over TCP as gloo has it, PyTorch's library of collectives on processors: two threads a rank, pieces
// that are added while the next one travels, a token from the receiver before each piece.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rehearse::bench {

/// Sockets to the next rank and from the one before. Sums over all ranks, which call the same in the same order.
class SocketRing {
public:
    /// The texts of all ranks, in their order (Communicator::all_gather).
    using Exchange = std::function<std::vector<std::string>(const std::string& mine)>;
    /// Collective. Listens where this host's name leads, as PyTorch does, else on the loopback. BackendError when a
    /// connection cannot be made within ten seconds.
    SocketRing(std::int64_t rank, std::int64_t ranks, const Exchange& exchange);
    ~SocketRing();
    SocketRing(const SocketRing&) = delete;
    SocketRing& operator=(const SocketRing&) = delete;

    /// Collective. BackendError when a connection breaks.
    void all_reduce(std::span<float> data);
    /// Of a core, that the thread which waits for the sockets has had so far, in seconds.
    double helper_seconds() const;

private:
    class Wire;
    void phase(std::span<float> data, bool reduces);
    std::int64_t rank_, ranks_;
    std::unique_ptr<Wire> wire_;
    std::vector<float> arrived_;  // two pieces
};

}  // namespace rehearse::bench
