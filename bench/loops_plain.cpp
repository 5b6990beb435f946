// SPDX-License-Identifier: Apache-2.0
// Without Highway: what the compiler makes of plain loops for the CPUs that the build is for.
#include <array>

#include "bench/loops_simd.hpp"

namespace rehearse::bench {

namespace {

constexpr int plain_chains = 8 * chains;  // so that they fill vectors

template <typename T>
double fma(std::int64_t rounds) {
    volatile T source = T{0.5};  // read anew for each chain: the compiler must not know that all are the same
    const T half = source;
    std::array<T, plain_chains> sums{};
    for (T& sum : sums) sum = source;
    for (std::int64_t i = 0; i < rounds; ++i) {
        for (T& sum : sums) sum = sum * half + half;
    }
    double all = 0;
    for (const T sum : sums) all += static_cast<double>(sum);
    return all;
}

FmaLoop plain(std::string_view type, double (*run)(std::int64_t)) {
    return {type, "plain loop (built without Highway)", run, Flops{2.0 * plain_chains}, ""};
}

}  // namespace

FmaLoop fma_loop_f32() { return plain("f32", fma<float>); }
FmaLoop fma_loop_f64() { return plain("f64", fma<double>); }

void run(StreamKernel kernel, double* dst, const double* x, const double* y, std::size_t count) {
    switch (kernel) {
        case StreamKernel::copy:
            for (std::size_t i = 0; i < count; ++i) dst[i] = x[i];
            break;
        case StreamKernel::scale:
            for (std::size_t i = 0; i < count; ++i) dst[i] = stream_scale * x[i];
            break;
        case StreamKernel::add:
            for (std::size_t i = 0; i < count; ++i) dst[i] = x[i] + y[i];
            break;
        case StreamKernel::triad:
            for (std::size_t i = 0; i < count; ++i) dst[i] = x[i] + stream_scale * y[i];
            break;
    }
}

}  // namespace rehearse::bench
