// SPDX-License-Identifier: Apache-2.0
// A GPU's part played by the host, every block after the other. Memory starts as NaN, so that what a kernel reads
// before it was written shows.
#pragma once

#include <complex>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>
#include <vector>

#include "kernels/cuda/engine.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/device.hpp"
#include "tests/kernels/cuda_host_team.hpp"

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
    void run(const PackedTask& task) override {
        start([task] { run_any(task); });
    }
    void run(const PointTask& task) override {
        start([task] { run_any(static_cast<const AnyPoint&>(task)); });
    }
    std::string fft_refusal() const override { return {}; }
    void transform(const PlaneBatch& batch, const float* planes, float* spectra) override {
        start([=] { transform_now(batch, planes, spectra); });
    }
    void transform_back(const PlaneBatch& batch, float* spectra, float* planes) override {
        start([=] { transform_back_now(batch, spectra, planes); });
    }
    double seconds(const std::function<void()>& work) override {
        work();
        return 0;  // a host has no clock of a GPU's
    }
    std::string identity() const override { return "host"; }
    std::string group_refusal() const override { return "the host plays one GPU"; }
    std::vector<std::byte> group_name() override { return {}; }
    std::unique_ptr<DeviceGroup> join(std::span<const std::byte> /*name*/, std::int64_t /*rank*/,
                                      std::int64_t /*size*/) override {
        return nullptr;
    }
    std::size_t cache() const override { return 0; }
    void finish() override {}

protected:
    virtual void start(const std::function<void()>& task) { task(); }

private:
    using Complex = std::complex<double>;
    // Roots of unity: roots[k] is the k-th.
    struct Roots {
        std::vector<Complex> roots;
        explicit Roots(std::int64_t count) {
            const double step = 2 * std::numbers::pi / static_cast<double>(count);
            for (std::int64_t k = 0; k < count; ++k) roots.push_back(std::polar(1.0, step * static_cast<double>(k)));
        }
        const Complex& operator()(std::int64_t k) const { return roots[static_cast<std::size_t>(k) % roots.size()]; }
    };
    // As the transform is defined, rows and then columns.
    static void transform_now(const PlaneBatch& b, const float* planes, float* spectra) {
        const std::int64_t half = b.width / 2 + 1;
        const Roots across(b.width), down(b.height);
        for (std::int64_t plane = 0; plane < b.count; ++plane, planes += b.height * b.width) {
            std::vector<Complex> rows(static_cast<std::size_t>(b.height * half));
            for (std::int64_t i = 0; i < b.height * half; ++i) {
                for (std::int64_t x = 0; x < b.width; ++x) {
                    rows[i] += static_cast<double>(planes[i / half * b.width + x]) * std::conj(across(i % half * x));
                }
            }
            for (std::int64_t i = 0; i < b.height * half; ++i, spectra += 2) {
                Complex sum = 0;
                for (std::int64_t y = 0; y < b.height; ++y) {
                    sum += rows[y * half + i % half] * std::conj(down(i / half * y));
                }
                spectra[0] = static_cast<float>(sum.real()), spectra[1] = static_cast<float>(sum.imag());
            }
        }
    }
    static void transform_back_now(const PlaneBatch& b, float* spectra, float* planes) {
        const std::int64_t half = b.width / 2 + 1;
        const Roots across(b.width), down(b.height);
        for (std::int64_t plane = 0; plane < b.count; ++plane, planes += b.height * b.width) {
            std::vector<Complex> columns(static_cast<std::size_t>(b.height * half));
            for (std::int64_t i = 0; i < b.height * half; ++i) {
                for (std::int64_t v = 0; v < b.height; ++v) {
                    const float* const from = spectra + 2 * (v * half + i % half);
                    columns[i] += Complex{from[0], from[1]} * down(i / half * v);
                }
            }
            for (std::int64_t i = 0; i < b.height * b.width; ++i) {
                double sum = 0;  // the other half of the frequencies are these, conjugated
                for (std::int64_t u = 0; u < half; ++u) {
                    const bool alone = u == 0 || 2 * u == b.width;
                    sum += (alone ? 1 : 2) * (columns[i / b.width * half + u] * across(u * (i % b.width))).real();
                }
                planes[i] = static_cast<float>(sum);
            }
            poison(spectra, static_cast<std::size_t>(2 * b.height * half) * sizeof(float));
            spectra += 2 * b.height * half;
        }
    }
    static void poison(void* memory, std::size_t bytes) { std::memset(memory, 0xFF, bytes); }
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
        const std::lock_guard lock{mutex_};
        event = std::make_shared<Place>(Place{stream_, streams_[stream_].given});
    }
    void wait(const Event& event) override {
        const std::lock_guard lock{mutex_};
        const auto& [stream, number] = *static_cast<const Place*>(event.get());
        run_until(streams_[stream], number);
    }
    double seconds(const Event& from, const Event& to) override {  // a task takes a microsecond
        return 1e-6 * static_cast<double>(static_cast<const Place*>(to.get())->number -
                                          static_cast<const Place*>(from.get())->number);
    }
    // The last stream first: what should have waited for another one has not.
    void finish() override {
        const std::lock_guard lock{mutex_};
        for (auto each = streams_.rbegin(); each != streams_.rend(); ++each) {
            run_until(each->second, std::numeric_limits<std::size_t>::max());
        }
    }
    void use_stream(int index) override { stream_ = index; }
    void* stream() override { return &streams_[stream_]; }

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
