// SPDX-License-Identifier: Apache-2.0
// What a framework does beside the kernels that it calls: how often values cross memory, how images lie in it.
#pragma once

#include <optional>

#include "core/machine.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/schedule.hpp"
#include "models/frameworks.hpp"
#include "predict/spread.hpp"
#include "prices/prices.hpp"

namespace rehearse::predict {

/// What a host takes to issue a pass of an operator, so that kernels come no faster; no time: nothing is known of it.
struct Issue {
    Seconds time{};
    double error = 0;  // relative, one standard deviation between hosts
    std::string source{};
    auto operator<=>(const Issue&) const = default;
};

/// The same by operator. Convolutions, products (dense layers, attention) and normalizations have more to set up than
/// `other` operators.
struct HostIssue {
    Issue other{}, convolution{}, product{}, normalization{};
    auto operator<=>(const HostIssue&) const = default;
    /// Returns what it takes for this operator.
    const Issue& of(const Op& op) const;
};

/// Returns what a profile says of its host. InputError for a time or an error below 0, and for times without an error.
HostIssue issue_of(const models::FrameworkProfile& profile);

/// Operators on gradients that a framework issues one by one for each tensor of weights, after the backward pass and
/// before the update; each reads or writes the tensor 1.4 times (AdaptDL: 20 times in 14, 7 times in 5).
struct Statistics {
    double alone = 0, shared = 0;  // of one rank, and of several that sum gradients
    auto operator<=>(const Statistics&) const = default;
};

/// Returns what a profile says of them. InputError for less than 0.
Statistics statistics_of(const models::FrameworkProfile& profile);

/// How often a framework reads or writes what ranks share out or sum, beside the messages themselves.
struct Copies {
    double buckets = 0;    // a gradient is copied into its bucket's buffer or back, a step: read and written each time
    double gathered = 0;   // passes over weights that were gathered from shards, each time, in the type of the messages
    double scattered = 0;  // ... over gradients before each sum whose results are shards, in the type of the messages
    auto operator<=>(const Copies&) const = default;
    Copies operator*(double factor) const { return {buckets * factor, gathered * factor, scattered * factor}; }
};

/// Returns what a profile says of them. InputError for less than 0.
Copies copies_of(const models::FrameworkProfile& profile);

/// What a framework adds to the prices of operators.
///
/// Large: one member for each setting of a framework's file.
struct Framework {
    bool channels_first = false;        // images lie channel by channel (NCHW): 16-bit convolutions turn them
    bool channels_last_turned = false;  // ... pixel by pixel (NHWC), and are turned for a library that takes NCHW
    bool transforms = true;             // its library may compute convolutions with fewer multiplications
    std::optional<Bytes> workspace{};   // memory that its library gets for one; absent: as much as it asks for
    bool dense_gradients = false;       // gradients of strided convolutions multiply the zeros between their numbers
    bool dilated_in_batches = false;    // dilated convolutions are of images of every so many-th pixel, copied together
    std::optional<double> update_passes{};  // how often its optimizer reads or writes a parameter, 0 where nothing is
                                            // updated; absent: one kernel for all
    Bandwidth update_rate{};                // of these passes, where one core makes them; 0: of the whole device
    std::optional<Software> passes{};       // values cross memory as often as under it; absent: under the machine's own
    Copies copies{};                        // of weights and gradients that ranks share
    bool update_after_sums = false;         // no weight is updated before all gradients have been summed
    bool sockets = false;                   // its ranks talk over sockets, which calibrate --transport sockets measures
    HostIssue issue{};                      // of an operator by the host: kernels come no faster
    Statistics statistics{};                // of gradients, beside the update
    MemoryHabits memory{};                  // what it keeps beside what a plan says
    bool megatron_memory = false;    // decoders' memory is what Megatron-Core allocates (predict/language_memory.hpp)
    double error = framework_error;  // between it and others, of a step
    bool plain() const {
        return !channels_first && !channels_last_turned && transforms && !workspace && !dense_gradients &&
               !dilated_in_batches && !update_passes && copies == Copies{} && issue == HostIssue{} &&
               statistics == Statistics{};
    }
};

/// Returns what a profile says that its library gets for a convolution, if it says so. InputError for less than 0.
std::optional<Bytes> workspace_of(const models::FrameworkProfile& profile);

/// Layouts of images: none, nchw, nhwc-turned.
bool is_layout(std::string_view layout);
void set_layout(Framework& framework, std::string_view layout);

/// Returns what a profile says of a training with this optimizer. InputError for a value that cannot be.
Framework framework_of(const models::FrameworkProfile& profile, Optimizer optimizer);

/// Lets the first update wait for all sums of gradients before it.
void await_sums(Schedule& schedule);

/// Returns what a profile says that it keeps in memory. InputError for a value that cannot be.
MemoryHabits memory_habits_of(const models::FrameworkProfile& profile);

/// Returns the machine on which attention's scores never cross memory, where its devices are priced by tiles.
Machine with_fused_attention(Machine machine);

/// Returns the machine as it trains `network`: the software that it names is that of transformers, and what has no
/// attention is priced for none in particular (models::generic_software), where its devices are priced by tiles.
Machine for_network(Machine machine, const Network& network);

/// Returns the machine on which values cross memory as often as under `passes`, where the machine's devices are priced
/// by tiles.
Machine with_passes(Machine machine, const Software& passes);

/// Returns a price that something has been added to, or taken from, since it was `plain`: it is no longer measured.
Price with_basis(Price price, const Price& plain);

/// Returns what the framework makes of the price of a problem: where its host takes longer to issue the kernel, that
/// time and the host's own error and source; what it makes longer or shorter otherwise is modelled.
Price with_overheads(Price price, const Problem& problem, const DeviceClass& device, const Framework& framework);

/// Whether a host issues operators ahead of its device (Software::issues_ahead).
bool issues_ahead(const Machine& machine);

/// Returns the machine with every problem of the schedule at the framework's price; updates of weights that ranks share
/// with the copies of their gradients, each of which reads and writes them at the device's memory bandwidth. Where the
/// host issues ahead, a problem takes what it adds in the mean to the time at which the device is done: nothing waits
/// for the host while earlier operators compute.
Machine priced(Machine machine, const Schedule& schedule, const Framework& framework);

}  // namespace rehearse::predict
