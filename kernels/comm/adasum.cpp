// SPDX-License-Identifier: Apache-2.0
// Adasum's arithmetic, in loops that a compiler makes vectors of.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/comm/reduction.hpp"

namespace rehearse::kernels {

namespace {

constexpr std::int64_t block = 256;
using Block = std::array<float, block>;

// The next elements of both vectors, up to a block of them.
template <typename Use>
void in_blocks(const std::byte* a, const std::byte* b, std::int64_t count, const Use& use) {
    Block x, y;
    for (std::int64_t first = 0; first < count; first += block) {
        const std::int64_t size = std::min(block, count - first);
        const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
        std::memcpy(x.data(), a + first * std::int64_t{sizeof(float)}, bytes);
        std::memcpy(y.data(), b + first * std::int64_t{sizeof(float)}, bytes);
        use(first, size, x, y);
    }
}

}  // namespace

void dots(const std::byte* a, const std::byte* b, std::int64_t count, std::byte* products) {
    constexpr std::size_t lanes = 8;  // sums beside each other
    std::array<std::array<double, lanes>, 3> sums{};
    in_blocks(a, b, count, [&](std::int64_t, std::int64_t size, const Block& x, const Block& y) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
            const double p = x[i], q = y[i];
            sums[0][i % lanes] += p * q;
            sums[1][i % lanes] += p * p;
            sums[2][i % lanes] += q * q;
        }
    });
    std::array<float, 3> made{};
    for (std::size_t k = 0; k < made.size(); ++k) {
        double sum = 0;
        for (const double part : sums[k]) sum += part;
        made[k] = static_cast<float>(sum);
    }
    std::memcpy(products, made.data(), sizeof made);
}

void blend(std::byte* a, std::byte* b, std::int64_t count, const std::byte* products) {
    std::array<float, 3> p{};
    std::memcpy(p.data(), products, sizeof p);
    const auto of = [&](float square) { return square > 0 ? 1 - p[0] / (2 * square) : 1; };
    const float first = of(p[1]), second = of(p[2]);
    in_blocks(a, b, count, [&](std::int64_t begin, std::int64_t size, Block& x, const Block& y) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) x[i] = first * x[i] + second * y[i];
        const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
        std::memcpy(a + begin * std::int64_t{sizeof(float)}, x.data(), bytes);
        std::memcpy(b + begin * std::int64_t{sizeof(float)}, x.data(), bytes);
    });
}

}  // namespace rehearse::kernels
