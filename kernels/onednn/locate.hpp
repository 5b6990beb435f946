// SPDX-License-Identifier: Apache-2.0
// Where the common tensors lie in Buffers.
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::onednn {

inline const float* src(const Buffers& b) { return b.src[0].data(); }
inline const float* dst(const Buffers& b) { return b.dst.data(); }
inline const float* dst_in(const Buffers& b) { return b.dst_in.data(); }
inline const float* weights(const Buffers& b) { return b.weights.data(); }
inline const float* diff_src(const Buffers& b) { return b.diff_src[0].data(); }
inline const float* diff_dst(const Buffers& b) { return b.diff_dst.data(); }
inline const float* diff_weights(const Buffers& b) { return b.diff_weights.data(); }
inline const float* workspace(const Buffers& b) { return b.workspace.data(); }

}  // namespace rehearse::kernels::onednn
