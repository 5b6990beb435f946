// SPDX-License-Identifier: Apache-2.0
// What one rank of a schedule holds in device memory at its fullest moment, by kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/units.hpp"

namespace rehearse::schedule {

/// Activations and their gradients are those of the step at which both together are largest. Not counted: workspaces of
/// convolution algorithms, what a framework keeps for itself, and the statistics that batch normalization saves.
struct MemoryUse {
    Bytes weights;               // in the compute type (and as operands of fp8), all versions; running statistics (f32)
    Bytes master_weights;        // f32 copy that the optimizer changes, in mixed precision
    Bytes gradients;             // of the weights: they lie in the buckets
    Bytes optimizer;             // momentum, or both moments
    Bytes communication;         // a second buffer of the largest bucket, for what arrives; or of all, with copies
    Bytes activations;           // outputs, from their forward to the last pass that reads them; masks and slopes
    Bytes activation_gradients;  // from the pass that makes them to the last that reads them; a loss's f32 copies
};
Bytes total(const MemoryUse& use);

/// Of one rank class, and of the server that shares the device of one of its ranks. Nothing is assumed to be computed
/// in place.
MemoryUse memory_use(const Schedule& schedule, const RankClass& rank_class);

/// Elements of the memory that a collective takes and that is in no tensor.
std::int64_t buffered(const Communicate& communicate);

/// Whether a method of training keeps something on ranks or servers beside the network and its optimizer.
bool keeps_for_methods(const Schedule& schedule);

struct NamedUse {
    std::string name;
    MemoryUse use;
};
/// Of each rank class; of the fullest server last, where servers have devices of their own.
std::vector<NamedUse> memory_uses(const Schedule& schedule);
/// The fullest of these.
MemoryUse memory_use(const Schedule& schedule);

inline constexpr int no_class = -1;  // what Tightest is of is a server with a device of its own

/// A rank class on a device of its ranks: that which comes nearest to the device's memory, or goes beyond it most.
struct Tightest {
    int rank_class = 0;
    const DeviceClass* device = nullptr;  // the smallest that a rank of the class, or a server, is on
    MemoryUse use;
    double share() const { return total(use) / device->memory.value; }
    bool fits() const { return share() <= 1; }
};
/// Of each rank class, on the smallest of its devices. Rank r is on device r.
std::vector<Tightest> tightest_of_classes(const Schedule& schedule, const Machine& machine);
/// Of these, and of servers with devices of their own. On a machine of like devices: the fullest.
Tightest tightest(const Schedule& schedule, const Machine& machine);

struct MemoryRow {
    std::string_view kind;
    Bytes bytes;
};
/// For tables: one row a kind, the total last.
std::vector<MemoryRow> rows(const MemoryUse& use);

}  // namespace rehearse::schedule
