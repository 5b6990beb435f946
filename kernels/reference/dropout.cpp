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
    const std::int64_t count = elements(op.shape);
    const std::int64_t whole = b.sample_elements > 0 ? b.sample_elements : count;
    const auto factor = static_cast<float>(1 / op.keep);
    const auto kept_below = static_cast<std::uint64_t>(op.keep * 0x1p53);
    for (std::int64_t n = 0; n < batch; ++n) {
        const auto first = static_cast<std::uint64_t>((b.first_sample + n) * whole + b.first_element);
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t at = n * count + i;
            const std::int64_t place = b.places.empty() ? i : b.places[static_cast<std::size_t>(i)];
            const std::uint64_t bits = random_bits(b.seed, first + static_cast<std::uint64_t>(place));
            b.workspace[static_cast<std::size_t>(at)] = bits >> 11 < kept_below ? factor : 0.0F;
            b.dst[at] = b.src[0][at] * b.workspace[static_cast<std::size_t>(at)];
        }
    }
}

}  // namespace rehearse::kernels::reference
