// SPDX-License-Identifier: Apache-2.0
// What a collective's time says of one message: as a ring's rounds, which move the fewest bytes (Patarasuk and Yuan
// 2009), and the two words that benchmarks print for its rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "calibrate/samples.hpp"

namespace rehearse::calibrate {

/// `rounds` messages, one after the other, each of 1 / `pieces` of the whole.
struct RingRounds {
    double rounds = 1, pieces = 1;
    MessageSample message(Bytes whole, Seconds time) const { return {whole * (1 / pieces), time * (1 / rounds)}; }
    /// busbw / algbw of nccl-tests (doc/PERFORMANCE.md, github NVIDIA/nccl-tests).
    double bus_factor() const { return rounds / pieces; }
};

/// What CollectiveRow calls one message from a rank to another.
inline constexpr std::string_view message_kind = "message";

/// Of a collective whose size is that of the whole: what an all-reduce sums, an all-gather or gather ends with, a
/// reduce-scatter or scatter begins with, what one rank of an all-to-all sends to all. Nothing: its name is not known,
/// or there are no two ranks.
std::optional<RingRounds> ring_rounds(std::string_view kind, std::int64_t ranks);

/// The definitions of algbw and busbw, for who reads them beside figures.
inline constexpr std::string_view bandwidth_words =
    "algbw: bytes of the whole / time; busbw: algbw times what each rank must send of the whole at least, in one "
    "direction (all-reduce 2 (n-1)/n, all-gather, reduce-scatter and all-to-all (n-1)/n, broadcast, reduce and "
    "point to point 1), nccl-tests' definition";

}  // namespace rehearse::calibrate
