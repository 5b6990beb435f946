// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings: pairs of numbers turned; the gradient is turned back.
#include "kernels/general/rotary.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {

void run_rotary(const Elementwise& op, Pass pass, std::int64_t batch, const Buffers& b) {
    general::Turns turns(op);
    turns.take(b.fixed, b.first_row, b.places);
    const bool forward = pass == Pass::forward;
    for (std::int64_t line = 0; line < batch * turns.rows(); ++line) {
        const std::int64_t at = line * turns.width();
        turns.for_each(line % turns.rows(),
                       [&](std::int64_t i, std::int64_t j, double cos_i, double cos_j, double sin_i, double sin_j) {
                           const double x = forward ? b.src[0][at + i] : b.diff_dst[at + i];
                           const double y = forward ? b.src[0][at + j] : b.diff_dst[at + j];
                           const auto to = [&](std::int64_t k, double value) {
                               (forward ? b.dst[at + k] : b.diff_src[0][at + k]) = static_cast<float>(value);
                           };
                           if (i == j) return to(i, x);
                           to(i, forward ? x * cos_i - y * sin_i : x * cos_i + y * sin_j);
                           to(j, forward ? y * cos_j + x * sin_j : y * cos_j - x * sin_i);
                       });
    }
}

}  // namespace rehearse::kernels::reference
