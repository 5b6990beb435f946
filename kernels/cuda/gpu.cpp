// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/error.hpp"
#include "kernels/cuda/cufft.hpp"
#include "kernels/cuda/nccl.hpp"
#include "kernels/cuda/nvml.hpp"

namespace rehearse::kernels::cuda {
namespace {

// Which of this host's ranks we are, as Open MPI, MPICH and Slurm say; the first one without them.
int local_rank() {
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
        if (const char* const value = std::getenv(name)) return std::max(0, std::atoi(value));
    }
    return 0;
}

/// Large: as Engine.
class Gpu final : public Engine {
public:
    Gpu() {
        int count = 0;
        const cudaError_t status = cudaGetDeviceCount(&count);
        if (status != cudaSuccess || count == 0) {
            refusal_ =
                fmt::format("no GPU: {}", status == cudaSuccess ? "CUDA finds none" : cudaGetErrorString(status));
            return;
        }
        const int chosen = local_rank() % count;
        check(cudaSetDevice(chosen), "cudaSetDevice");
        check(cudaGetDeviceProperties(&properties_, chosen), "cudaGetDeviceProperties");
        if (capability() < 75) {
            refusal_ = fmt::format("{} has compute capability {}.{}, needed is 7.5", properties_.name,
                                   properties_.major, properties_.minor);
            return;
        }
        use_stream(0);
        check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaEventCreate(&begin_), "cudaEventCreate");
        check(cudaEventCreate(&end_), "cudaEventCreate");
    }

    std::string refusal() const override { return refusal_; }
    std::string version() const override {
        if (!refusal_.empty()) return {};
        int runtime = 0;
        check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
        return fmt::format("{}, sm_{}, CUDA {}.{}", properties_.name, capability(), runtime / 1000,
                           runtime % 1000 / 10);
    }
    int processors() const override { return refusal_.empty() ? properties_.multiProcessorCount : 1; }
    int capability() const override { return 10 * properties_.major + properties_.minor; }
    std::string warpgroup_refusal() const override {
        if (!refusal_.empty()) return refusal_;
        if (capability() != 90) return fmt::format("wgmma is sm_90a's, this is sm_{}", capability());
        return REHEARSE_HAS_SM90A ? "" : "built without 90a among CMAKE_CUDA_ARCHITECTURES";
    }

