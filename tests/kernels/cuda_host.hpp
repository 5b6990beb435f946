// SPDX-License-Identifier: Apache-2.0
// A GPU's part played by the host, every block after the other. Memory starts as NaN, so that what a kernel reads
// before it was written shows. The kernels themselves are compiled once for all tests, in cuda_host.cpp.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "kernels/cuda/engine.hpp"
#include "kernels/device.hpp"

namespace rehearse::kernels::cuda {

class HostEngine : public Engine {
public:
    explicit HostEngine(int processors = 1) : processors_(processors) {}
    std::string refusal() const override { return {}; }
    std::string version() const override { return "host"; }
    int processors() const override { return processors_; }
    int capability() const override { return 90; }
    std::string warpgroup_refusal() const override { return {}; }
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
    void begin_capture() override { kept_ = std::make_shared<Kept>(); }
    void end_capture(TaskGraph& graph) override {
        graph = std::exchange(kept_, nullptr);
        ++captures;
    }
    void replay(const TaskGraph& graph) override {
        ++replays;
        for (const auto& each : static_cast<const Kept*>(graph.get())->all) each();
    }
    int captures = 0, replays = 0;
    void run(const ImplicitGemmTask& task) override;
    void run(const WeightsTask& task) override;
    void run(const LoopTask& task) override;
    void run(const WinogradTask& task) override;
    void run(const PackedTask& task) override;
    void run(const PointTask& task) override;
    void run(const FlashTask& task) override;
    std::string fft_refusal() const override { return {}; }
    void transform(const PlaneBatch& batch, const float* planes, float* spectra) override;
    void transform_back(const PlaneBatch& batch, float* spectra, float* planes) override;
    double seconds(const std::function<void()>& work) override {
        work();
        return 0;  // a host has no clock of a GPU's
    }
    std::string identity() const override { return "host"; }
    Clocks clocks() const override { return {.refusal = "the host has no clocks of a GPU's"}; }
    std::string group_refusal() const override { return "the host plays one GPU"; }
    std::vector<std::byte> group_name() override { return {}; }
    std::unique_ptr<DeviceGroup> join(std::span<const std::byte> /*name*/, std::int64_t /*rank*/,
                                      std::int64_t /*size*/) override {
        return nullptr;
    }
    std::size_t cache() const override { return 0; }
    void finish() override {}

protected:
    struct Kept {
        std::vector<std::function<void()>> all;  // what each does when it is given at last
    };
    bool keep(const std::function<void()>& each) {
        if (kept_ != nullptr) kept_->all.push_back(each);
        return kept_ != nullptr;
    }
    void refuse_while_kept(const char* what) const {
        if (kept_ != nullptr) throw BackendError(std::string{what} + " while a graph is made");
    }
    virtual void start(const std::function<void()>& task) {
        if (!keep(task)) task();
    }

private:
    std::shared_ptr<Kept> kept_;
    int processors_;  // few: large tiles; many: small ones, and sums in many parts
};

/// As late as a GPU may be: nothing is computed before somebody waits for it. Who looks too early sees what was there
/// before.
class LateHostEngine : public HostEngine {
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
        if (const auto recorded = std::make_shared<Place>(); keep([this, recorded] {
                *recorded = {stream_, streams_[stream_].given};
            })) {
            event = recorded;
            return;
        }
        const std::lock_guard lock{mutex_};
        event = std::make_shared<Place>(Place{stream_, streams_[stream_].given});
    }
    void wait(const Event& event) override {
        const std::lock_guard lock{mutex_};
        const auto& [stream, number] = *static_cast<const Place*>(event.get());
        run_until(streams_[stream], number);
    }
    using HostEngine::seconds;
    double seconds(const Event& from, const Event& to) override {  // a task takes a microsecond
        return 1e-6 * static_cast<double>(static_cast<const Place*>(to.get())->number -
                                          static_cast<const Place*>(from.get())->number);
    }
    // The last stream first: what should have waited for another one has not.
    void finish() override {
        refuse_while_kept("a wait for everything");
        const std::lock_guard lock{mutex_};
        for (auto each = streams_.rbegin(); each != streams_.rend(); ++each) {
            run_until(each->second, std::numeric_limits<std::size_t>::max());
        }
    }
    void use_stream(int index) override { stream_ = index; }
    void* stream() override { return &streams_[stream_]; }
    int alone = 0;  // tasks, those of graphs included

private:
    struct Place {
        int stream = 0;
        std::size_t number = 0;
    };
    struct Stream {
        std::deque<std::function<void()>> tasks{};
        std::size_t given = 0, done = 0;
    };
    void start(const std::function<void()>& task) override {
        if (keep([this, task] { start(task); })) return;
        ++alone;
        const std::lock_guard lock{mutex_};
        streams_[stream_].tasks.push_back(task);
        ++streams_[stream_].given;
    }
    static void run_until(Stream& stream, std::size_t number) {
        for (; stream.done < stream.given && stream.done < number; ++stream.done) {
            stream.tasks.front()();
            stream.tasks.pop_front();
        }
    }

    std::mutex mutex_;
    std::map<int, Stream> streams_;
    int stream_ = 0;
};

}  // namespace rehearse::kernels::cuda
