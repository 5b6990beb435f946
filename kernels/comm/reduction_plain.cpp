// SPDX-License-Identifier: Apache-2.0
// For builds without Highway.
#include <cstring>

#include "kernels/comm/reduction.hpp"

namespace rehearse::kernels {

namespace {

template <typename Stored, typename Sum>
void add_each(std::byte* sum, const std::byte* arrived, std::int64_t count, const Sum& sum_of) {
    for (std::int64_t i = 0; i < count; ++i, sum += sizeof(Stored), arrived += sizeof(Stored)) {
        Stored a, b;
        std::memcpy(&a, sum, sizeof a);
        std::memcpy(&b, arrived, sizeof b);
        a = sum_of(a, b);
        std::memcpy(sum, &a, sizeof a);
    }
}

}  // namespace

void add(DataType type, std::byte* sum, const std::byte* arrived, std::int64_t count) {
    switch (type) {
        case DataType::f32:
            return add_each<float>(sum, arrived, count, [](float a, float b) { return a + b; });
        case DataType::f16:
            return add_each<std::uint16_t>(sum, arrived, count, [](std::uint16_t a, std::uint16_t b) {
                return half_of_float(float_of_half(a) + float_of_half(b));
            });
        case DataType::bf16:
            return add_each<std::uint16_t>(sum, arrived, count, [](std::uint16_t a, std::uint16_t b) {
                return bfloat_of_float(float_of_bfloat(a) + float_of_bfloat(b));
            });
    }
}

}  // namespace rehearse::kernels
