// SPDX-License-Identifier: Apache-2.0
#include "run/threads.hpp"

#include <sched.h>
#if REHEARSE_HAS_OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace rehearse::run {

namespace {

constexpr std::size_t word_bits = 32;  // a word is a whole number that a double holds exactly

CoreMask own_mask() {
    cpu_set_t set;
    CPU_ZERO(&set);
    CoreMask mask(CPU_SETSIZE / word_bits);
    if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);  // more cores than a set holds: take one
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) mask[cpu / word_bits] |= std::uint32_t{1} << cpu % word_bits;
    }
    return mask;
}

std::vector<CoreMask> masks_of(const kernels::Communicator& node) {
    const CoreMask own = own_mask();
    const std::vector<double> all = node.all_gather(std::vector<double>(own.begin(), own.end()));
    std::vector<CoreMask> masks;
    for (std::size_t begin = 0; begin < all.size(); begin += own.size()) {
        CoreMask mask(own.size());
        std::transform(all.begin() + static_cast<std::ptrdiff_t>(begin),
                       all.begin() + static_cast<std::ptrdiff_t>(begin + own.size()), mask.begin(),
                       [](double word) { return static_cast<std::uint32_t>(word); });
        masks.push_back(std::move(mask));
    }
    return masks;
}

bool overlap(const CoreMask& a, const CoreMask& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if ((a[i] & b[i]) != 0) return true;
    }
    return false;
}

}  // namespace

std::int64_t fair_share(std::span<const CoreMask> masks, std::size_t rank) {
    std::int64_t cores = 0;
    for (const std::uint32_t word : masks[rank]) cores += std::popcount(word);
    const auto sharing = std::ranges::count_if(masks, [&](const CoreMask& mask) { return overlap(mask, masks[rank]); });
    return std::max<std::int64_t>(1, cores / std::max<std::int64_t>(1, sharing));
}

int choose_threads(const kernels::Communicator& world) {
#if REHEARSE_HAS_OPENMP
    const kernels::Communicator node = world.node();
    double share = static_cast<double>(fair_share(masks_of(node), static_cast<std::size_t>(node.rank())));
    if (std::getenv("OMP_NUM_THREADS") != nullptr) share = omp_get_max_threads();
    const std::vector<double> shares = world.all_gather({&share, 1});
    const int threads = static_cast<int>(*std::ranges::min_element(shares));
    omp_set_num_threads(threads);
    return threads;
#else
    static_cast<void>(masks_of(world.node()));
    return 1;
#endif
}

}  // namespace rehearse::run
