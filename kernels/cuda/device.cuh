// SPDX-License-Identifier: Apache-2.0
// A team on the GPU: one thread's view of its block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/tile.hpp"

namespace rehearse::kernels::cuda {

// c += a b of a warp; m16n8k8 with .tf32, m16n8k16 with 16-bit types, which before sm_80 is two of m16n8k8.
template <typename Element>
__device__ inline void multiply_fragments(const Fragments& f) {
#define REHEARSE_MMA(shape_and_types)                                                                         \
    asm volatile("mma.sync.aligned." shape_and_types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(f.c[0]), "+f"(f.c[1]), "+f"(f.c[2]), "+f"(f.c[3])                                     \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]))
#if __CUDA_ARCH__ >= 800
    if constexpr (sizeof(Element) == sizeof(float)) {
        REHEARSE_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
    } else if constexpr (std::is_same_v<Element, Float16>) {
        REHEARSE_MMA("m16n8k16.row.col.f32.f16.f16.f32");
    } else {
        REHEARSE_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
    }
#elif __CUDA_ARCH__ >= 750
    if constexpr (std::is_same_v<Element, Float16>) {
        for (int half = 0; half < 2; ++half) {
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                         : "+f"(f.c[0]), "+f"(f.c[1]), "+f"(f.c[2]), "+f"(f.c[3])
                         : "r"(f.a[2 * half]), "r"(f.a[2 * half + 1]), "r"(f.b[half]));
        }
    } else {
        __trap();  // the backends refuse these types below sm_80
    }
#endif
#undef REHEARSE_MMA
}

// How wgmma is told of a matrix in shared memory whose rows are 128 bytes: where it begins, 1024 bytes from one eight
// rows to the next, 128-byte swizzle (PTX ISA, "Matrix descriptor" of wgmma). `bytes`: into the rows.
__device__ inline std::uint64_t described(const Vector* matrix, int bytes) {
    const auto begin = static_cast<std::uint32_t>(__cvta_generic_to_shared(matrix)) + static_cast<std::uint32_t>(bytes);
    return static_cast<std::uint64_t>((begin & 0x3FFFFU) >> 4) | std::uint64_t{1} << 16 |
           static_cast<std::uint64_t>(1024 >> 4) << 32 | std::uint64_t{1} << 62;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// c {64, 128} += a {64, 16} b {128, 16}^T.
template <typename Element>
__device__ inline void multiply_group(float (&c)[64], std::uint64_t a, std::uint64_t b) {
#define REHEARSE_C8(i)                                                                                          \
    "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), \
        "+f"(c[i + 7])
#define REHEARSE_WGMMA(types)                                                                                      \
    asm volatile(                                                                                                  \
        "{.reg .pred onto; setp.ne.b32 onto, 1, 0;"                                                                \
        " wgmma.mma_async.sync.aligned.m64n128k16.f32." types                                                      \
        " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27," \
        "%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53," \
        "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, onto, 1, 1, 0, 0;}"                                   \
        : REHEARSE_C8(0), REHEARSE_C8(8), REHEARSE_C8(16), REHEARSE_C8(24), REHEARSE_C8(32), REHEARSE_C8(40),      \
          REHEARSE_C8(48), REHEARSE_C8(56)                                                                         \
        : "l"(a), "l"(b))
    if constexpr (std::is_same_v<Element, Float16>) {
        REHEARSE_WGMMA("f16.f16");
    } else {
        REHEARSE_WGMMA("bf16.bf16");
    }
#undef REHEARSE_WGMMA
#undef REHEARSE_C8
}
#endif

template <typename Task>
struct DeviceTeam {
    typename Task::Shared& memory;
    typename Task::Registers registers;

    REHEARSE_BOTH typename Task::Shared& shared() { return memory; }
    template <typename F>
    REHEARSE_BOTH void each(F f) {
#ifdef __CUDA_ARCH__
        f(static_cast<int>(threadIdx.x), registers);
        __syncthreads();
#endif
    }
    template <typename F>
    REHEARSE_BOTH void alone(F f) {
#ifdef __CUDA_ARCH__
        f(static_cast<int>(threadIdx.x), registers);
#endif
    }
    template <typename F>
    REHEARSE_BOTH void largest_of_quads(F f) {
#ifdef __CUDA_ARCH__
        float(&of)[2] = f(registers);
        REHEARSE_UNROLL
        for (int i = 0; i < 4; ++i) of[i / 2] = fmaxf(of[i / 2], __shfl_xor_sync(0xFFFFFFFFU, of[i / 2], i % 2 + 1));
#endif
    }
    template <typename F>
    REHEARSE_BOTH void sum_of_quads(F f) {
#ifdef __CUDA_ARCH__
        float(&of)[2] = f(registers);
        REHEARSE_UNROLL
        for (int i = 0; i < 4; ++i) of[i / 2] += __shfl_xor_sync(0xFFFFFFFFU, of[i / 2], i % 2 + 1);
#endif
    }
    template <typename Element, typename F>
    REHEARSE_BOTH void multiply(F f) {
#ifdef __CUDA_ARCH__
        multiply_fragments<Element>(f(registers));
#endif
    }

    REHEARSE_BOTH void copy(Vector& to, const Vector* from, bool there) {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         static_cast<std::uint32_t>(__cvta_generic_to_shared(&to))),
                     "l"(from), "r"(there ? 16 : 0)
                     : "memory");
#endif
    }
    REHEARSE_BOTH void commit() {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
    }
    template <int left, bool groups>
    REHEARSE_BOTH void wait() {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
        // What threads have written, wgmma reads as another party.
        if constexpr (groups) {
#if __CUDA_ARCH__ >= 900
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        }
        __syncthreads();
#endif
    }
    template <typename F>
    REHEARSE_BOTH void load_matrices(F f) {
#if __CUDA_ARCH__ >= 750
        const MatrixRow at = f(static_cast<int>(threadIdx.x), registers);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(at.to[0]), "=r"(at.to[1]), "=r"(at.to[2]), "=r"(at.to[3])
                     : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(at.row)))
                     : "memory");
