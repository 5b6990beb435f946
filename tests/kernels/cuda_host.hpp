// SPDX-License-Identifier: Apache-2.0
// A GPU's part played by the host: every step of a team is taken by one thread after the other, every block after the
// other. Memory, shared memory and registers start as NaN, so that what a kernel reads before it was written shows.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "kernels/cuda/engine.hpp"
#include "kernels/cuda/points.hpp"

namespace rehearse::kernels::cuda {

template <typename Task>
class HostTeam {
public:
    HostTeam() : registers_(Task::threads) {}
    void reset() {
        poison(&shared_, sizeof shared_);
        poison(registers_.data(), registers_.size() * sizeof registers_[0]);
    }
    typename Task::Shared& shared() { return shared_; }

    template <typename F>
    void each(F f) {
        for (int thread = 0; thread < Task::threads; ++thread) f(thread, registers_[thread]);
    }
    template <typename F>
    void alone(F f) {
        each(f);
    }

    /// Collects the fragments of 32 threads into matrices, as tile.hpp says that they lie, and multiplies.
    template <typename Element, typename F>
    void multiply(F f) {
        for (int first = 0; first < Task::threads; first += 32) {
            std::array<std::array<std::uint32_t, 8>, 16> a;
            std::array<std::array<std::uint32_t, 8>, 8> b;  // [column][word]
            for (int lane = 0; lane < 32; ++lane) {
                const Fragments mine = f(registers_[first + lane]);
                const int group = lane / 4, word = lane % 4;
                a[group][word] = mine.a[0];
                a[group + 8][word] = mine.a[1];
                a[group][word + 4] = mine.a[2];
                a[group + 8][word + 4] = mine.a[3];
                b[group][word] = mine.b[0];
                b[group][word + 4] = mine.b[1];
            }
            for (int lane = 0; lane < 32; ++lane) {
                const Fragments mine = f(registers_[first + lane]);
                const int group = lane / 4, pair = lane % 4 * 2;
                for (int e = 0; e < 4; ++e) mine.c[e] += product<Element>(a[group + e / 2 * 8], b[pair + e % 2]);
            }
        }
    }

private:
    using Words = std::array<std::uint32_t, 8>;
    template <typename Element>
    static float product(const Words& a, const Words& b) {
        float sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if constexpr (sizeof(Element) == sizeof(float)) {
                sum += std::bit_cast<float>(a[i]) * std::bit_cast<float>(b[i]);
            } else {
                for (const int shift : {0, 16}) {
                    const auto half = [&](std::uint32_t word) {
                        return static_cast<float>(Element::of_bits(static_cast<std::uint16_t>(word >> shift)));
                    };
                    sum += half(a[i]) * half(b[i]);
                }
            }
        }
        return sum;
    }
    static void poison(void* memory, std::size_t bytes) { std::memset(memory, 0xFF, bytes); }

    typename Task::Shared shared_;
    std::vector<typename Task::Registers> registers_;
};

class HostEngine : public Engine {
public:
    explicit HostEngine(int processors = 1) : processors_(processors) {}
    std::string refusal() const override { return {}; }
    std::string version() const override { return "host"; }
    int processors() const override { return processors_; }
    int capability() const override { return 80; }
    Memory allocate(std::size_t bytes) override {
        Memory memory{new std::byte[bytes], std::default_delete<std::byte[]>{}};
        std::memset(memory.get(), 0xFF, bytes);
        return memory;
    }
    Memory allocate_shared(std::size_t bytes) override { return allocate(bytes); }
    Memory allocate_pinned(std::size_t bytes) override { return allocate(bytes); }
    std::size_t available() const override { return std::size_t{1} << 40; }
    void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void copy_beside(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void use_stream(int /*index*/) override {}
    void* stream() override { return nullptr; }
    void record(Event& /*event*/) override {}
    double seconds(const Event& /*from*/, const Event& /*to*/) override { return 0; }
    void wait(const Event& /*event*/) override {}
    void run(const SumsTask& task) override {
        start([task] { run_any(task); });
    }
    void run(const WeightsTask& task) override {
        start([task] { run_any(task); });
    }
    void run(const LoopTask& task) override {
        start([task] { run_any(task); });
    }
    void run(const WinogradTask& task) override {
        start([task] { run_any(task); });
    }
    void run(const PointTask& task) override {
        start([task] { run_any(static_cast<const AnyPoint&>(task)); });
    }
    double seconds(const std::function<void()>& work) override {
        work();
        return 0;  // a host has no clock of a GPU's
    }
    std::size_t cache() const override { return 0; }
    void finish() override {}

protected:
    virtual void start(const std::function<void()>& task) { task(); }

private:
    static void run_any(const auto& any) {
        std::visit([](const auto& task) { run_blocks(task); }, any);
    }
    template <typename Task>
    static void run_blocks(const Task& task) {
        const Blocks blocks = task.blocks();
        HostTeam<Task> team;
        for (std::int64_t z = 0; z < blocks.z; ++z) {
            for (std::int64_t y = 0; y < blocks.y; ++y) {
                for (std::int64_t x = 0; x < blocks.x; ++x) {
                    team.reset();
                    task.run(team, Block{x, y, z});
                }
            }
        }
    }

    int processors_;  // few: large tiles; many: small ones, and sums in many parts
};

/// As late as a GPU may be: nothing is computed before somebody waits for it. Who looks too early sees what was there
/// before.
class LateHostEngine final : public HostEngine {
public:
    using HostEngine::HostEngine;
    void copy_in(void* to, const void* from, std::size_t bytes) override {
        finish();
        HostEngine::copy_in(to, from, bytes);
    }
    void copy_out(void* to, const void* from, std::size_t bytes) override {
        finish();
        HostEngine::copy_out(to, from, bytes);
    }
    void record(Event& event) override {
        const std::lock_guard lock{mutex_};
        event = std::make_shared<std::size_t>(given_);
    }
    void wait(const Event& event) override { run_until(*static_cast<const std::size_t*>(event.get())); }
    double seconds(const Event& from, const Event& to) override {  // a task takes a microsecond
        return 1e-6 * static_cast<double>(*static_cast<const std::size_t*>(to.get()) -
                                          *static_cast<const std::size_t*>(from.get()));
    }
    void finish() override { run_until(std::numeric_limits<std::size_t>::max()); }

private:
    void start(const std::function<void()>& task) override {
        const std::lock_guard lock{mutex_};
        tasks_.push_back(task);
        ++given_;
    }
    void run_until(std::size_t number) {
        const std::lock_guard lock{mutex_};
        for (; done_ < given_ && done_ < number; ++done_) {
            tasks_.front()();
            tasks_.pop_front();
        }
    }

    std::mutex mutex_;
    std::deque<std::function<void()>> tasks_;
    std::size_t given_ = 0, done_ = 0;
};

}  // namespace rehearse::kernels::cuda
