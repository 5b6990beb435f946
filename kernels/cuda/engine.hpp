// SPDX-License-Identifier: Apache-2.0
// What runs tasks: a GPU, or for tests a host that takes every thread's part in turn (tests/kernels/cuda_host.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/cuda/implicit_gemm.hpp"
#include "kernels/cuda/packed.hpp"
#include "kernels/cuda/packed_weights.hpp"
#include "kernels/cuda/tile.hpp"
#include "kernels/cuda/weight_gradient.hpp"
#include "kernels/cuda/winograd_weights.hpp"

namespace rehearse::kernels {
struct Clocks;
class DeviceGroup;
}  // namespace rehearse::kernels

namespace rehearse::kernels::cuda {

using LargeFloats = FloatTile<128, 128, 8, 8>;
using SmallFloats = FloatTile<64, 64, 4, 4>;
template <typename Element>
using LargeTensor = TensorTile<Element, 128, 128, 64, 32>;
template <typename Element>
using SmallTensor = TensorTile<Element, 64, 64, 32, 32>;

// A variant a source file: each is compiled by itself.
template <template <typename, typename> typename Form>
using Tiled = std::variant<Form<float, LargeFloats>, Form<float, SmallFloats>, Form<float, LargeTensor<float>>,
                           Form<float, SmallTensor<float>>, Form<Float16, LargeTensor<Float16>>,
                           Form<Float16, SmallTensor<Float16>>, Form<BFloat16, LargeTensor<BFloat16>>,
                           Form<BFloat16, SmallTensor<BFloat16>>>;
using ImplicitGemmTask = Tiled<TiledGemm>;
using WeightsTask = Tiled<WeightGradient>;
using LoopTask = std::variant<DirectConvolution<float>, DirectConvolution<Float16>, DirectConvolution<BFloat16>,
                              AddUp<float>, AddUp<Float16>, AddUp<BFloat16>>;
using WinogradTask = std::variant<WinogradSource<2>, WinogradSource<4>, WinogradWeights<2>, WinogradWeights<4>,
                                  WinogradTarget<2>, WinogradTarget<4>, WinogradDifferences<2>, WinogradDifferences<4>,
                                  WinogradGradients<2>, WinogradGradients<4>>;

template <typename Element>
using LargePacked = PackedGemm<PackedTile<Element, 128, 128, 64, 32>>;
template <typename Element>
using SmallPacked = PackedGemm<PackedTile<Element, 64, 64, 32, 32>>;
/// Of many rows, and of at most 64.
template <typename Element>
using TallGroups = PackedGemm<GroupTile<Element, 128, 128>>;
template <typename Element>
using WideGroups = PackedGemm<GroupTile<Element, 64, 256>>;
template <typename Element>
using LargeGradient = PackedGradient<TurnedTile<Element, 128, 128, 64, 32>>;
template <typename Element>
using SmallGradient = PackedGradient<TurnedTile<Element, 64, 64, 32, 32>>;
using PackedTask =
    std::variant<LargePacked<Float16>, SmallPacked<Float16>, TallGroups<Float16>, WideGroups<Float16>,
                 LargePacked<BFloat16>, SmallPacked<BFloat16>, TallGroups<BFloat16>, WideGroups<BFloat16>,
                 LargeGradient<Float16>, SmallGradient<Float16>, LargeGradient<BFloat16>, SmallGradient<BFloat16>>;

/// Everything that is not a sum over terms: points.hpp.
struct PointTask;
/// Attention on tensor cores: flash_tasks.hpp.
struct FlashTask;

/// Memory where an engine's tasks can reach it, given back when the last owner goes.
using Memory = std::shared_ptr<std::byte>;
/// A place in the order of a stream's tasks.
using Event = std::shared_ptr<void>;
/// Tasks that are started together.
using TaskGraph = std::shared_ptr<void>;

/// Large: all that is asked of a GPU, so that every kernel runs on the emulated one of the tests, too.
class Engine {
public:
    virtual ~Engine() = default;
    /// Empty, or why nothing can run: "no CUDA-capable device is detected".
    virtual std::string refusal() const = 0;
    /// "NVIDIA H200, sm_90, CUDA 13.0".
    virtual std::string version() const = 0;
    /// Multiprocessors, and 10 times the compute capability (75, 90).
    virtual int processors() const = 0;
    virtual int capability() const = 0;
    /// Empty, or why no tasks by warpgroups run: they are compiled for sm_90a, and run there alone.
    virtual std::string warpgroup_refusal() const = 0;

