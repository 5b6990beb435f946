// SPDX-License-Identifier: Apache-2.0
// For builds without Highway.
#include <cstring>

#include "core/error.hpp"
#include "core/half.hpp"
#include "kernels/comm/reduction.hpp"

namespace rehearse::kernels {

namespace {

template <typename Element>
void add_each(std::byte* sum, const std::byte* arrived, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, sum += sizeof(Element), arrived += sizeof(Element)) {
        Element a, b;
        std::memcpy(&a, sum, sizeof a);
        std::memcpy(&b, arrived, sizeof b);
        a = Element{static_cast<float>(a) + static_cast<float>(b)};
        std::memcpy(sum, &a, sizeof a);
    }
}

}  // namespace

void add(DataType type, std::byte* sum, const std::byte* arrived, std::int64_t count) {
    switch (type) {
        case DataType::f32:
            return add_each<float>(sum, arrived, count);
        case DataType::f16:
            return add_each<Float16>(sum, arrived, count);
        case DataType::bf16:
            return add_each<BFloat16>(sum, arrived, count);
        case DataType::tf32:
        case DataType::fp8:
            break;
    }
    require(false, "memory holds f32, f16 or bf16");
}

}  // namespace rehearse::kernels
