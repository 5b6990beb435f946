// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rehearse {

/// Adasum as for Adam and LAMB (Maleki et al. 2021, section 3.4): each rank updates its weights by its own gradient,
/// and what is combined is by how much they have changed. Ranks keep moments of their own.
struct CombinedUpdates {
    bool on = false;
};

}  // namespace rehearse