    Memory allocate(std::size_t bytes) override {
        void* memory = nullptr;
        check(cudaMalloc(&memory, bytes), fmt::format("an allocation of {} bytes", bytes).c_str());
        return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }};
    }
    Memory allocate_shared(std::size_t bytes) override {
        void* memory = nullptr;
        check(cudaMallocManaged(&memory, bytes), fmt::format("an allocation of {} bytes", bytes).c_str());
        return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }};
    }
    Memory allocate_pinned(std::size_t bytes) override {
        void* memory = nullptr;
        check(cudaMallocHost(&memory, bytes), fmt::format("{} bytes of pinned memory", bytes).c_str());
        return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFreeHost(p); }};
    }
    std::size_t available() const override {
        std::size_t free = 0, all = 0;
        check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
        return free;
    }
    void copy_in(void* to, const void* from, std::size_t bytes) override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "a copy to the GPU");
        finish();  // the host's memory is the caller's again
    }
    void copy_out(void* to, const void* from, std::size_t bytes) override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "a copy from the GPU");
        finish();
    }

    void copy_beside(void* to, const void* from, std::size_t bytes) override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, copies_), "a copy beside the kernels");
        check(cudaStreamSynchronize(copies_), "a copy beside the kernels");
    }

    void use_stream(int index) override {
        while (static_cast<int>(streams_.size()) <= index) {
            streams_.push_back(nullptr);
            check(cudaStreamCreateWithFlags(&streams_.back(), cudaStreamNonBlocking), "cudaStreamCreate");
        }
        stream_ = streams_[static_cast<std::size_t>(index)];
    }
    void* stream() override { return stream_; }
    void record(Event& event) override {
        if (event == nullptr) {
            cudaEvent_t made = nullptr;
            check(cudaEventCreate(&made), "cudaEventCreate");
            event = {made, [](void* p) { cudaEventDestroy(static_cast<cudaEvent_t>(p)); }};
        }
        const unsigned flags = capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault;
        check(cudaEventRecordWithFlags(static_cast<cudaEvent_t>(event.get()), stream_, flags), "cudaEventRecord");
    }
    void begin_capture() override {
        // Of this thread alone: another one copies and waits in the meantime.
        check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        capturing_ = true;
    }
    void end_capture(TaskGraph& graph) override {
        capturing_ = false;
        cudaGraph_t made = nullptr;
        check(cudaStreamEndCapture(stream_, &made), "cudaStreamEndCapture");
        const std::shared_ptr<CUgraph_st> owned{made, [](cudaGraph_t p) { cudaGraphDestroy(p); }};
        if (graph != nullptr && renewed(static_cast<cudaGraphExec_t>(graph.get()), made)) return;
        cudaGraphExec_t ready = nullptr;
        check(cudaGraphInstantiateWithFlags(&ready, made, 0), "cudaGraphInstantiate");
        graph = {ready, [](void* p) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(p)); }};
    }
    void replay(const TaskGraph& graph) override {
        check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.get()), stream_), "cudaGraphLaunch");
    }
    double seconds(const Event& from, const Event& to) override {
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(from.get()),
                                   static_cast<cudaEvent_t>(to.get())),
              "cudaEventElapsedTime");
        return 1e-3 * static_cast<double>(milliseconds);
    }
    void wait(const Event& event) override {
        check(cudaEventSynchronize(static_cast<cudaEvent_t>(event.get())), "a kernel");
    }

    void run(const ImplicitGemmTask& task) override { launch_implicit_gemm(task, stream_); }
    void run(const WeightsTask& task) override { launch_weights(task, stream_); }
    void run(const LoopTask& task) override { launch_loops(task, stream_); }
    void run(const WinogradTask& task) override { launch_winograd(task, stream_); }
    void run(const PackedTask& task) override { launch_packed(task, stream_); }
    void run(const PointTask& task) override { launch_points(task, stream_); }
    void run(const FlashTask& task) override { launch_flash(task, stream_); }
    std::string fft_refusal() const override { return refusal_.empty() ? cufft_refusal() : refusal_; }
    void transform(const PlaneBatch& batch, const float* planes, float* spectra) override {
        cufft_forward(batch, planes, spectra, stream_);
    }
    void transform_back(const PlaneBatch& batch, float* spectra, float* planes) override {
        cufft_back(batch, spectra, planes, stream_);
    }
    double seconds(const std::function<void()>& work) override {
        check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
        work();
        check(cudaEventRecord(end_, stream_), "cudaEventRecord");
        check(cudaEventSynchronize(end_), "a kernel");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
        return 1e-3 * static_cast<double>(milliseconds);
    }
    std::string identity() const override {
        return fmt::format("{:04x}:{:02x}:{:02x}", properties_.pciDomainID, properties_.pciBusID,
                           properties_.pciDeviceID);
    }
    Clocks clocks() const override { return refusal_.empty() ? nvml_clocks(identity()) : Clocks{.refusal = refusal_}; }
    std::string group_refusal() const override { return refusal_.empty() ? nccl_refusal() : refusal_; }
    std::vector<std::byte> group_name() override { return nccl_group_name(); }
    std::unique_ptr<DeviceGroup> join(std::span<const std::byte> name, std::int64_t rank, std::int64_t size) override {
        return nccl_join(name, rank, size);
    }
    std::size_t cache() const override { return static_cast<std::size_t>(properties_.l2CacheSize); }
    void finish() override {
        for (cudaStream_t stream : streams_) check(cudaStreamSynchronize(stream), "a kernel");
    }

private:
    // Whether the tasks are those that it has, so that their numbers could be exchanged.
    static bool renewed(cudaGraphExec_t ready, cudaGraph_t made) {
#if CUDART_VERSION >= 12000
        cudaGraphExecUpdateResultInfo result{};
        const cudaError_t status = cudaGraphExecUpdate(ready, made, &result);
#else
        cudaGraphNode_t node = nullptr;
        cudaGraphExecUpdateResult result{};
        const cudaError_t status = cudaGraphExecUpdate(ready, made, &node, &result);
#endif
        if (status == cudaErrorGraphExecUpdateFailure) {
            cudaGetLastError();  // nobody else is to find it
            return false;
        }
        check(status, "cudaGraphExecUpdate");
        return true;
    }

    std::string refusal_;
    bool capturing_ = false;
    cudaDeviceProp properties_{};
    std::vector<cudaStream_t> streams_;
    cudaStream_t stream_ = nullptr, copies_ = nullptr;  // in use; for copies beside the kernels
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) {
        throw BackendError(fmt::format("CUDA failed in {}: {}", what, cudaGetErrorString(status)));
    }
}

// Never destroyed: the driver may be gone before the last of the program's static objects.
Engine& gpu() {
    static Gpu& only = *new Gpu;
    return only;
}

}  // namespace rehearse::kernels::cuda
