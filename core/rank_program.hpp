// SPDX-License-Identifier: Apache-2.0
// What each rank of a job does, as other simulators read it: times of computations, messages and collectives with their
// bytes, and what waits for what. No layers, no plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/collectives/collective.hpp"
#include "core/index.hpp"
#include "core/units.hpp"

namespace rehearse {

struct ProgramNode {
    enum class Kind : std::uint8_t { compute, load, collective, send, receive } kind = Kind::compute;
    std::string name;
    Seconds time{};  // of a computation or a load
    Flops flops{};
    Bytes bytes{};  // moved by a computation; read; of a message; of a collective: what each rank gives to it
    CollectiveKind collective = CollectiveKind::all_reduce;
    std::int64_t group = 0;    // of a collective: index into RankPrograms::groups
    std::int64_t root = 0;     // of a broadcast: the place in its group of the rank that has what the others get
    RankIndex peer{0};         // of a message
    std::int64_t tag = 0;      // ... the n-th send to a rank with a tag meets its n-th receive with it
    std::vector<int> after{};  // indices of earlier nodes of the same rank
    bool operator==(const ProgramNode&) const = default;
};

struct RankPrograms {
    std::vector<std::vector<ProgramNode>> ranks;
    std::vector<std::vector<RankIndex>> groups;  // the first one is of all ranks
    bool operator==(const RankPrograms&) const = default;
};

}  // namespace rehearse
