// SPDX-License-Identifier: Apache-2.0
#include "kernels/threads.hpp"

#include <cstdlib>
#if REHEARSE_HAS_OPENMP
#include <omp.h>
#endif

namespace rehearse::kernels {

int choose_threads() {
#if REHEARSE_HAS_OPENMP
    if (std::getenv("OMP_NUM_THREADS") != nullptr) return omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    return 1;
}

}  // namespace rehearse::kernels
