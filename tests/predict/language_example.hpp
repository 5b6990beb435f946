// SPDX-License-Identifier: Apache-2.0
// A decoder of eight blocks as wide as Llama 3 8B's, and the device and node that it is timed on.
#pragma once

#include "models/models.hpp"
#include "predict/language_memory.hpp"
#include "predict/language_time.hpp"

namespace rehearse::predict {

inline DeviceClass a100() { return models::load_machine("selene").classes.at(0); }

inline const LanguageNode node_of_eight{8, Bandwidth{230e9}, Bandwidth{20e9}, 8, 1, 1, false, 1};

inline LanguageModel large() {
    LanguageModel m;
    m.layers = 8;
    m.hidden = 4096;
    m.heads = 32;
    m.key_heads = 8;
    m.head_size = 128;
    m.ffn = 14336;
    m.vocabulary = 128256;
    m.sequence = 4096;
    return m;
}

}  // namespace rehearse::predict
