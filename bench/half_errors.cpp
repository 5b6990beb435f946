// SPDX-License-Identifier: Apache-2.0
// What 16 bits cost in accuracy: the table of docs/kernels.md. Every variant of summing products, on this CPU's
// instructions or, number by number, on those that it lacks, against sums in double of the same rounded inputs.
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/convert.hpp"
#include "kernels/cpu/half/half.hpp"
#include "kernels/storage.hpp"

namespace rehearse::kernels {
namespace {

struct KernelVariant {
    std::string algorithm, sums;
    DataType type;
    std::unique_ptr<Kernel> kernel;
};

std::vector<float> random_values(std::int64_t count, unsigned seed) {
    std::minstd_rand engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = uniform(engine);
    return values;
}

// 16 bits for each of `values`, which become what the bits mean.
std::vector<std::uint16_t> stored(std::vector<float>& values, DataType type) {
    std::vector<std::uint16_t> bits(values.size());
    convert(ConstView(values), View(bits.data(), bits.size(), type));
    convert(ConstView(bits.data(), bits.size(), type), View(values));
    return bits;
}

// The largest and the root mean square difference from the reference, in root mean squares of the result.
void print_row(const Op& op, const KernelVariant& variant) {
    std::vector<float> src = random_values(elements(input_shapes(op).front()), 1);
    std::vector<float> weights = random_values(parameters(op), 2);
    std::vector<float> expected(static_cast<std::size_t>(elements(output_shape(op))));
    std::vector<float> actual = expected;
    Buffers b;
    std::vector<std::uint16_t> dst_bits(expected.size()), src_bits, weight_bits;
    if (variant.type == DataType::f32) {
        b.src.emplace_back(src);
        b.weights = weights;
        b.dst = actual;
    } else {
        src_bits = stored(src, variant.type);
        weight_bits = stored(weights, variant.type);
        b.src.emplace_back(src_bits.data(), src_bits.size(), variant.type);
        b.weights = View(weight_bits.data(), weight_bits.size(), variant.type);
        b.dst = View(dst_bits.data(), dst_bits.size(), variant.type);
    }
    variant.kernel->run(b);
    if (variant.type != DataType::f32) convert(b.dst, View(actual));
    Buffers exact;
    exact.src.emplace_back(src);
    exact.weights = weights;
    exact.dst = expected;
    backends().back()->prepare({op, Pass::forward, 1, DataType::f32})->run(exact);
    double largest = 0, square = 0, norm = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
        largest = std::max(largest, error);
        square += error * error;
        norm += static_cast<double>(expected[i]) * expected[i];
    }
    const auto count = static_cast<double>(actual.size());
    fmt::print("| `{}` | {} | {} | {} | {:.1e} | {:.1e} |\n", to_string(op), variant.algorithm, to_string(variant.type),
               variant.sums, largest / std::sqrt(norm / count), std::sqrt(square / norm));
}

std::vector<KernelVariant> variants(const Op& op) {
    std::vector<KernelVariant> found;
    const bool product = std::holds_alternative<MatMul>(op);
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
        const Problem problem{op, Pass::forward, 1, type};
        for (const Backend* backend : backends()) {
            if (backend->name() != "cpu" || backend->accumulation() != Accumulation::f32) continue;
            if (!backend->supports(problem).yes) continue;
            found.push_back({std::string{backend->algorithm()}, "f32", type, backend->prepare(problem)});
        }
        for (const auto& [sums, name] : {std::pair{cpu::HalfSums::chunked, "chunked"}, {cpu::HalfSums::f16, "f16"}}) {
            if (type != DataType::f16) continue;
            const cpu::HalfSimd* native = cpu::native_f16(sums);
            const cpu::HalfSimd& simd = native == nullptr ? cpu::emulated_f16(sums) : *native;
            found.push_back({product ? "gemm" : "direct", name, type,
                             product ? half_product(problem, simd) : half_convolution(problem, simd)});
        }
    }
    return found;
}

}  // namespace
}  // namespace rehearse::kernels

int main() {
    using namespace rehearse;
    fmt::print("| problem | algorithm | type | sums | largest | rms |\n|---|---|---|---|---|---|\n");
    const Window same{3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    const std::vector<Op> ops{MatMul{32, 64, 64, false}, MatMul{32, 64, 1024, false}, MatMul{32, 64, 4608, false},
                              Conv{64, 14, 14, 64, same, 1, false}, Conv{512, 7, 7, 16, same, 1, false}};
    for (const Op& op : ops) {
        for (const kernels::KernelVariant& variant : kernels::variants(op)) kernels::print_row(op, variant);
    }
}
