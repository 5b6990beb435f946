// SPDX-License-Identifier: Apache-2.0
// Refusals that all backends share.
#pragma once

#include <string>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// What no backend of this version can run: operators without a definition, passes that an operator has not, no
/// samples, a dropout that keeps nothing. Yes for everything else. Flatten has nothing to time and a
/// caller may give its input on; one that cannot may ask for the copy.
Support supported_by_any(const Problem& problem);

/// BackendError with the backend's reason unless it supports the problem.
void require_supported(const Backend& backend, const Problem& problem);

}  // namespace rehearse::kernels
