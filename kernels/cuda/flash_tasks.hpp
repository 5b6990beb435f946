// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, by type and by what a head's numbers fit into: what engine.hpp declares.
#pragma once

#include <variant>

#include "kernels/cuda/flash.hpp"

namespace rehearse::kernels::cuda {

using AnyFlash = std::variant<
    FlashForward<Float16, 64>, FlashForward<Float16, 128>, FlashForward<Float16, 256>, FlashForward<BFloat16, 64>,
    FlashForward<BFloat16, 128>, FlashForward<BFloat16, 256>, FlashBackward<Float16, 64, true>,
    FlashBackward<Float16, 128, true>, FlashBackward<Float16, 256, true>, FlashBackward<BFloat16, 64, true>,
    FlashBackward<BFloat16, 128, true>, FlashBackward<BFloat16, 256, true>, FlashBackward<Float16, 64, false>,
    FlashBackward<Float16, 128, false>, FlashBackward<Float16, 256, false>, FlashBackward<BFloat16, 64, false>,
    FlashBackward<BFloat16, 128, false>, FlashBackward<BFloat16, 256, false>>;
struct FlashTask : AnyFlash {
    using AnyFlash::AnyFlash;
};

}  // namespace rehearse::kernels::cuda
