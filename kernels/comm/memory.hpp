// SPDX-License-Identifier: Apache-2.0
// A rank's memory as its program numbers it, and messages as bytes of it.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "kernels/comm/operation.hpp"
#include "kernels/comm/reduction.hpp"

namespace rehearse::kernels {

/// A place in a message, in bytes.
struct Cursor {
    const RankProgram::Message* message = nullptr;
    std::size_t left = 0;           // of the message
    std::size_t piece = 0, at = 0;  // where it goes on
};

class Memory {
public:
    Memory(const RankProgram& program, const Operand& operand)
        : operand_(operand),
          elements_(program.elements),
          slots_(program.slots),
          unit_(static_cast<std::size_t>(size_of(operand.type).value)) {
        require(operand.data.size() >= bytes(program.elements), "a buffer as long as the program's");
        require(operand.received.size() >= bytes(program.slots), "a slot for each rank");
    }

    std::size_t bytes(std::int64_t elements) const { return static_cast<std::size_t>(elements) * unit_; }
    std::byte* at(std::int64_t element) const {
        return element < elements_ ? operand_.data.data() + bytes(element)
                                   : operand_.received.data() + bytes(element - elements_);
    }
    Cursor begin_of(const RankProgram::Message& message) const { return {&message, bytes(message.count), 0, 0}; }

    /// Within the rank.
    void move(const RankProgram::Move& move) const {
        if (move.what == Combine::copy) return void(std::memmove(at(move.to), at(move.from), bytes(move.count)));
        require(operand_.type == DataType::f32, "Adasum's vectors are in f32");
        std::byte* products = operand_.received.data() + bytes(slots_ - 3);
        if (move.what == Combine::dots) {
            dots(at(move.from), at(move.to), move.count, products);
        } else {
            blend(at(move.from), at(move.to), move.count, products);
        }
    }
    /// The next `count` bytes of a message to `target`.
    void get(Cursor& cursor, std::byte* target, std::size_t count) const {
        take(cursor, count, [&](const std::byte* memory, std::size_t done, std::size_t part) {
            std::memcpy(target + done, memory, part);
        });
    }
    /// What has arrived of a message to where it belongs. Whole elements.
    void put(Cursor& cursor, const std::byte* arrived, std::size_t count) const {
        const bool sums = cursor.message->add;
        take(cursor, count, [&](std::byte* memory, std::size_t done, std::size_t part) {
            if (sums) {
                add(operand_.type, memory, arrived + done, static_cast<std::int64_t>(part / unit_));
            } else {
                std::memcpy(memory, arrived + done, part);
            }
        });
    }

private:
    template <typename Use>
    void take(Cursor& cursor, std::size_t count, const Use& use) const {
        for (std::size_t done = 0; done < count;) {
            const RankProgram::Piece& piece = cursor.message->pieces[cursor.piece];
            const std::size_t part = std::min(count - done, bytes(piece.count) - cursor.at);
            use(at(piece.begin) + cursor.at, done, part);
            done += part;
            cursor.at += part;
            if (cursor.at < bytes(piece.count)) continue;
            ++cursor.piece;
            cursor.at = 0;
        }
        cursor.left -= count;
    }

    Operand operand_;
    std::int64_t elements_, slots_;
    std::size_t unit_;
};

}  // namespace rehearse::kernels
