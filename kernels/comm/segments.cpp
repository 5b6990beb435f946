// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/segments.hpp"

#include <algorithm>

namespace rehearse::kernels {

namespace {

constexpr int tag = 0;
// With its header below the 64 KiB up to which Open MPI sends over TCP at once. Longer messages ask first whether they
// may, and behind what is already on its way in both directions that question takes as long as the data: an
// all-reduce of two hosts got 0.065 GB/s of a link of 1 Gbit/s with segments of 128 KiB, and 0.119 GB/s with these.
constexpr std::size_t segment_bytes = 60 << 10;
// What has arrived should still lie in an L2 cache of 1 MiB when it is added.
constexpr std::size_t segments_ahead = 8;

std::size_t segments_of(std::size_t bytes) { return (bytes + segment_bytes - 1) / segment_bytes; }
int size_of_segment(std::size_t bytes, std::size_t segment) {
    return static_cast<int>(std::min(segment_bytes, bytes - segment * segment_bytes));
}

}  // namespace

void send_segments(MPI_Comm comm, std::int64_t to, const std::byte* from, std::size_t bytes,
                   std::vector<MPI_Request>& requests) {
    for (std::size_t s = 0; s < segments_of(bytes); ++s) {
        check(MPI_Isend(from + s * segment_bytes, size_of_segment(bytes, s), MPI_BYTE, static_cast<int>(to), tag, comm,
                        &requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend");
    }
}

void receive_segments(MPI_Comm comm, std::int64_t from, std::byte* to, std::size_t bytes,
                      std::vector<MPI_Request>& requests) {
    for (std::size_t s = 0; s < segments_of(bytes); ++s) {
        check(MPI_Irecv(to + s * segment_bytes, size_of_segment(bytes, s), MPI_BYTE, static_cast<int>(from), tag, comm,
                        &requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Irecv");
    }
}

std::size_t Landing::scratch_bytes(std::size_t message_bytes) {
    return std::min(message_bytes, segments_ahead * segment_bytes);
}

Landing::Landing(MPI_Comm comm, const Cursor& message, std::byte* scratch, std::vector<MPI_Request>& requests)
    : cursor_(message), scratch_(scratch), first_request_(requests.size()), bytes_(message.left) {
    const std::size_t ahead = std::min(segments_ahead, segments_of(bytes_));
    requests.resize(requests.size() + ahead, MPI_REQUEST_NULL);
    for (std::size_t s = 0; s < ahead; ++s) receive(comm, s, requests);
}

bool Landing::advance(MPI_Comm comm, const Memory& memory, std::vector<MPI_Request>& requests) {
    for (; cursor_.left > 0; ++next_) {
        int arrived = 0;
        const std::size_t turn = next_ % segments_ahead;
        check(MPI_Test(&requests[first_request_ + turn], &arrived, MPI_STATUS_IGNORE), "MPI_Test");
        if (arrived == 0) return false;
        memory.put(cursor_, scratch_ + turn * segment_bytes, static_cast<std::size_t>(size_of_segment(bytes_, next_)));
        if (next_ + segments_ahead < segments_of(bytes_)) receive(comm, next_ + segments_ahead, requests);
    }
    return true;
}

void Landing::receive(MPI_Comm comm, std::size_t segment, std::vector<MPI_Request>& requests) const {
    const std::size_t turn = segment % segments_ahead;
    check(MPI_Irecv(scratch_ + turn * segment_bytes, size_of_segment(bytes_, segment), MPI_BYTE,
                    static_cast<int>(cursor_.message->peer), tag, comm, &requests[first_request_ + turn]),
          "MPI_Irecv");
}

}  // namespace rehearse::kernels
