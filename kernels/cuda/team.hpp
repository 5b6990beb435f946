// SPDX-License-Identifier: Apache-2.0
// How a kernel is written so that it runs on a GPU and, for tests, on any host. A task is a plain value that knows how
// many blocks it takes; its run() is what one block does, in steps that every thread of a team takes together:
//
//   team.each(f)        f(thread, registers) on every thread, then all wait for each other (__syncthreads)
//   team.alone(f)       the same without the wait
//   team.multiply<E>(f) a matrix product of each warp: f(registers) gives this thread's fragments (tile.hpp)
//   team.shared()       the block's shared memory
//   team.largest_of_quads(f), team.sum_of_quads(f)
//                       both numbers that f(registers) names become those of four threads in a row together
//
// Where the factors are copied ahead (packed.hpp):
//
//   team.copy(to, from, there)  in alone(): sixteen bytes to shared memory, or zeros; under way when it returns
//   team.commit()               what was copied since the last one is a group
//   team.wait<n, groups>()      until all groups but the last n have come, for every thread; `groups`: for wgmma
//   team.load_matrices(f)       f(thread, registers) names a row and where its words go (packed_tile.hpp)
//   team.load_transposed(f)     the same; words are of columns
//   team.multiply_groups<E>(f)  a product of each warpgroup (packed_tile.hpp); under way when it returns
//   team.products<n>(f)         until all of them but the last n are over, for every thread; f(registers): their sums
//
// On the device a team is one thread's view of its block (device.cuh); on the host it loops over the threads
// (tests/kernels/cuda_host.hpp), so that index arithmetic, tables and fragments are held to the reference where no GPU
// is.
#pragma once

#include <cstdint>

#include "core/half.hpp"

// The one thing that needs the preprocessor: what is compiled for both sides. CUDA's headers are device.cuh's.
#ifdef __CUDACC__
#define REHEARSE_BOTH __host__ __device__
#define REHEARSE_UNROLL _Pragma("unroll")
#define REHEARSE_ROLLED _Pragma("unroll 1")
#define REHEARSE_BY_TWO _Pragma("unroll 2")
#else
#define REHEARSE_BOTH
#define REHEARSE_UNROLL
#define REHEARSE_ROLLED
#define REHEARSE_BY_TWO
#endif

namespace rehearse::kernels::cuda {

struct Blocks {
    std::int64_t x = 1, y = 1, z = 1;
};
/// What a launch takes of them in y and in z; in x, 2^31 - 1.
inline constexpr std::int64_t most_blocks = 65535;
/// Which block of them.
struct Block {
    std::int64_t x = 0, y = 0, z = 0;
};

REHEARSE_BOTH constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

REHEARSE_BOTH inline float to_float(float value) { return value; }
REHEARSE_BOTH inline float to_float(Float16 value) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(value.bits));
#else
    return static_cast<float>(value);
#endif
}
REHEARSE_BOTH inline float to_float(BFloat16 value) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(std::uint32_t{value.bits} << 16);
#else
    return static_cast<float>(value);
#endif
}

/// Rounded to the nearest, ties to even.
template <typename Element>
REHEARSE_BOTH inline Element from_float(float value) {
#ifdef __CUDA_ARCH__
    Element made;
    if constexpr (sizeof(Element) == sizeof(float)) {
        made = value;
    } else if constexpr (std::is_same_v<Element, Float16>) {
        made.bits = __half_as_ushort(__float2half_rn(value));
    } else {
        made.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
    }
    return made;
#else
    return static_cast<Element>(value);
#endif
}

}  // namespace rehearse::kernels::cuda
