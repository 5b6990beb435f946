// SPDX-License-Identifier: Apache-2.0
// Samples of the next step are made or read while this one is computed.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace rehearse::run {

/// What a program reads in one step.
struct Batch {
    std::vector<float> input;
    std::vector<std::int32_t> ids, labels;
};

/// The same in somebody else's memory.
struct ReadBatch {
    std::span<float> input{};
    std::span<std::int32_t> ids{}, labels{};
};

class Prefetch {
public:
    /// Steps [first, end), each filled by `fill` on a thread of its own, one step ahead, into one of two in turn.
    Prefetch(int first, int end, const std::array<ReadBatch, 2>& batches,
             std::function<void(int step, ReadBatch& batch)> fill);
    ~Prefetch();
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;

    /// The next step's, in turn: waits for it, and gives it until the next call. Throws what `fill` threw.
    const ReadBatch& next();

private:
    void work(int first, int end);

    std::function<void(int, ReadBatch&)> fill_;
    ReadBatch made_, taken_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ready_ = false, stop_ = false;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace rehearse::run
