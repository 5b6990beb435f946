// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/program.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::kernels {

namespace {

using Message = RankProgram::Message;
using Piece = RankProgram::Piece;

// Neighbours in memory become one piece; data and slots (from `slots` on) lie in two buffers.
void append(std::vector<Message>& messages, std::int64_t peer, Piece piece, bool add, std::int64_t slots) {
    if (messages.empty() || messages.back().peer != peer) messages.push_back({peer, 0, {}, add});
    Message& message = messages.back();
    require(message.add == add, "a message is added or copied");
    message.count += piece.count;
    const bool neighbours = !message.pieces.empty() && piece.begin != slots &&
                            message.pieces.back().begin + message.pieces.back().count == piece.begin;
    if (neighbours) {
        message.pieces.back().count += piece.count;
    } else {
        message.pieces.push_back(piece);
    }
}

std::vector<Piece> sorted_pieces(const std::vector<Message>& messages) {
    std::vector<Piece> pieces;
    for (const Message& message : messages) pieces.insert(pieces.end(), message.pieces.begin(), message.pieces.end());
    std::ranges::sort(pieces, {}, &Piece::begin);
    return pieces;
}

// Several sends may read the same piece, but no two receives write one.
bool overlap(const RankProgram::Round& round) {
    const std::vector<Piece> written = sorted_pieces(round.receives);
    return std::ranges::any_of(sorted_pieces(round.sends), [&](const Piece& read) {
        const auto after = std::ranges::lower_bound(written, read.begin + read.count, {}, &Piece::begin);
        return after != written.begin() && std::prev(after)->begin + std::prev(after)->count > read.begin;
    });
}

}  // namespace

RankProgram::RankProgram(const Collective& collective, std::int64_t rank)
    : ranks(collective.group().size),
      elements(collective.elements()),
      slots(collective.extent() - collective.elements()) {
    require(rank >= 0 && rank < ranks, "a rank of the group");
    for (std::int64_t index = 0; index < collective.rounds(); ++index) {
        Round round;
        for (const Transfer& t : collective.round(index)) {
            const std::int64_t count = t.end - t.begin;
            if (t.from == rank && t.to == rank) {
                round.moves.push_back({t.begin, t.begin + t.shift, count, t.combine});
            } else if (t.from == rank) {
                append(round.sends, t.to, {t.begin, count}, false, elements);
            } else if (t.to == rank) {
                append(round.receives, t.from, {t.begin + t.shift, count}, t.combine == Combine::reduce, elements);
            }
        }
        if (round.moves.empty() && round.sends.empty() && round.receives.empty()) continue;
        round.overlaps = overlap(round);
        rounds.push_back(std::move(round));
    }
}

RankProgram RankProgram::message(std::int64_t peer, bool sends, std::int64_t count) {
    RankProgram program;
    program.ranks = 2;
    program.elements = count;
    if (count == 0) return program;
    Round& round = program.rounds.emplace_back();
    (sends ? round.sends : round.receives).push_back({peer, count, {{0, count}}, false});
    return program;
}

}  // namespace rehearse::kernels
