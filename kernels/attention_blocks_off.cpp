// SPDX-License-Identifier: Apache-2.0
// Of a build without our own CPU kernels.
#include "core/error.hpp"
#include "kernels/attention_blocks.hpp"

namespace rehearse::kernels {

void attend_to_block(const AttentionBlock& /*block*/, bool /*first*/, BlockRows<float> /*dst*/, float* /*log_sums*/) {
    require(false, "why_not_in_blocks has been asked");
}

void gradients_of_block(const AttentionBlock& /*block*/, const BlockGradients& /*tensors*/) {
    require(false, "why_not_in_blocks has been asked");
}

std::string_view why_not_in_blocks(const Attention& /*op*/) { return "this build has no CPU kernels (Highway)"; }

}  // namespace rehearse::kernels
