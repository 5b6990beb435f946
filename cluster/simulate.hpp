// SPDX-License-Identifier: Apache-2.0
// Jobs come, get devices by a policy, train and leave: event by event.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cluster/jobs.hpp"

namespace rehearse::cluster {

/// fifo: each gets what it asks for, in the order of arrival, and keeps it; nobody overtakes.
/// fixed_batch: who waits and who runs share the devices anew at every decision, each with its own batch: the baseline
/// of Saxena et al. elastic: the batch follows the devices, within what the job allows.
enum class Policy { fifo, fixed_batch, elastic };
std::string_view to_string(Policy policy);
std::span<const Policy> policies();

struct Options {
    Policy policy = Policy::elastic;
    std::int64_t devices = 1;
    Seconds interval{};  // decisions are made at multiples of it where something has changed; 0: at once
    Seconds restart{};   // of a job whose share changes: saves, stops, loads; it keeps its devices meanwhile
    Seconds start{};     // of a job that begins: it has its devices and does not train yet
    bool even = false;   // batches are multiples of the devices: what `run` trains with
    bool queue = true;   // false: who does not get devices at the first decision after its arrival is turned away
    std::optional<Seconds> end{};  // of the simulation
};

/// Some time in which a job had the same devices.
struct Span {
    int job = 0;
    Seconds start, end;
    Seconds idle;  // from the start: of its restart
    Share share;
    std::vector<std::int64_t> devices;  // ascending
};

struct JobResult {
    Seconds ready;  // its arrival, or the end of the last job that it comes after
    std::optional<Seconds> start, end;
    bool turned_away = false;
    int restarts = 0;
    double trained = 0;  // samples
};

struct Outcome {
    Options options;
    std::vector<JobResult> jobs;
    std::vector<Span> spans;  // in the order of their ends
    Seconds end;              // of the last job, or of the simulation
    std::int64_t decisions = 0;
};

/// InputError as check(jobs, ...). A job after one that was turned away is turned away, too.
///
/// At a decision of the elastic policies the jobs stand in the order of their arrival; as many as can all have what
/// they need at least take part, and devices go where the sum of scaling factors is largest (allocate): throughput over
/// that of one device at its best.
Outcome simulate(const std::vector<Job>& jobs, const SpeedTable& speeds, const Options& options);

}  // namespace rehearse::cluster
