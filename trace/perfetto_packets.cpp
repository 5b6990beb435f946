// SPDX-License-Identifier: Apache-2.0
#include "trace/perfetto_packets.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rehearse::trace {

Packets::Packets(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (file_ < 0 || fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
        if (file_ >= 0) close(file_);
        throw Irregular{};
    }
    size_ = static_cast<std::size_t>(status.st_size);
}

Packets::~Packets() { close(file_); }

std::optional<std::string_view> next_packet(std::string_view& in) {
    std::string_view left = in;
    if (left.empty()) return std::nullopt;
    if (left.front() != 0x0A) throw Irregular{};
    left.remove_prefix(1);
    std::uint64_t length = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (left.empty()) return std::nullopt;
        if (shift > 63) throw Irregular{};
        const auto byte = static_cast<std::uint8_t>(left.front());
        left.remove_prefix(1);
        length |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
        if (byte < 0x80) break;
    }
    if (left.size() < length) return std::nullopt;
    const std::string_view packet = left.substr(0, length);
    in = left.substr(length);
    return packet;
}

bool Packets::next_block(Block& block) {
    const std::size_t usual = std::min(std::size_t{1} << 20U, size_ + 64);
    if (block.room.size() < usual) block.room.resize(usual);
    while (rest_.size() >= block.room.size()) block.room.resize(2 * block.room.size());
    std::memcpy(block.room.data(), rest_.data(), rest_.size());
    std::size_t end = rest_.size();
    for (bool at_end = false; !at_end;) {
        at_end = !fill(block.room, end);
        std::string_view left(block.room.data(), end);
        while (next_packet(left)) {
        }
        block.used = end - left.size();
        if (at_end && !left.empty()) throw Irregular{};  // cut off
        if (block.used > 0 || at_end) {
            rest_.assign(left);
            return block.used > 0;
        }
        if (end > size_) throw Irregular{};
        block.room.resize(2 * block.room.size());  // for one packet that has no room
    }
    return false;
}

// To its end; false where the file ends.
bool Packets::fill(std::vector<char>& room, std::size_t& end) {
    while (end < room.size()) {
        const ssize_t more = ::read(file_, room.data() + end, room.size() - end);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) throw Irregular{};
        if (more == 0) return false;
        end += static_cast<std::size_t>(more);
        read_ += static_cast<std::size_t>(more);
    }
    return true;
}

}  // namespace rehearse::trace
