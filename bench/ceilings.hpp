// SPDX-License-Identifier: Apache-2.0
// The roofs of this host (Williams, Waterman and Patterson 2009), measured: what no kernel can exceed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/loops.hpp"
#include "bench/rounds.hpp"
#include "calibrate/samples.hpp"

namespace rehearse::bench {

struct Peak {
    std::string type, how;  // "f32", "AVX-512 FMA"
    int threads = 1;
    FlopRate rate;       // of the best round: a roof is a maximum, and a disturbance only lowers it
    double spread = 0;   // between the rounds, relative
    std::string absent;  // why there is none
};

struct StreamSample {
    StreamKernel kernel = StreamKernel::copy;
    std::string level;  // "L1", "L2", "L3", "memory": where three arrays of that size lie
    int threads = 1;
    Bytes working_set;  // of all threads: three arrays, whether the kernel uses two or three
    Bandwidth rate;     // of the best round, as STREAM counts bytes
    double spread = 0;
};

/// The threads' own arithmetic at the same time, type by type; absent ones are rows too.
std::vector<Peak> measure_peaks(int threads, const Rounds& rounds);

struct StreamOptions {
    Rounds rounds;
    std::vector<int> threads{1};
    std::vector<StreamKernel> kernels{StreamKernel::copy, StreamKernel::scale, StreamKernel::add, StreamKernel::triad};
    bool every_size = false;                                 // also the sizes between and around one a level
    std::function<bool(const std::string& level)> wanted{};  // measures only levels that it is true of; none: all
    double memory_factor = 4;  // each array of the level "memory" is this many times all last-level caches together
};
struct Streams {
    std::vector<StreamSample> samples;
    std::string json;  // Google Benchmark's
};

/// One working set a level of cache, and one in memory (McCalpin: each array at least four times the last-level
/// caches). Each thread has arrays of its own that it touched first. Every result is compared to the sum worked out
/// from the inputs: BackendError where an element differs. InputError where no level is wanted, InfeasibleError where
/// the arrays do not fit into free memory.
Streams measure_streams(const StreamOptions& options);

/// Both at once, as short as `rounds` says: the roofs that a run of `bench` compares with. Copy and triad only, in
/// memory over arrays that together are four times the last-level caches.
struct Ceilings {
    std::vector<Peak> peaks;  // absent ones too
    struct Roof {
        std::string level;
        Bandwidth rate;
    };
    std::vector<Roof> bandwidths;  // the fastest kernel of each level, innermost first; the last is memory
    const Peak* peak(std::string_view type) const;  // null where this CPU has none
    Bandwidth memory() const { return bandwidths.back().rate; }
};
Ceilings measure_ceilings(int threads, const Rounds& rounds);

/// The roof of a sample: its type's peak, or that of f32 where the device has no arithmetic of the type; of an
/// algorithm that rounds f32 to TF32 that peak.
const Peak& roof_of(const Ceilings& ceilings, const calibrate::Sample& sample);

/// A sample under its roofs; operands count once, and work is that of a direct convolution.
struct RooflinePoint {
    Flops flops;
    Bytes bytes;
    double of_peak = 0, of_memory = 0;  // shares of the peak and of the memory's bandwidth that it reached
    bool memory_bound = false;          // memory would hold it back even if arithmetic took no time
    double intensity() const { return bytes.value > 0 ? flops.value / bytes.value : 0; }  // FLOP/B
};
RooflinePoint roofline_point(const Ceilings& ceilings, const calibrate::Sample& sample);

}  // namespace rehearse::bench
