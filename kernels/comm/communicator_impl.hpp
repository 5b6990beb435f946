// SPDX-License-Identifier: Apache-2.0
// What a communicator and its operations share.
#pragma once

#include <memory>
#include <vector>

#include "kernels/comm/communicator.hpp"
#include "kernels/comm/mpi.hpp"
#include "kernels/comm/rings.hpp"

namespace rehearse::kernels {

struct Communicator::Impl {
    explicit Impl(MPI_Comm taken);
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    MPI_Comm comm;
    std::int64_t rank = 0, size = 1;
    bool busy = false;                  // with an operation
    bool broken = false;                // an operation was left half done
    std::vector<MPI_Request> requests;  // of an operation's round
    std::vector<std::byte> scratch;     // of an operation's round
    std::unique_ptr<Rings> rings;       // once connected
};

}  // namespace rehearse::kernels
