// SPDX-License-Identifier: Apache-2.0
#include "run/data/prefetch.hpp"

#include <utility>

namespace rehearse::run {

Prefetch::Prefetch(int first, int end, const std::array<ReadBatch, 2>& batches,
                   std::function<void(int step, ReadBatch& batch)> fill)
    : fill_(std::move(fill)), made_(batches[0]), taken_(batches[1]), thread_([=, this] { work(first, end); }) {}

Prefetch::~Prefetch() {
    {
        const std::lock_guard lock{mutex_};
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

const ReadBatch& Prefetch::next() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return ready_ || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    std::swap(made_, taken_);
    ready_ = false;
    changed_.notify_all();
    return taken_;
}

// `made_` is this thread's until it is ready.
void Prefetch::work(int first, int end) {
    for (int step = first; step < end; ++step) {
        {
            std::unique_lock lock{mutex_};
            changed_.wait(lock, [&] { return !ready_ || stop_; });
            if (stop_) return;
        }
        std::exception_ptr failure;
        try {
            fill_(step, made_);
        } catch (...) {
            failure = std::current_exception();
        }
        {
            const std::lock_guard lock{mutex_};
            ready_ = failure == nullptr;
            failure_ = failure;
        }
        changed_.notify_all();
        if (failure) return;
    }
}

}  // namespace rehearse::run
