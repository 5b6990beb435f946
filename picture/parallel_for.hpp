// SPDX-License-Identifier: Apache-2.0
// Work that many parts of have nothing to do with each other: rows of pixels, lanes of events.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rehearse::picture {

/// Calls `work(i)` for each number below `count`, on up to four cores; what one of them throws is thrown again.
template <typename Work>
void parallel_for(std::size_t count, Work work) {
    const std::size_t threads = std::min<std::size_t>({std::max(std::thread::hardware_concurrency(), 1U), 4, count});
    std::atomic<std::size_t> next{0};
    std::exception_ptr problem;
    std::mutex mutex;
    const auto turn = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
            const std::lock_guard lock(mutex);
            problem = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < threads; ++i) others.emplace_back(turn);
        turn();
    }
    if (problem) std::rethrow_exception(problem);
}

}  // namespace rehearse::picture
