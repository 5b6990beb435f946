// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/half/half.hpp"

#include "core/error.hpp"
#include "kernels/convert.hpp"

namespace rehearse::kernels::cpu {

std::unique_ptr<Kernel> half_convolution(const Problem& problem, const HalfSimd& simd) {
    return problem.pass == Pass::backward_weights ? half_weight_gradient(problem, simd)
                                                  : half_direct_convolution(problem, simd);
}

void round_half(DataType type, const float* from, std::uint16_t* to, std::int64_t count) {
    if (type == DataType::f16) return convert(from, reinterpret_cast<Float16*>(to), count);
    convert(from, reinterpret_cast<BFloat16*>(to), count);
}

const std::uint16_t* half_words(ConstView view) {
    require(view.type() != DataType::f32 || view.empty(), "16-bit numbers are asked for");
    return static_cast<const std::uint16_t*>(view.bytes());
}

std::uint16_t* half_words(View view) { return const_cast<std::uint16_t*>(half_words(ConstView(view))); }

double sum_halves(DataType type, const std::uint16_t* from, std::int64_t count, std::int64_t step) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint16_t bits = from[i * step];
        sum += type == DataType::f16 ? static_cast<float>(Float16::of_bits(bits))
                                     : static_cast<float>(BFloat16::of_bits(bits));
    }
    return sum;
}

}  // namespace rehearse::kernels::cpu
