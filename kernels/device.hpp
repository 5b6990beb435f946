// SPDX-License-Identifier: Apache-2.0
// Something other than the host's cores that trains: where a rank's tensors lie, and what runs on them there.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// Ranks whose devices sum among themselves what lies in their memory, without the hosts.
class DeviceGroup {
public:
    virtual ~DeviceGroup() = default;
    /// data = sum of all ranks'. Under way when it returns, beside the device's kernels; the caller has waited for
    /// those that make the data. All ranks in the same order, one at a time, from one thread.
    virtual void all_reduce(View data) = 0;
    /// Whether it is over. BackendError when it cannot be.
    virtual bool test() = 0;
};

/// How a device runs at a moment: what a figure measured then has to be read with.
struct Clocks {
    double processors_hz = 0, memory_hz = 0;
    std::optional<double> celsius{}, watts{};
    std::string held_down_by{};  // "the power limit, heat"; empty: nothing
    std::string refusal{};       // why all of it is unknown
};

/// Kernels, sums and copies of a device are under way when their calls return, and run in the order of the calls. What
/// the host reads or writes of its memory, it does after finish(), or after wait() for what touches that memory.
/// Large: all that training asks of a GPU, so that one can be played.
class Device {
public:
    using Memory = std::shared_ptr<std::byte>;
    using Event = std::shared_ptr<void>;
    using Graph = std::shared_ptr<void>;

    virtual ~Device() = default;
    virtual std::string_view name() const = 0;
    /// Empty, or why it cannot be used: "no GPU: no CUDA-capable device is detected".
    virtual std::string refusal() const = 0;
    /// "NVIDIA H200, sm_90, CUDA 13.0", and the bytes of its memory that are free.
    virtual std::string description() const = 0;
    virtual std::size_t available() const = 0;
    /// The preferred first. Behind its own are the host's, for what those do not run: they wait for the device first.
    virtual std::span<const Backend* const> backends() const = 0;
    /// Whether a backend of that list is the device's own.
    virtual bool owns(const Backend& backend) const = 0;

    /// Memory that the device and the host reach; zero. InfeasibleError where there is not so much.
    virtual Memory allocate(std::size_t bytes) = 0;
    /// Memory that the device alone reaches, not touched: copy_beside() and kernels fill it. Errors as allocate().
    virtual Memory allocate_own(std::size_t bytes) = 0;
    /// The host's, for copies that run beside kernels.
    virtual Memory allocate_staging(std::size_t bytes) = 0;
    /// Over when it returns, on any thread, beside what is under way.
    virtual void copy_beside(void* to, const void* from, std::size_t bytes) = 0;

    /// sum += part; to = factor * from. Of any types.
    virtual void add(View sum, ConstView part) = 0;
    virtual void scale(ConstView from, View to, float factor) = 0;
    void copy(ConstView from, View to) { scale(from, to, 1); }
    /// Whether none of them is infinite or no number. Waits for all that was given before.
    virtual bool all_finite(ConstView values) = 0;

    /// Kernels, sums and copies of one stream run in their order, those of several beside each other. Of all that
    /// follows, preparing kernels included; 0 at the start.
    virtual void use_stream(int index) = 0;
    /// Behind everything given to the stream in use so far. `event` may be one that is of no more use, or empty.
    virtual void record(Event& event) = 0;
    /// On any thread.
    virtual void wait(const Event& event) = 0;
    /// Seconds from one event to another by the device's clock; both are over.
    virtual double seconds(const Event& from, const Event& to) = 0;
    virtual void finish() = 0;

    /// Kernels, sums, copies and events that this thread gives to the stream in use from now on are kept and not run,
    /// while nobody waits for them and no kernel is prepared. Their end makes a graph of them, or renews one whose
    /// kernels are the same but for their numbers.
    virtual void begin_capture() = 0;
    virtual void end_capture(Graph& graph) = 0;
    /// Gives all of a graph to the stream in use, by one call.
    virtual void replay(const Graph& graph) = 0;

    virtual Clocks clocks() const = 0;
    /// Which one of this host it is.
    virtual std::string identity() const = 0;
    /// Empty, or why devices make no groups here.
    virtual std::string group_refusal() const = 0;
    /// A new group's name, that one rank makes and gives to the others. They join it together.
    virtual std::vector<std::byte> group_name() = 0;
    virtual std::unique_ptr<DeviceGroup> join(std::span<const std::byte> name, std::int64_t rank,
                                              std::int64_t size) = 0;
};

/// As choose() of backend.hpp, from a list: backends() or a device's.
const Backend& choose_from(std::span<const Backend* const> from, const Op& op, std::int64_t batch, DataType type,
                           std::string_view only, std::string_view algorithm, Bytes limit);

/// "cpu" is null: the host's cores. InputError for a name that is none, or that is not in this build; one that is in
/// the build but not in the machine says so by its refusal().
Device* device(std::string_view name);
/// The same; InputError with the refusal, too: "--device cuda: no GPU: no CUDA-capable device is detected".
Device* usable_device(std::string_view name);

}  // namespace rehearse::kernels
