// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/program.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::kernels {

namespace {

// MPI counts in int. Both ends cut a long transfer at the same places, and messages between two ranks keep their order.
constexpr std::int64_t longest_message = std::int64_t{1} << 28;

void add(std::vector<AllReduceProgram::Part>& parts, std::int64_t peer, const Transfer& transfer) {
    for (std::int64_t begin = transfer.begin; begin < transfer.end; begin += longest_message) {
        parts.push_back({peer, begin, std::min(longest_message, transfer.end - begin)});
    }
}

std::int64_t elements_of(const std::vector<AllReduceProgram::Part>& parts) {
    std::int64_t sum = 0;
    for (const auto& part : parts) sum += part.count;
    return sum;
}

}  // namespace

AllReduceProgram::AllReduceProgram(const Collective& collective, std::int64_t rank)
    : elements(collective.elements()), ranks(collective.group().size) {
    require(rank >= 0 && rank < ranks, "a rank of the group");
    for (std::int64_t index = 0; index < collective.rounds(); ++index) {
        Round round;
        for (const Transfer& transfer : collective.round(index)) {
            if (transfer.from == rank) add(round.sends, transfer.to, transfer);
            if (transfer.to != rank) continue;
            add(transfer.combine == Combine::copy ? round.copies : round.sums, transfer.from, transfer);
        }
        const std::size_t count = round.sends.size() + round.copies.size() + round.sums.size();
        if (count == 0) continue;
        scratch = std::max(scratch, elements_of(round.sums));
        messages = std::max(messages, static_cast<std::int64_t>(count));
        rounds.push_back(std::move(round));
    }
}

}  // namespace rehearse::kernels
