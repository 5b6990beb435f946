// SPDX-License-Identifier: Apache-2.0
// Published iteration times of Megatron-LM with tensor, data and pipeline parallelism, and what we predict for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/progress.hpp"

namespace rehearse::validate {

/// Columns as vTrain publishes them.
struct MegatronRow {
    std::string id{}, set{};  // file and row
    std::int64_t devices = 0, global_batch = 0, micro_batch = 0, hidden = 0, heads = 0, layers = 0, sequence = 0;
    std::int64_t tensor = 1, data = 1, pipe = 1;
    Seconds published{};
};

/// InputError names the line: a column is missing, a figure cannot be, tensor x data x pipe are not the devices.
std::vector<MegatronRow> read_megatron(std::string_view text, const std::string& origin, const std::string& set);
/// vTrain's single- and multi-node tables.
std::vector<MegatronRow> shipped_megatron();

/// As Megatron-LM lays it out: tensor inside data inside pipe, stages of equally many blocks, 1F1B, one sum of
/// gradients at the end. On more than a node activations are computed again block by block.
std::string plan_of(const MegatronRow& row);
/// The vocabulary of GPT-2, padded for the ranks that share it.
std::string network_of(const MegatronRow& row);
/// (predicted - published) / published.
double error_of(const MegatronRow& row, Seconds predicted);

struct MegatronAnswer {
    MegatronRow row;
    Seconds cold{}, low{}, high{};  // the band should hold 90 %
    std::optional<Seconds> anchored{};
    std::string anchor{};   // id of the row that it is scaled by
    bool fitted = false;    // the machine's figures were fitted on it
    std::string skipped{};  // why there is no answer
};

/// Anchored: the prediction times published over predicted of the row of the same width, micro-batch, sequence, tensor
/// ranks and recomputation that has the fewest layers, stages and devices.
/// Where `machine` is empty: on vtrain-server up to a node of eight, else on vtrain-a100.
std::vector<MegatronAnswer> answer_megatron(const std::vector<MegatronRow>& rows, const std::string& machine,
                                            const Progress& progress);

}  // namespace rehearse::validate
