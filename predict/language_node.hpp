// SPDX-License-Identifier: Apache-2.0
// The board and the node that a transformer trains on, as language_time is told of them: calibrate/llm/nodes.csv.
#pragma once

#include <cstdint>

#include "core/units.hpp"

namespace rehearse::predict {

/// Shares of the peak that an attention kernel reaches on long causal sequences with heads of 128 values.
struct AttentionShares {
    double forward = 0.7, backward = 0.55;
};

/// What kernels reach on a board under its power limit. The data sheet's peak is of the boost clock; large products
/// draw more power than boards have and run at a lower one. 0: what the device's tiles say.
struct LanguageBoard {
    double products = 0, products_8bit = 0;  // shares of the peak of a full wave of large tiles
    double memory = 0;                       // share of the memory bandwidth
    AttentionShares flash, library;          // FlashAttention-2; the vendor's library (cuDNN)
    double wide = 1;                         // speed of attention with keys of more than 128 values over these
    double exponentials = 0;                 // a second, of the board; 0: not known, and attention is its products
    double measured_exponentials = 0;        // of the board that the attention shares were measured on
    std::int64_t cards = 8;                  // whose slowest the shares contain
    Seconds issue{38e-6};                    // of an operator, by the host (models/software.toml: PyTorch on vTrain's)
};

/// Bytes a second that a ring moves past a device, each way.
struct LanguageNode {
    std::int64_t devices = 8;
    Bandwidth inside;
    Bandwidth outside;             // by a device's own network adapter
    std::int64_t half = 8;         // devices behind one root complex: groups of more reach less
    double across = 1;             // of `inside`, rings
    double all_to_all_across = 1;  // of `inside`, all-to-alls
    bool shared = false;           // rings of several groups go the same way
    double several_across = 1;     // of `inside`, such rings together
    double all_to_all = 0.75;      // of a ring's rate within a node: many small messages
    LanguageBoard board{};
};

}  // namespace rehearse::predict
