// SPDX-License-Identifier: Apache-2.0
#include "trace/perfetto_packets.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace rehearse::trace {

Packets::Packets(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), buffer_(1U << 20U) {
    struct stat status {};
    if (file_ < 0 || fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
        if (file_ >= 0) close(file_);
        throw Irregular{};
    }
    size_ = static_cast<std::size_t>(status.st_size);
}

Packets::~Packets() { close(file_); }

std::optional<std::string_view> Packets::next() {
    constexpr std::size_t most_head = 11;  // tag and length
    if (end_ - at_ < most_head) fill(most_head);
    if (at_ == end_) return std::nullopt;
    std::string_view head(buffer_.data() + at_, end_ - at_);
    if (varint(head) != 0x0A) throw Irregular{};
    const std::uint64_t length = varint(head);
    at_ = end_ - head.size();
    if (length > size_) throw Irregular{};
    if (end_ - at_ < length) fill(length);
    if (end_ - at_ < length) throw Irregular{};
    const std::string_view packet(buffer_.data() + at_, length);
    at_ += length;
    return packet;
}

// At least `wanted` bytes from `at_` on, fewer only at the end of the file.
void Packets::fill(std::size_t wanted) {
    std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
    end_ -= at_;
    at_ = 0;
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    while (end_ < wanted) {
        const ssize_t more = ::read(file_, buffer_.data() + end_, buffer_.size() - end_);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) throw Irregular{};
        if (more == 0) return;
        end_ += static_cast<std::size_t>(more);
        read_ += static_cast<std::size_t>(more);
    }
}

}  // namespace rehearse::trace
