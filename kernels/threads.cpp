// SPDX-License-Identifier: Apache-2.0
#include "kernels/threads.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.hpp"
#if REHEARSE_HAS_OPENMP
#include <omp.h>
#endif

namespace rehearse::kernels {

int choose_threads() {
#if REHEARSE_HAS_OPENMP
    if (const char* const set = std::getenv("OMP_NUM_THREADS")) {
        // LLVM's OpenMP ends the process when it is asked and has no memory for as many.
        const long long wanted = std::strtoll(set, nullptr, 10);
        const long long threads = wanted > most_threads ? wanted : omp_get_max_threads();
        if (threads <= most_threads) return static_cast<int>(threads);
        throw InputError(
            fmt::format("OMP_NUM_THREADS: asks for {} threads of a rank; at most {}", threads, most_threads));
    }
    omp_set_num_threads(1);
#endif
    return 1;
}

int threads_now() {
#if REHEARSE_HAS_OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

namespace {

void set_threads([[maybe_unused]] int threads) {
#if REHEARSE_HAS_OPENMP
    omp_set_num_threads(threads);
#endif
}

}  // namespace

ThreadsOfThis::ThreadsOfThis(int threads) : before_(threads_now()) { set_threads(threads); }

ThreadsOfThis::~ThreadsOfThis() { set_threads(before_); }

}  // namespace rehearse::kernels
