// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/backends.hpp"

#include <vector>

#include "kernels/cpu/attention/flash.hpp"
#include "kernels/cpu/conv/direct.hpp"
#include "kernels/cpu/conv/fft.hpp"
#include "kernels/cpu/conv/im2col.hpp"
#include "kernels/cpu/conv/winograd.hpp"
#include "kernels/cpu/gemm/matmul.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/half/half.hpp"
#include "kernels/cpu/rows/batchnorm.hpp"
#include "kernels/cpu/rows/pool.hpp"
#include "kernels/cpu/rows/rows.hpp"

namespace rehearse::kernels::cpu {
namespace {

// Those that round as a plain sum does come first: Winograd's are faster, but for who asks for them. Sums of f16 come
// before them all where the CPU has the instructions, a few of them at a time.
std::vector<const Backend*> all_algorithms() {
    std::vector<const Backend*> all;
    for (const Backend* backend : half_sums(HalfSums::chunked)) all.push_back(backend);
    for (const Backend* backend : {&direct(), &im2col(), &matmul(), &batchnorm()}) all.push_back(backend);
    for (const Backend* backend : winograd()) all.push_back(backend);
    for (const Backend* backend : fft()) all.push_back(backend);
    for (const Backend* backend : half_sums(HalfSums::f16)) all.push_back(backend);
    return all;
}

}  // namespace

std::span<const Backend* const> backends() {
    static const std::vector<const Backend*> all = all_algorithms();
    return all;
}

std::span<const Backend* const> preferred() {
    static const std::vector<const Backend*> first{&flash(), &rows(), &general(), &pool()};
    return first;
}

}  // namespace rehearse::kernels::cpu
