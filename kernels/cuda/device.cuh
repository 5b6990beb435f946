// SPDX-License-Identifier: Apache-2.0
// A team on the GPU: one thread's view of its block.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/tile.hpp"

namespace rehearse::kernels::cuda {

// c += a b of a warp; m16n8k8 with .tf32, m16n8k16 with 16-bit types, which before sm_80 is two of m16n8k8.
template <typename Element>
__device__ inline void multiply_fragments(const Fragments& f) {
#define REHEARSE_MMA(shape_and_types)                                                                     \
    asm volatile("mma.sync.aligned." shape_and_types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(f.c[0]), "+f"(f.c[1]), "+f"(f.c[2]), "+f"(f.c[3])                                 \
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
    template <typename Element, typename F>
    REHEARSE_BOTH void multiply(F f) {
#ifdef __CUDA_ARCH__
        multiply_fragments<Element>(f(registers));
#endif
    }
};

template <typename Task>
__global__ void __launch_bounds__(Task::threads) run_task(const Task task) {
    __shared__ typename Task::Shared shared;
    DeviceTeam<Task> team{shared, {}};
    task.run(team, Block{blockIdx.x, blockIdx.y, blockIdx.z});
}

template <typename Task>
void launch(const Task& task, cudaStream_t stream) {
    const Blocks blocks = task.blocks();
    if (blocks.x * blocks.y * blocks.z == 0) return;
    run_task<<<dim3(static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y), static_cast<unsigned>(blocks.z)),
               Task::threads, 0, stream>>>(task);
    check(cudaGetLastError(), "a kernel's launch");
}

}  // namespace rehearse::kernels::cuda
