// SPDX-License-Identifier: Apache-2.0
// Messages of MPI, cut into segments at the same places at both ends: while one is added, the next are on their way.
#pragma once

#include <vector>

#include "kernels/comm/memory.hpp"
#include "kernels/comm/mpi.hpp"

namespace rehearse::kernels {

/// From and to one place in memory. Requests are appended; each has to end.
void send_segments(MPI_Comm comm, std::int64_t to, const std::byte* from, std::size_t bytes,
                   std::vector<MPI_Request>& requests);
void receive_segments(MPI_Comm comm, std::int64_t from, std::byte* to, std::size_t bytes,
                      std::vector<MPI_Request>& requests);

/// A message whose segments arrive in scratch memory, from where they are added or copied to its pieces.
class Landing {
public:
    static std::size_t scratch_bytes(std::size_t message_bytes);
    /// Appends requests that are its own.
    Landing(MPI_Comm comm, const Cursor& message, std::byte* scratch, std::vector<MPI_Request>& requests);
    /// Puts what has arrived where it belongs; whether that was all.
    bool advance(MPI_Comm comm, const Memory& memory, std::vector<MPI_Request>& requests);

private:
    void receive(MPI_Comm comm, std::size_t segment, std::vector<MPI_Request>& requests) const;

    Cursor cursor_;
    std::byte* scratch_;
    std::size_t first_request_, bytes_, next_ = 0;
};

}  // namespace rehearse::kernels
