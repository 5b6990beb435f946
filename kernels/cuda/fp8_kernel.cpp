// SPDX-License-Identifier: Apache-2.0
// A matrix in 8 bits, behind the search for what scales it.
#include <algorithm>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/points.hpp"

namespace rehearse::kernels::cuda {

void run_to_fp8(Engine& engine, ToFp8 task, float* room) {
    LargestMagnitude most;
    most.values = task.from, most.count = task.lines * task.length, most.found = room;
    constexpr std::int64_t of_block = 8 * LargestMagnitude::threads;
    most.rows = std::clamp<std::int64_t>(divide_up(most.count, of_block), 1, fp8_parts);
    engine.run(PointTask{most});
    task.magnitudes = room, task.parts = most.rows;
    engine.run(PointTask{task});
}

}  // namespace rehearse::kernels::cuda