#endif
    }
    template <typename F>
    REHEARSE_BOTH void load_transposed(F f) {
#if __CUDA_ARCH__ >= 750
        const MatrixRow at = f(static_cast<int>(threadIdx.x), registers);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(at.to[0]), "=r"(at.to[1]), "=r"(at.to[2]), "=r"(at.to[3])
                     : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(at.row)))
                     : "memory");
#endif
    }
    template <typename Element, typename F>
    REHEARSE_BOTH void multiply_groups(F f) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        const GroupFactors of = f(static_cast<int>(threadIdx.x), registers);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        REHEARSE_UNROLL
        for (int k = 0; k < 4; ++k) multiply_group<Element>(of.c, described(of.a, 32 * k), described(of.b, 32 * k));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#elif defined(__CUDA_ARCH__)
        __trap();  // warpgroup_refusal() keeps it away
#endif
    }
    template <int left, typename F>
    REHEARSE_BOTH void products(F f) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
        if constexpr (left == 0) {  // the compiler is not to read sums before they are there
            float(&c)[64] = f(registers);
            REHEARSE_UNROLL
            for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(c[i])::"memory");
        }
        __syncthreads();
#endif
    }
};

// Blocks that a multiprocessor is to hold at least, where a task says so: without, ptxas spills a few registers where
// it could hold more of them.
template <typename Task>
consteval int least_blocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    constexpr int most = 1024 / Task::threads;  // all that these hold
#else
    constexpr int most = 2048 / Task::threads;
#endif
    if constexpr (requires { Task::resident; }) return Task::resident < most ? Task::resident : most;
    return 0;
}

template <typename Task>
__global__ void __launch_bounds__(Task::threads, least_blocks<Task>()) run_task(const Task task) {
    __shared__ typename Task::Shared shared;
    DeviceTeam<Task> team{shared, {}};
    task.run(team, Block{blockIdx.x, blockIdx.y, blockIdx.z});
}

inline dim3 grid_of(const Blocks& blocks) {
    return {static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y), static_cast<unsigned>(blocks.z)};
}

template <typename Task>
void launch(const Task& task, cudaStream_t stream) {
    const Blocks blocks = task.blocks();
    if (blocks.x * blocks.y * blocks.z == 0) return;
    run_task<<<grid_of(blocks), Task::threads, 0, stream>>>(task);
    check(cudaGetLastError(), "a kernel's launch");
}

// With more shared memory than a kernel can declare, from a whole 1024 bytes on. `bytes` of it stand in the kernel's
// name for scripts/kernel_resources.py, which ptxas does not tell what a launch asks for.
template <typename Task>
constexpr int large_bytes = sizeof(typename Task::Shared) + 1024;
template <typename Task, int bytes>
__global__ void __launch_bounds__(Task::threads, least_blocks<Task>()) run_large_task(const Task task) {
    extern __shared__ std::uint8_t room[];
    const auto begin = reinterpret_cast<std::uintptr_t>(room);
    auto& shared = *reinterpret_cast<typename Task::Shared*>(room + (1024 - begin % 1024) % 1024);
    DeviceTeam<Task> team{shared, {}};
    task.run(team, Block{blockIdx.x, blockIdx.y, blockIdx.z});
}

template <typename Task>
void launch_large(const Task& task, cudaStream_t stream) {
    const Blocks blocks = task.blocks();
    if (blocks.x * blocks.y * blocks.z == 0) return;
    constexpr int bytes = large_bytes<Task>;
    static const cudaError_t allowed =
        cudaFuncSetAttribute(run_large_task<Task, bytes>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    check(allowed, "a kernel's shared memory");
    run_large_task<Task, bytes><<<grid_of(blocks), Task::threads, bytes, stream>>>(task);
    check(cudaGetLastError(), "a kernel's launch");
}

}  // namespace rehearse::kernels::cuda
