// SPDX-License-Identifier: Apache-2.0
// What Highway compiles once a target, or plain loops where the build has no Highway.
#pragma once

#include "bench/loops.hpp"

namespace rehearse::bench {

constexpr int chains = 12;  // with a constant they fit 16 registers; latency 4 x 2 instructions a cycle needs 8

FmaLoop fma_loop_f32();
FmaLoop fma_loop_f64();

}  // namespace rehearse::bench
