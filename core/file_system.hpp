// SPDX-License-Identifier: Apache-2.0
// A file system as jobs meet it: its servers of data and of names, and what a client waits for. How fast samples come
// follows from how a job reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "core/units.hpp"

namespace rehearse {

/// Lustre, GPFS, a burst buffer, a drive, an object store. What has no source is not known, and bounds nothing.
struct FileSystem {
    struct Mount {
        std::string machine, tier;  // its name in the machine file
    };
    std::string name, summary;
    std::vector<Mount> mounts;
    Sourced<Bandwidth> read;     // of all servers of data together, by long requests
    Sourced<double> targets;     // that hold data: OSTs, burst-buffer servers, drives
    Sourced<Seconds> seek;       // a target is busy with each request beside its bytes
    Sourced<double> metadata;    // operations on names that all their servers do a second
    Sourced<double> operations;  // on names, for a file that is opened, read and closed
    Sourced<Seconds> operation;  // a client waits for each of these
    Sourced<Seconds> request;    // a client waits for each read beside its bytes
    Sourced<Bandwidth> stream;   // of one reader
};

/// How a job reads a sample.
struct ReadPattern {
    Bytes sample;              // as stored
    double files = 1;          // opened for a sample; 0.001 where a file has a thousand samples
    Bytes request{};           // of one read that reaches the file system; 0: a sample in one
    std::int64_t readers = 1;  // of a process: each reads another sample
    std::int64_t stripes = 1;  // targets on which a sample lies
    double ahead = 1;          // steps whose samples are asked for at once: over these, queues at targets even out
};
/// "files=1:request=1MiB:readers=4:stripes=1:ahead=2", any of them. InputError for other words or values.
ReadPattern parse_read_pattern(std::string_view text, Bytes sample);

enum class ReadBound { readers, metadata, targets };
std::string_view to_string(ReadBound bound);

struct ReadRates {
    Bandwidth process;                     // of one process, whoever else reads
    Bandwidth together;                    // of all processes at most
    double busiest = 1;                    // load of the target that has most to do, over the mean
    ReadBound bound = ReadBound::readers;  // which is least
};

/// Reading of `processes` processes that take `samples` samples a step together.
ReadRates read_rates(const FileSystem& system, const ReadPattern& pattern, std::int64_t processes, double samples);

/// The largest of `bins` loads when `balls` go to any of them independently, in the mean: each load is taken to be
/// Poisson's, so that it is the sum over m >= 0 of 1 - P(load <= m)^bins.
double expected_most(double balls, double bins);

/// One reader's time for `samples` samples, one after the other, alone on the file system.
Seconds reading_time(const FileSystem& system, const ReadPattern& pattern, double samples);

}  // namespace rehearse
