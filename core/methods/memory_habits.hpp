// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace rehearse {

/// What the software that trains keeps in memory beside what its plan says. Left in a plan, whatever its text, by who
/// knows the software.
struct MemoryHabits {
    /// Of the scores of a softmax with cross-entropy, which are made in the compute type:
    ///   kernel     nothing beside them and their gradient: one kernel reads the ones and writes the other
    ///   fused      one copy in f32, in which the probabilities and their gradient are made in place (Megatron-LM)
    ///   operators  log-probabilities in f32 for the backward pass, and there both gradients in f32 (PyTorch)
    enum class Loss { kernel, fused, operators };
    std::optional<Loss> loss{};                 // absent: operators where prices move scores in f32, else kernel
    std::optional<bool> keeps_probabilities{};  // of attention; absent: as the machine's software
    bool bucket_copies = false;                 // gradients that ranks sum lie in their tensors and in the buckets, too
    double pool_index = 0;                      // bytes that a max pool keeps of each value that it gives
};

}  // namespace rehearse
