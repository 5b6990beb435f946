// SPDX-License-Identifier: Apache-2.0
// Numbers as memory takes them: up to 16 bytes an access.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/cuda/team.hpp"

namespace rehearse::kernels::cuda {

/// What memory takes in one access: 4, 8 or 16 bytes that begin at a whole multiple of as many.
template <int count>
struct alignas(4 * count) Words {
    std::uint32_t of[count];
};
template <int count>
REHEARSE_BOTH Words<count> words_at(const void* from) {
#ifdef __CUDA_ARCH__
    return *static_cast<const Words<count>*>(from);
#else
    Words<count> made;
    std::memcpy(&made, from, sizeof made);
    return made;
#endif
}
/// Into the GPU's memory.
template <int count>
REHEARSE_BOTH void put_words(void* to, const Words<count>& words) {
#ifdef __CUDA_ARCH__
    if constexpr (count == 4) {  // said outright: nvcc takes such a structure apart where several stores meet
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(words.of[0]),
                     "r"(words.of[1]), "r"(words.of[2]), "r"(words.of[3])
                     : "memory");
    } else {
        *static_cast<Words<count>*>(to) = words;
    }
#else
    std::memcpy(to, &words, sizeof words);
#endif
}

/// Numbers that lie together: 1, or 4 or 8 that memory takes in accesses of up to 16 bytes.
template <int n>
struct Floats {
    float of[n];
};
template <int n>
REHEARSE_BOTH Floats<n> load_floats(const float* from) {
    Floats<n> made;
    REHEARSE_UNROLL
    for (int i = 0; i < n; i += 4) {
        const Words<4> four = words_at<4>(from + i);
        REHEARSE_UNROLL
        for (int e = 0; e < 4; ++e) made.of[i + e] = std::bit_cast<float>(four.of[e]);
    }
    return made;
}
template <int n>
REHEARSE_BOTH void store_floats(float* to, const Floats<n>& values) {
    REHEARSE_UNROLL
    for (int i = 0; i < n; i += 4) {
        Words<4> four;
        REHEARSE_UNROLL
        for (int e = 0; e < 4; ++e) four.of[e] = std::bit_cast<std::uint32_t>(values.of[i + e]);
        put_words(to + i, four);
    }
}
template <typename Element, int n>
REHEARSE_BOTH Floats<n> load_halves(const Element* from) {
    const Words<n / 2> words = words_at<n / 2>(from);
    Floats<n> made;
    REHEARSE_UNROLL
    for (int i = 0; i < n; ++i) {
        Element one;
        one.bits = static_cast<std::uint16_t>(words.of[i / 2] >> i % 2 * 16);
        made.of[i] = to_float(one);
    }
    return made;
}
template <typename Element, int n>
REHEARSE_BOTH void store_halves(Element* to, const Floats<n>& values) {
    Words<n / 2> words;
    REHEARSE_UNROLL
    for (int i = 0; i < n; i += 2) {
        words.of[i / 2] =
            from_float<Element>(values.of[i]).bits | std::uint32_t{from_float<Element>(values.of[i + 1]).bits} << 16;
    }
    put_words(to, words);
}

}  // namespace rehearse::kernels::cuda
