// SPDX-License-Identifier: Apache-2.0
// Tensor (model) parallelism: the ranks along one axis share each large layer (Krizhevsky 2014; Shoeybi et al. 2019).
#pragma once

#include <string>

#include "core/schedule.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// The whole network as one part.
Part whole(const Network& network);

struct TensorAxis {
    std::string name;  // of the mesh
    int index = 0;
    std::int64_t parts = 1;
    bool sequence = false;  // sequence parallelism (Korthikanti et al. 2022)
    TensorSplit split = TensorSplit::turns;
    bool in_blocks = false;  // ranks along other axes have blocks of each image
};

/// What each of the ranks along a mesh axis computes; its weights are cut along that axis, the rest is the same on all.
/// Walks the network once and keeps for each output whether every rank has it or each its piece:
/// - a layer whose input every rank has gives each rank some of the output's columns or filters ("column parallel");
/// - one whose input lies in pieces multiplies them by its rows or channels, and the ranks add up ("row parallel");
/// - attention has some of its heads on each rank, the dense layer before it their queries, keys and values;
/// - a table of words lies on the ranks in equal shares, whose rows are added up; the scores that share it lie in
///   pieces, and the loss gathers three numbers a row from each rank. A vocabulary that the ranks cannot share evenly
///   is filled up to a multiple of 128 words a rank, scores of no table likewise;
/// - of each expert every rank has some columns, then rows, as of a dense layer (not of rows with biases);
/// - of what a dense layer makes side by side (queries, keys and values; gate and up) a rank has its piece of each;
/// - what works on each channel by itself stays in pieces; what needs all of them gathers first.
/// A layer that cannot be cut evenly is computed on every rank; where that is much, the part has a note. So an MLP or
/// an attention block costs one sum forward and one backward, as in Megatron-LM. With `sequence` each sum leaves every
/// rank its rows of the sequence, on which normalization, dropout and additions work; the next layer cut by columns
/// gathers them: as many bytes, less memory. With TensorSplit::filters convolutions and dense layers are all column
/// parallel: what lies in pieces is gathered before the next one. With channels all are row parallel: each rank takes
/// its piece of an input that all have. InputError when no layer can be cut.
Part split_tensor(const Network& network, const TensorAxis& axis);

}  // namespace rehearse::schedule
