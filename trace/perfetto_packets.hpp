// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format read by hand: https://protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::trace {

/// Not as we write it: left to the reader that can say what is wrong.
struct Irregular {};

struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0;  // of varint and fixed
    std::string_view bytes;   // of a length
};

inline std::uint64_t varint(std::string_view& in) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
        const auto byte = static_cast<std::uint8_t>(in.front());
        in.remove_prefix(1);
        value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
        if (byte < 0x80) return value;
    }
    throw Irregular{};
}

inline Field next(std::string_view& in) {
    const std::uint64_t tag = varint(in);
    Field field{static_cast<std::uint32_t>(tag >> 3U), 0, {}};
    const unsigned kind = tag & 7U;
    const auto take = [&](std::size_t length) {
        if (length > in.size()) throw Irregular{};
        const std::string_view bytes = in.substr(0, length);
        in.remove_prefix(length);
        return bytes;
    };
    if (kind == 0) {
        field.value = varint(in);
    } else if (kind == 1) {
        std::memcpy(&field.value, take(8).data(), 8);
    } else if (kind == 2) {
        field.bytes = take(varint(in));
    } else if (kind == 5) {
        take(4);
    } else {
        throw Irregular{};
    }
    return field;
}

/// The next whole packet of those that begin `in`, which then begins behind it; nothing where `in` ends before it does.
/// Irregular: no packet.
std::optional<std::string_view> next_packet(std::string_view& in);

/// Whole packets, one behind the other.
struct Block {
    std::vector<char> room;  // may be larger than what is used of it
    std::size_t used = 0;
    std::string_view bytes() const { return {room.data(), used}; }
};

/// A trace in blocks. Not mapped into memory: a file that another program cuts meanwhile would end this one.
/// Irregular: cut off, not readable, no packets.
class Packets {
public:
    explicit Packets(const std::string& path);
    ~Packets();
    Packets(const Packets&) = delete;
    Packets& operator=(const Packets&) = delete;

    /// About a megabyte of packets; false at the end of the file.
    bool next_block(Block& block);
    double share_done() const { return size_ == 0 ? 1 : static_cast<double>(read_) / static_cast<double>(size_); }

private:
    bool fill(std::vector<char>& room, std::size_t& end);

    int file_;
    std::string rest_;  // of a packet that the block before ends in
    std::size_t size_ = 0, read_ = 0;
};

}  // namespace rehearse::trace
