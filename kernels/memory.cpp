// SPDX-License-Identifier: Apache-2.0
#include "kernels/memory.hpp"

#include <cstdlib>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rehearse::kernels {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t huge_page = 2 << 20;
constexpr std::size_t smallest_huge = 2 * huge_page;  // at most half as much again is taken as was asked for

std::size_t whole(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void FreeHost::operator()(void* memory) const noexcept { std::free(memory); }  // NOLINT: of aligned_alloc

HostMemory allocate_host(std::size_t bytes) {
    const std::size_t unit = bytes < smallest_huge ? line : huge_page;
    const std::size_t taken = whole(bytes == 0 ? 1 : bytes, unit);
    void* const memory = taken < bytes ? nullptr : std::aligned_alloc(unit, taken);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (unit == huge_page) ::madvise(memory, taken, MADV_HUGEPAGE);  // a wish: small pages do, too
#endif
    return HostMemory(static_cast<std::byte*>(memory));
}

}  // namespace rehearse::kernels
