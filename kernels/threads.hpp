// SPDX-License-Identifier: Apache-2.0
// How many threads a rank's kernels use.
#pragma once

namespace rehearse::kernels {

/// Threads of a rank at most: with many more OpenMP's own start overflows the stack.
inline constexpr int most_threads = 1024;

/// One, because a rank is a device, and the device of this-host is a core: what `predict` prices is then what runs.
/// Only OMP_NUM_THREADS gives a rank more. Sets OpenMP's threads of the calling thread and returns how many they are.
/// InputError where OMP_NUM_THREADS asks for more than `most_threads`.
int choose_threads();

/// How many OpenMP threads the calling thread's kernels have; 1 without OpenMP.
int threads_now();

/// While it lives, the calling thread's kernels have `threads`; then as many as before.
class ThreadsOfThis {
public:
    explicit ThreadsOfThis(int threads);
    ~ThreadsOfThis();
    ThreadsOfThis(const ThreadsOfThis&) = delete;
    ThreadsOfThis& operator=(const ThreadsOfThis&) = delete;

private:
    int before_;
};

}  // namespace rehearse::kernels
