// SPDX-License-Identifier: Apache-2.0
#include "bench/thread_team.hpp"

namespace rehearse::bench {

ThreadTeam::ThreadTeam(int threads) : meeting_(threads) {
    for (int i = 1; i < threads; ++i) {
        others_.emplace_back([this, i] {
            for (;;) {
                meeting_.arrive_and_wait();
                if (work_ == nullptr) return;
                (*work_)(i);
                meeting_.arrive_and_wait();
            }
        });
    }
}

ThreadTeam::~ThreadTeam() {
    work_ = nullptr;
    meeting_.arrive_and_wait();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
    work_ = &work;
    meeting_.arrive_and_wait();
    work(0);
    meeting_.arrive_and_wait();
}

}  // namespace rehearse::bench
