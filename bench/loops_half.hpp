// SPDX-License-Identifier: Apache-2.0
// Loops in translation units of their own, because the whole unit is compiled for what few CPUs have.
#pragma once

#include <cstdint>

namespace rehearse::bench {

constexpr int half_chains = 16;      // independent sums: latency 6 x 2 an instruction a cycle, and some room
constexpr int half_operations = 64;  // of an instruction of 512 bits: 2 x 32

double fma_bf16(std::int64_t rounds);
double fma_f16(std::int64_t rounds);

}  // namespace rehearse::bench
