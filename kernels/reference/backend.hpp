// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::reference {

/// The plainest loops that are right, for every operator: the oracle of the other backends. In f32; other types are
/// converted.
const Backend& backend();

}  // namespace rehearse::kernels::reference
