// SPDX-License-Identifier: Apache-2.0
// Samples of the next step are made or read while this one is computed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rehearse::run {

/// What a rank's program reads in one step.
struct Batch {
    std::vector<float> input;
    std::vector<std::int32_t> ids, labels;
};

class Prefetch {
public:
    /// Steps [first, end), each filled by `fill` on a thread of its own, one step ahead.
    Prefetch(int first, int end, Batch sizes, std::function<void(int step, Batch& batch)> fill);
    ~Prefetch();
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;

    /// The next step's, in turn: waits for it, and gives it until the next call. Throws what `fill` threw.
    const Batch& next();

private:
    void work(int first, int end);

    std::function<void(int, Batch&)> fill_;
    Batch made_, taken_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ready_ = false, stop_ = false;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace rehearse::run
