// SPDX-License-Identifier: Apache-2.0
// Threads that do the same work at the same time, so that what they share is shared while it is timed.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace rehearse::bench {

class ThreadTeam {
public:
    /// The caller is one of them.
    explicit ThreadTeam(int threads);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int threads() const { return static_cast<int>(others_.size()) + 1; }
    /// Calls work(0), work(1), ... each on its own thread, and returns when all have returned. They must not throw.
    void run(const std::function<void(int)>& work);

private:
    const std::function<void(int)>* work_ = nullptr;  // null: the end
    std::barrier<> meeting_;
    std::vector<std::jthread> others_;
};

}  // namespace rehearse::bench
