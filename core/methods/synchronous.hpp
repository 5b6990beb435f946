// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rehearse {

/// How ranks that sum their gradients in step agree on what to sum, and cut it.
struct Synchronous {
    /// How ranks agree that all have a bucket's gradients, before they sum it: 0, they need not (one order for all); 1,
    /// each tells rank 0, which tells all (Horovod's star); r from 2 on, up and down a tree of r children a rank (Kurth
    /// et al. 2018). Sums of what layers communicate need none.
    int control = 0;
    bool whole_variables = false;  // no variable is shared out: that of the largest decides (parameter servers)
};

}  // namespace rehearse
