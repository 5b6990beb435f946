// SPDX-License-Identifier: Apache-2.0
// Networks of recurrent layers, by name.
#pragma once

#include <optional>
#include <string_view>

#include "core/network.hpp"

namespace rehearse::models {

/// "lstm-ptb-large", "gnmt", "gru-keywords", ...; NAME@STEPS sets the words, or pieces of a recording, of a sample. Of
/// any other name: nothing. InputError where there cannot be so many.
std::optional<Network> load_recurrent(std::string_view name);

}  // namespace rehearse::models
