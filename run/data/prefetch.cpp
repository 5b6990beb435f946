// SPDX-License-Identifier: Apache-2.0
#include "run/data/prefetch.hpp"

#include <utility>

namespace rehearse::run {

Prefetch::Prefetch(int first, int end, Batch sizes, std::function<void(int step, Batch& batch)> fill)
    : fill_(std::move(fill)), made_(sizes), taken_(std::move(sizes)), thread_([=, this] { work(first, end); }) {}

Prefetch::~Prefetch() {
    {
        const std::lock_guard lock{mutex_};
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

const Batch& Prefetch::next() {
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
