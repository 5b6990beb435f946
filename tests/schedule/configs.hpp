// SPDX-License-Identifier: Apache-2.0
// Networks of Hugging Face's kind, small enough to be counted.
#pragma once

#include <string>

#include "models/huggingface/families.hpp"
#include "models/models.hpp"

namespace rehearse::schedule {

/// The network of a config.json of this text, on 16 tokens.
inline Network of_config(const std::string& text) {
    return models::huggingface::from_config(text, "config.json", "net", {.sizes = {{"tokens", 16}}});
}

}  // namespace rehearse::schedule
