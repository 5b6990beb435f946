// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "pool": max pooling of volumes, for which oneDNN has plain loops only; its pooling of images is left to
/// it. Nothing is kept for the backward pass, which compares again.
const Backend& pool();

}  // namespace rehearse::kernels::cpu
