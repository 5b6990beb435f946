// SPDX-License-Identifier: Apache-2.0
// Stacks of matrix products whose leading sizes broadcast.
#include <vector>

#include "core/index.hpp"
#include "kernels/general/places.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {

// dst = a b, d a = d dst b^T, d b = a^T d dst, summed where one matrix meets several; of a trained operand over all
// samples.
void run(const BatchedMatMul& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::int64_t m = op.a[op.a.size() - 2], k = op.a.back(), n = op.b.back();
    const std::vector<general::Pair> pairs = general::pairs_of(op);
    const std::int64_t size_a = elements(op.a), size_b = elements(op.b);
    const auto stacks = static_cast<std::int64_t>(pairs.size());
    const bool all_data = pass == Pass::backward_data && op.trained == 0;
    const bool to_a = all_data || (pass == Pass::backward_data ? op.trained == 2 : op.trained == 1);
    const bool to_b = all_data || (pass == Pass::backward_data ? op.trained == 1 : op.trained == 2);
    std::vector<double> sum_a, sum_b;
    const auto values = [&](int side) -> std::span<const float> {
        if (op.trained == side)
            return pass == Pass::backward_weights ? std::span<const float>{} : b.weights.as<float>();
        return b.src[op.trained == 0 && side == 2 ? 1 : 0].as<float>();
    };
    const std::span<const float> a = values(1), right = values(2);
    for (std::int64_t s = 0; s < batch; ++s) {
        const std::int64_t first_a = op.trained == 1 ? 0 : s * size_a, first_b = op.trained == 2 ? 0 : s * size_b;
        if (pass == Pass::backward_data || s == 0) {
            sum_a.assign(to_a ? at(size_a) : 0, 0);
            sum_b.assign(to_b ? at(size_b) : 0, 0);
        }
        for (std::int64_t p = 0; p < stacks; ++p) {
            const std::int64_t in_a = pairs[at(p)].a * m * k, in_b = pairs[at(p)].b * k * n;
            for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t j = 0; j < n; ++j) {
                    const std::int64_t made = ((s * stacks + p) * m + i) * n + j;
                    double sum = 0;
                    for (std::int64_t l = 0; l < k; ++l) {
                        const std::int64_t of_a = in_a + i * k + l, of_b = in_b + l * n + j;
                        if (pass == Pass::forward)
                            sum += static_cast<double>(a[at(first_a + of_a)]) * right[at(first_b + of_b)];
                        if (to_a) sum_a[at(of_a)] += static_cast<double>(b.diff_dst[made]) * right[at(first_b + of_b)];
                        if (to_b) sum_b[at(of_b)] += static_cast<double>(b.diff_dst[made]) * a[at(first_a + of_a)];
                    }
                    if (pass == Pass::forward) b.dst[made] = static_cast<float>(sum);
                }
            }
        }
        if (pass != Pass::backward_data) continue;
        for (std::int64_t i = 0; to_a && !b.diff_src[0].empty() && i < size_a; ++i)
            b.diff_src[0][first_a + i] = static_cast<float>(sum_a[at(i)]);
        const View other = b.diff_src[op.trained == 0 ? 1 : 0];
        for (std::int64_t i = 0; to_b && !other.empty() && i < size_b; ++i)
            other[first_b + i] = static_cast<float>(sum_b[at(i)]);
    }
    if (pass != Pass::backward_weights) return;
    const std::vector<double>& sums = op.trained == 1 ? sum_a : sum_b;
    for (std::size_t i = 0; i < sums.size(); ++i) b.diff_weights[i] = static_cast<float>(sums[i]);
}

}  // namespace rehearse::kernels::reference
