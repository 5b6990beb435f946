// SPDX-License-Identifier: Apache-2.0
// The host's memory for tensors and scratch.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace rehearse::kernels {

struct FreeHost {
    void operator()(void* memory) const noexcept;
};
using HostMemory = std::unique_ptr<std::byte, FreeHost>;

/// At the start of a cache line, neither zeroed nor touched. Where Linux gives huge pages for the asking
/// (/sys/kernel/mm/transparent_hugepage/enabled: always or madvise), 4 MiB and more lie on them: a kernel that goes
/// through a matrix by columns meets another small page at each row, and waits for its address. std::bad_alloc.
HostMemory allocate_host(std::size_t bytes);

/// The same, all zero. 4 MiB and more are taken from the system as they are written to, and go back to it at the end.
std::shared_ptr<std::byte> allocate_zeros(std::size_t bytes);

template <typename T>
struct HostAllocator {
    using value_type = T;
    HostAllocator() = default;
    template <typename Other>
    explicit HostAllocator(const HostAllocator<Other>& /*other*/) {}
    T* allocate(std::size_t count) { return reinterpret_cast<T*>(allocate_host(count * sizeof(T)).release()); }
    void deallocate(T* memory, std::size_t /*count*/) noexcept { FreeHost{}(memory); }
    bool operator==(const HostAllocator& /*other*/) const { return true; }
};

template <typename T>
using HostVector = std::vector<T, HostAllocator<T>>;

}  // namespace rehearse::kernels
