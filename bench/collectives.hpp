// SPDX-License-Identifier: Apache-2.0
// Times collectives and messages between ranks as nccl-tests does, our algorithms and the MPI library's side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/rounds.hpp"
#include "core/collectives/collective.hpp"
#include "core/op.hpp"
#include "kernels/comm/choice.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::bench {

/// What a row of nccl-tests is about. No kind: every rank sends to the next and receives from the one before
/// (nccl-tests' sendrecv).
struct Traffic {
    std::optional<CollectiveKind> kind;
    DataType type = DataType::f32;
};
std::string_view name_of(const Traffic& traffic);  // "allreduce", "p2p"

/// busbw / algbw, from nccl-tests' PERFORMANCE.md: what a link carries a byte of data.
double bus_factor(const Traffic& traffic, std::int64_t ranks);

struct TrafficOptions {
    Traffic traffic;
    std::vector<Bytes> sizes;
    /// Of the kind (p2p: "direct"), "mpi", or "auto": what a measurement beforehand finds best.
    std::vector<std::string> algorithms;
    kernels::AlgorithmChoice choice{};  // for "auto"; an empty one is measured
    Rounds rounds;
    int warm_up = 2;
    bool check = true;
    std::uint64_t seed = 1;
};

struct TrafficSample {
    Bytes size;              // of a rank's data; cut down to equal parts where it is cut
    std::int64_t count = 0;  // elements as nccl-tests counts them: of a rank's part where data is cut, else all
    std::string algorithm;   // as asked
    std::string chosen;      // by "auto"; else the same
    Seconds median;          // mean of the ranks
    double error = 0;        // relative deviation between rounds
    std::int64_t samples = 0;
    Bandwidth algorithm_bandwidth, bus_bandwidth;
    std::int64_t wrong = -1;  // elements over all ranks, -1: not checked
};

struct TrafficMeasurement {
    std::vector<TrafficSample> samples;  // size by size, algorithm by algorithm
    std::string json;                    // Google Benchmark's, of this rank
};

/// Collective, the same on all ranks but for the document. InputError for an algorithm that is not there or cannot
/// serve so many ranks, and for "mpi" where MPI cannot.
TrafficMeasurement measure_traffic(kernels::Communicator& communicator, const TrafficOptions& options);

/// Powers of `factor` from least to most.
std::vector<Bytes> sizes_between(Bytes least, Bytes most, double factor);

}  // namespace rehearse::bench
