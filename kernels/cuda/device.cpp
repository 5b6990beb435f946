// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/delegate.hpp"

namespace rehearse::kernels::cuda {
namespace {

class HostedKernel final : public Kernel {
public:
    HostedKernel(std::unique_ptr<Kernel> kernel, Engine& engine) : kernel_(std::move(kernel)), engine_(engine) {}
    Bytes scratch() const override { return kernel_->scratch(); }
    void run(const Buffers& buffers) override {
        engine_.finish();
        kernel_->run(buffers);
    }

private:
    std::unique_ptr<Kernel> kernel_;
    Engine& engine_;
};

class Hosted final : public Delegate {
public:
    Hosted(const Backend& host, Engine& engine) : Delegate(host), engine_(engine) {}
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        return prepare_within(problem, any_scratch);
    }
    std::unique_ptr<Kernel> prepare_within(const Problem& problem, Bytes limit) const override {
        return std::make_unique<HostedKernel>(backend_.prepare_within(problem, limit), engine_);
    }

private:
    Engine& engine_;
};

/// Large: as Device.
class EngineDevice final : public Device {
public:
    EngineDevice(Engine& engine, std::vector<const Backend*> own, const std::vector<const Backend*>& hosts,
                 std::vector<const Backend*> besides)
        : engine_(engine), backends_(std::move(own)), besides_(std::move(besides)), own_(backends_.size()) {
        for (const Backend* host : hosts) {
            hosted_.push_back(std::make_unique<Hosted>(*host, engine));
            backends_.push_back(hosted_.back().get());
        }
    }
    std::string_view name() const override { return "cuda"; }
    std::string refusal() const override { return engine_.refusal(); }
    std::string description() const override { return engine_.version(); }
    std::size_t available() const override { return engine_.available(); }
    std::span<const Backend* const> backends() const override { return backends_; }
    bool owns(const Backend& backend) const override {
        const auto end = backends_.begin() + static_cast<std::ptrdiff_t>(own_);
        return std::find(backends_.begin(), end, &backend) != end ||
               std::find(besides_.begin(), besides_.end(), &backend) != besides_.end();
    }

    Memory allocate(std::size_t bytes) override {
        require_room(bytes);
        const std::int64_t floats = divide_up(static_cast<std::int64_t>(bytes), sizeof(float));
        Memory memory =
            engine_.allocate_shared(static_cast<std::size_t>(std::max<std::int64_t>(floats, 1)) * sizeof(float));
        Zero zero;  // by the device, so that the memory is where it will be used
        zero.count = floats, zero.to = {memory.get(), DataType::f32};
        engine_.run(PointTask{zero});
        engine_.finish();
        return memory;
    }
    Memory allocate_own(std::size_t bytes) override {
        require_room(bytes);
        return engine_.allocate(std::max<std::size_t>(bytes, 1));
    }
    Memory allocate_staging(std::size_t bytes) override {
        return engine_.allocate_pinned(std::max<std::size_t>(bytes, 1));
    }
    void copy_beside(void* to, const void* from, std::size_t bytes) override { engine_.copy_beside(to, from, bytes); }

    void add(View sum, ConstView part) override {
        AddTensors task;
        task.count = count_of(part), task.inputs = 2;
        task.src[0] = task.dst = values(sum), task.src[1] = values(part);
        engine_.run(PointTask{task});
    }
    void scale(ConstView from, View to, float factor) override {
        CopyRuns task;
        task.count = task.length = count_of(from);
        task.from = values(from), task.to = values(to), task.factor = factor;
        engine_.run(PointTask{task});
    }
    bool all_finite(ConstView numbers) override {
        constexpr std::int64_t rows = 256;
        if (found_ == nullptr) found_ = engine_.allocate(rows * sizeof(float));
        auto* const found = reinterpret_cast<float*>(found_.get());
        Unfinite task;
        task.rows = rows, task.values = values(numbers), task.count = count_of(numbers), task.found = found;
        engine_.run(PointTask{task});
        std::array<float, rows> here{};
        engine_.copy_out(here.data(), found, sizeof here);
        return std::ranges::all_of(here, [](float bad) { return bad == 0; });
    }

    void use_stream(int index) override { engine_.use_stream(index); }
    void record(Event& event) override { engine_.record(event); }
    void wait(const Event& event) override { engine_.wait(event); }
    double seconds(const Event& from, const Event& to) override { return engine_.seconds(from, to); }
    void finish() override { engine_.finish(); }
    void begin_capture() override { engine_.begin_capture(); }
    void end_capture(Graph& graph) override { engine_.end_capture(graph); }
    void replay(const Graph& graph) override { engine_.replay(graph); }

    Clocks clocks() const override { return engine_.clocks(); }
    std::string identity() const override { return engine_.identity(); }
    std::string group_refusal() const override { return engine_.group_refusal(); }
    std::vector<std::byte> group_name() override { return engine_.group_name(); }
    std::unique_ptr<DeviceGroup> join(std::span<const std::byte> name, std::int64_t rank, std::int64_t size) override {
        return engine_.join(name, rank, size);
    }

private:
    void require_room(std::size_t bytes) const {
        if (bytes <= engine_.available()) return;
        throw InfeasibleError(fmt::format(
            "this rank needs {} for weights and activations on the GPU, which has {} left: use a smaller batch",
            to_string(Bytes{static_cast<double>(bytes)}), to_string(Bytes{static_cast<double>(engine_.available())})));
    }

    Engine& engine_;
    std::vector<std::unique_ptr<Backend>> hosted_;
    std::vector<const Backend*> backends_, besides_;
    std::size_t own_;  // the first so many
    Memory found_;
};

}  // namespace

std::unique_ptr<Device> device(Engine& engine, std::vector<const Backend*> own, std::vector<const Backend*> hosts,
                               std::vector<const Backend*> besides) {
    return std::make_unique<EngineDevice>(engine, std::move(own), hosts, std::move(besides));
}

}  // namespace rehearse::kernels::cuda
