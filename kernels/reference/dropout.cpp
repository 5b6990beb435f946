// SPDX-License-Identifier: Apache-2.0
// Inverted dropout (Srivastava et al. 2014, section 10): a value survives with probability `keep` and is then divided
// by it. The workspace keeps the factor of each value, 0 or 1 / keep.
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t n) {
    std::uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

void run(const Dropout& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (pass == Pass::backward_data) {
        for (std::size_t i = 0; i < b.diff_src[0].size(); ++i) b.diff_src[0][i] = b.diff_dst[i] * b.workspace[i];
        return;
    }
    const auto first = static_cast<std::uint64_t>(b.first_sample * (static_cast<std::int64_t>(b.dst.size()) / batch));
    const auto factor = static_cast<float>(1 / op.keep);
    const auto kept_below = static_cast<std::uint64_t>(op.keep * 0x1p53);
    for (std::size_t i = 0; i < b.dst.size(); ++i) {
        b.workspace[i] = random_bits(b.seed, first + i) >> 11 < kept_below ? factor : 0.0F;
        b.dst[i] = b.src[0][i] * b.workspace[i];
    }
}

}  // namespace rehearse::kernels::reference