    /// BackendError where there is not so much left.
    virtual Memory allocate(std::size_t bytes) = 0;
    /// Memory that the host reaches too, while no task that touches it is under way.
    virtual Memory allocate_shared(std::size_t bytes) = 0;
    /// The host's own memory, from which and to which copies are fastest.
    virtual Memory allocate_pinned(std::size_t bytes) = 0;
    /// Bytes that allocations may still take.
    virtual std::size_t available() const = 0;
    virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
    virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
    /// Either way, beside the tasks that are under way and on any thread; over when it returns.
    virtual void copy_beside(void* to, const void* from, std::size_t bytes) = 0;

    /// Tasks of one stream run in the order of the calls, those of different streams beside each other. All that
    /// follows goes to stream `index`, made when it is first used; 0 at the start.
    virtual void use_stream(int index) = 0;
    /// The stream in use as its library knows it (cudaStream_t), or null.
    virtual void* stream() = 0;
    /// Behind everything that the stream in use has been given so far; an empty event is made first.
    virtual void record(Event& event) = 0;
    /// The host waits, on any thread, until all before the event is over.
    virtual void wait(const Event& event) = 0;
    /// From one event to another, by the GPU's clock.
    virtual double seconds(const Event& from, const Event& to) = 0;

    /// What this thread gives to the stream in use from now on, events included, is kept instead of run; nobody waits
    /// for it, nothing is allocated. Its end puts it into `graph`: anew, or in place of tasks that differ in numbers
    /// alone.
    virtual void begin_capture() = 0;
    virtual void end_capture(TaskGraph& graph) = 0;
    /// Behind everything that the stream in use has been given; its events are recorded anew.
    virtual void replay(const TaskGraph& graph) = 0;

    /// One after the other, in the order of the calls; returns before they have ended.
    virtual void run(const ImplicitGemmTask& task) = 0;
    virtual void run(const WeightsTask& task) = 0;
    virtual void run(const LoopTask& task) = 0;
    virtual void run(const WinogradTask& task) = 0;
    virtual void run(const PackedTask& task) = 0;
    virtual void run(const PointTask& task) = 0;
    virtual void run(const FlashTask& task) = 0;
    /// Empty, or why there are no Fourier transforms: "libcufft.so.12 cannot be opened".
    virtual std::string fft_refusal() const = 0;
    /// Each plane's discrete Fourier transform, and its inverse times its pixels; reads and writes as a task would.
    struct PlaneBatch {
        std::int64_t height = 1, width = 1, count = 0;
    };
    virtual void transform(const PlaneBatch& batch, const float* planes, float* spectra) = 0;
    /// The spectra are of no more use.
    virtual void transform_back(const PlaneBatch& batch, float* spectra, float* planes) = 0;
    /// Seconds that the GPU takes for what `work` starts, by its own clock.
    virtual double seconds(const std::function<void()>& work) = 0;
    /// As of a Device.
    virtual std::string identity() const = 0;
    virtual Clocks clocks() const = 0;
    virtual std::string group_refusal() const = 0;
    virtual std::vector<std::byte> group_name() = 0;
    virtual std::unique_ptr<DeviceGroup> join(std::span<const std::byte> name, std::int64_t rank,
                                              std::int64_t size) = 0;
    /// Bytes of the cache that all multiprocessors share.
    virtual std::size_t cache() const = 0;
    /// Waits for all of them, on every stream. BackendError says what went wrong in any.
    virtual void finish() = 0;
};

/// The GPU of this process: of a host's ranks each has the next one, as far as there are any; so several may share one.
/// The launcher's environment says which rank this is.
Engine& gpu();

}  // namespace rehearse::kernels::cuda
