// SPDX-License-Identifier: Apache-2.0
// Pipeline stages: consecutive layers on each rank along an axis, and what they hand to each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Where each stage ends (one past its last layer; the last is layers.size()), so that the costliest stage costs least:
/// exact, by dynamic programming. Each stage gets at least one layer of a cost above 0 where there are enough.
/// InputError when there are fewer such layers than stages.
std::vector<int> balance(std::span<const double> costs, int stages);
/// The same for stages on unlike devices: costs[s] are those of each layer on stage s.
std::vector<int> balance(std::span<const std::vector<double>> costs);

/// By piece: what each layer costs there; by its end, what the piece hands on, and what comes back as gradients.
struct PieceCosts {
    std::vector<std::vector<double>> layers, handed, returned;
};
/// What each layer takes of the memory of each stage, and what a stage has.
struct Room {
    std::vector<std::vector<double>> needed;  // by stage and layer
    std::vector<double> available;            // by stage
};
/// What counts of a stage: what it computes and `added` times what it hands on and gets back; `beside` that, the longer
/// of its ways if it is longer than all this. The costliest stage may cost `more` than it need (a share of that), where
/// stages then hand on less in all.
struct Goal {
    double added = 0;
    bool beside = false;
    double more = 0;
};
/// The best of those cuts that leave every stage room for its layers; nothing where there is none.
std::optional<std::vector<int>> balance(const PieceCosts& costs, const Room& room, const Goal& goal = {});
/// As much room as can be wished for.
Room endless_room(std::size_t pieces, std::size_t layers);

/// Layers [begin, end) of a stage's network.
struct Chunk {
    int begin = 0, end = 0;
};

/// Of a table of words (the first of a layer's weights): another stage that has it, too.
struct Tie {
    StageIndex stage{0};
    std::int64_t elements = 0;
};

struct Stage {
    Part part;
    std::vector<Chunk> chunks;
    std::map<int, Tie> ties{};  // by layer
};

/// An axis whose ranks share what stages hand on; one part: none does.
struct Scatter {
    std::string axis;
    std::int64_t parts = 1;
};

/// Cuts a part after `ends` (stages * chunks of them): piece c * stages + s is chunk c of stage s. Where a piece needs
/// what an earlier one made, it receives it from the piece before, which hands it on if need be. Where two stages share
/// a table (the words of GPT-2), each has it, the later one transposed; with `tie` as Megatron-LM does, whose first and
/// last stage sum their parts of its gradient, else as two tables with lives of their own. InputError where more than
/// two stages would have to sum: a tie is never lost unsaid.
/// With `scatter`, each rank along that axis hands on one of `parts` pieces along the first dimension of what all of
/// them have, gradients too, and those of the next stage gather them ("scatter/gather", Narayanan et al. 2021, section
/// 4.1); what is no multiple of `parts` there, or differs from rank to rank, is handed on as it is.
std::vector<Stage> cut_stages(const Part& part, std::span<const int> ends, int stages, const std::string& axis_name,
                              bool tie = true, const Scatter& scatter = {});

}  // namespace rehearse::schedule
