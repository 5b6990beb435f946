// SPDX-License-Identifier: Apache-2.0
#include "kernels/memory.hpp"

#include <algorithm>
#include <cstdint>
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

std::shared_ptr<std::byte> allocate_zeros(std::size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= smallest_huge) {
        const std::size_t taken = whole(bytes, huge_page) + huge_page;  // a huge page more: to begin at one
        void* const all = ::mmap(nullptr, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) throw std::bad_alloc();  // NOLINT: the macro is an integer that is cast
        const std::shared_ptr<std::byte> owner(static_cast<std::byte*>(all),
                                               [taken](std::byte* memory) { ::munmap(memory, taken); });
        const std::size_t off = reinterpret_cast<std::uintptr_t>(all) % huge_page;
        std::byte* const first = owner.get() + (off == 0 ? 0 : huge_page - off);
        ::madvise(first, whole(bytes, huge_page), MADV_HUGEPAGE);
        return {owner, first};
    }
#endif
    std::shared_ptr<std::byte> memory = allocate_host(bytes);
    std::fill_n(memory.get(), bytes, std::byte{0});
    return memory;
}

}  // namespace rehearse::kernels
