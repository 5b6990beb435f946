// SPDX-License-Identifier: Apache-2.0
// How fast one core stacks samples into a batch: 128 of 3 x 224 x 224 numbers, of 1024, into a mapping that is new for
// each batch, as an allocator gives it above 32 MiB. g++ -O2 -std=c++20 scripts/stack_rate.cpp -o stack_rate &&
// ./stack_rate What it prints with 2 MiB pages is predict's --loader inline:stack=RATE (docs/input.md).
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr std::size_t sample = 3UL * 224 * 224 * sizeof(float), samples = 1024, batch = 128, rounds = 15;

double seconds(auto&& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void report(const char* what, std::vector<double> times) {
    std::ranges::sort(times);
    const double median = times[rounds / 2];
    std::printf("%-28s %6.2f ms (%.2f to %.2f)  %5.2f GBps\n", what, 1e3 * median, 1e3 * times.front(),
                1e3 * times.back(), sample * batch / median / 1e9);
}

}  // namespace

int main() {
    const std::vector<char> data(sample * samples, 1);
    std::mt19937 random{1};
    for (const bool huge : {false, true}) {
        std::vector<double> fresh, again;
        for (std::size_t round = 0; round < rounds; ++round) {
            void* to = nullptr;
            const auto stack = [&] {
                for (std::size_t i = 0; i < batch; ++i) {
                    std::memcpy(static_cast<char*>(to) + i * sample, &data[random() % samples * sample], sample);
                }
            };
            fresh.push_back(seconds([&] {
                to = mmap(nullptr, sample * batch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (to == MAP_FAILED) return;
                madvise(to, sample * batch, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
                stack();
            }));
            if (to == MAP_FAILED) return 1;
            again.push_back(seconds(stack));
            munmap(to, sample * batch);
        }
        report(huge ? "new, pages of 2 MiB" : "new, pages of 4 KiB", fresh);
        report("the same memory again", again);
    }
    return 0;
}
